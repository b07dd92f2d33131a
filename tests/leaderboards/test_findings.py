"""FINDINGS.md: short, and each number stands on a published board or in the file of claims.

HISTORY.md: the intervals of the search are Welch's of its trials, as they were printed then.
"""

import csv
import json
import math
import re
from pathlib import Path
from statistics import mean, variance

import pytest
from scipy.stats import t as students_t

from leaderboards.published_boards import PUBLISHED
from suite.papers import get_suite, list_suites

FINDINGS = (PUBLISHED / "FINDINGS.md").read_text()
HISTORY = (PUBLISHED / "HISTORY.md").read_text()
CLAIMS = {(line["claim"], line["scale"]): line for line in csv.DictReader((PUBLISHED / "claims.csv").open())}
TRIALS = Path(__file__).parents[2] / "benchmarks" / "laptop_profile.jsonl"
INTERVAL = re.compile(r"(?<![\d.])([+-]?\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)")
ROWS = re.findall(r"^\| .*?\(`(\w+)`\) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|", FINDINGS, flags=re.MULTILINE)
# In HISTORY.md, of the search for the laptop's profiles, at the rate chosen: the stages whose gains are added, or taken
# away, of all their seeds or "from" one on.
SEARCH = {
    "2.5 ± 1.1": ["nine_short_500"],
    "2.2 ± 1.0": ["nine_short"],
    "1.6 ± 1.3": ["nine_short_many"],
    "0.9 ± 1.3": ["nine_short_250"],
    "0.9 ± 1.5": ["nine_short_500", "-nine_short_many"],
    "3.51 ± 0.73": ["nine_longer_500"],
    "3.4 ± 1.1": ["nine_longer_500 from 1002"],
    "2.0 ± 1.1": ["nine_longer_500", "-nine_longer_many"],
    "1.4 ± 1.5": ["nine_longer_500 from 1002", "-nine_longer_many from 1003"],
    "2.0 ± 1.0": ["nine_longer"],
    "1.50 ± 0.95": ["nine_longer_many"],
    "0.5 ± 1.3": ["nine_longer", "-nine_longer_many"],
    "1.51 ± 1.46": ["nine_longer from 1003"],
    "1.99 ± 1.32": ["nine_longer_many from 1003"],
    "0.9 ± 3.1": ["tenth_12000"],
    "1.8 ± 2.9": ["tenth_15000"],
    "0.5 ± 1.8": ["nine_longer_many from 1003", "-nine_longer from 1003"],
}


def intervals(text):
    return {f"{float(mean):+g} ± {half}" for mean, half in INTERVAL.findall(text)}


def test_the_page_is_read_in_five_minutes():
    assert len(FINDINGS.replace("|", " ").split()) <= 900
    assert len(ROWS) >= 8


@pytest.mark.parametrize(("claim", "effect", "paper", "seeds", "verdict"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row_of_the_table_is_what_the_file_of_claims_says(claim, effect, paper, seeds, verdict):
    line = CLAIMS[claim, "laptop"]
    written_mean, written_half = INTERVAL.match(effect).groups()
    digits = len(written_half.partition(".")[2])
    half = (float(line["high"]) - float(line["low"])) / 2
    assert (written_mean, written_half) == (f"{float(line['effect']):+.{digits}f}", f"{half:.{digits}f}")
    assert (seeds, verdict) == (line["n"], line["verdict"])
    assert paper == (f"{float(line['paper_effect']):+.1f}" if line["paper_effect"] else "drawn")


@pytest.mark.parametrize("section", FINDINGS.split("\n## ")[1:], ids=lambda text: text.split("\n")[0][:40])
def test_each_interval_of_a_section_stands_on_a_board_or_in_the_claims(section):
    suites = set(re.findall(r"`([a-z_0-9]+)`", section)) & set(list_suites())
    papers = {get_suite(suite).paper for suite in suites} | {line["paper"] for line in CLAIMS.values()}
    claims = [page.read_text() for page in PUBLISHED.glob("claims/*.md")]
    boards = [page.read_text() for suite in suites for page in (PUBLISHED / suite).glob("*.md")]
    of_its_papers = [text for text in claims if any(paper in text for paper in papers)]
    printed = set().union(*map(intervals, boards + of_its_papers))
    rows = {f"{float(mean):+g} ± {half}" for row in ROWS for mean, half in INTERVAL.findall(row[1])}
    assert intervals(section) - printed - rows == set()


def test_what_is_listed_here_is_written_in_the_history():
    written = {f"{mean.lstrip('+-')} ± {half}" for mean, half in INTERVAL.findall(HISTORY)}
    assert written >= set(SEARCH)


def welch(samples):
    """Mean and half the 95 % interval of a sum of independent means, of (mean, variance, size) each; signs are in the
    means."""
    shares = [(var / n, n) for _, var, n in samples]
    df = sum(share for share, _ in shares) ** 2 / sum(share**2 / (n - 1) for share, n in shares)
    return sum(m for m, _, _ in samples), students_t.ppf(0.975, df) * math.sqrt(sum(share for share, _ in shares))


def write_as(written, found):
    digits = len(written.partition(".")[2].partition(" ")[0])
    return f"{abs(found[0]):.{digits}f} ± {found[1]:.{digits}f}"


@pytest.mark.parametrize(("written", "stages"), SEARCH.items())
def test_an_interval_of_the_search_is_welchs_of_its_trials(written, stages):
    trials = [json.loads(line) for line in TRIALS.read_text().splitlines()]
    samples = []
    for stage in stages:
        name, _, first = stage.partition(" from ")
        for family, sign in (("convit", 1), ("deit", -1)):
            of_group = [t for t in trials if (t["stage"], t["family"]) == (name.removeprefix("-"), family)]
            of_group = [t for t in of_group if t["seed"] >= int(first or 0)]
            scores = [t["held_out_top1"][-1] for t in of_group]
            samples.append((mean(scores) * sign * (-1 if name.startswith("-") else 1), variance(scores), len(scores)))
    assert write_as(written, welch(samples)) == written
