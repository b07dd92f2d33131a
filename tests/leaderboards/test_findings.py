"""FINDINGS.md: its intervals stand on published boards, or are Welch's of their cells; bold ones exclude zero.

HISTORY.md: those of the search are Welch's of its trials.
"""

import csv
import json
import math
import re
from pathlib import Path
from statistics import mean, variance

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy.stats import t as students_t

from leaderboards.packed_records import unpacked
from leaderboards.published_boards import PUBLISHED
from suite.papers import get_suite, list_suites
from suite.store.run_store import find_runs

FINDINGS = (PUBLISHED / "FINDINGS.md").read_text()
HISTORY = (PUBLISHED / "HISTORY.md").read_text()
TRIALS = Path(__file__).parents[2] / "benchmarks" / "laptop_profile.jsonl"
INTERVAL = re.compile(r"(?<![\d.])[+-]?(\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)")
# A comparison that no board prints: the board, the cells that are added, and those that are taken away.
DIFFERENCES = {
    "0.9 ± 1.2": ("sample_efficiency/laptop", ["5/convit_top1", "100/deit_top1"], ["5/deit_top1", "100/convit_top1"]),
    "6.2 ± 1.0": ("init_heads/laptop", ["Mimetic/vit_t_h3"], ["Imp.-3/vit_t_h3"]),
    "5.71 ± 0.52": ("init_heads/laptop", ["Mimetic/vit_t_h3"], ["Imp.-5/vit_t_h3"]),
    "2.0 ± 1.4": (
        "init_heads/laptop",
        ["Imp.-3/vit_t_h8", "Trunc Normal/vit_t_h3"],
        ["Imp.-3/vit_t_h3", "Trunc Normal/vit_t_h8"],
    ),
    "1.56 ± 0.91": ("cordonnier_heads/laptop", ["SA learned/top1"], ["SA quadratic, 9 heads/top1"]),
    "5.10 ± 0.59": ("cmhsa_cifar100/laptop", ["CMHSA-3 (ours)/top1"], ["CMHSA (2nd phase)/top1"]),
    "4.48 ± 0.73": ("cmhsa_cifar100/laptop", ["CMHSA-5 (ours)/top1"], ["CMHSA (2nd phase)/top1"]),
    "0.29 ± 0.93": ("cmhsa_cifar100/laptop", ["CMHSA-5 (ours)/top1"], ["CMHSA-5 (1st phase)/top1"]),
    "3.0 ± 1.2": ("cmhsa_cifar100/laptop", ["CMHSA-5 (ours)/top1"], ["ViT-base/top1"]),
    "0.74 ± 0.57": ("cmhsa_cifar100/laptop", ["CMHSA-3 (ours)/top1"], ["CMHSA-3 (1st phase)/top1"]),
    "1.3 ± 1.1": (
        "convit_distillation/laptop",
        ["Hard distillation/convit_s_plus"],
        ["No distillation/convit_s_plus"],
    ),
    "0.95 ± 0.99": ("convit_distillation/laptop", ["No distillation/convit_s_plus"], ["No distillation/deit_b"]),
    "1.9 ± 2.3": ("convit_cifar100/laptop", ["B+/convit_top1", "Ti+/deit_top1"], ["B+/deit_top1", "Ti+/convit_top1"]),
}
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
# Of the recorded attention maps, in percent: the start, when, the layer, and which share.
MAPS = {
    "36.1 ± 6.3": ("impulse_3", "after", 0, "near"),
    "27.8 ± 7.1": ("impulse_3", "after", 1, "near"),
    "19.3 ± 3.8": ("impulse_3", "after", 2, "near"),
    "60 ± 17": ("impulse_3", "after", 2, "columns"),
    "98.6 ± 0.6": ("trunc_normal", "after", 0, "columns"),
}
LISTED = {*DIFFERENCES, *MAPS}


def intervals(text):
    return {f"{mean} ± {half}" for mean, half in INTERVAL.findall(text)}


def welch(samples):
    """Mean and half the 95 % interval of a sum of independent means, of (mean, variance, size) each; signs are in the
    means."""
    shares = [(var / n, n) for _, var, n in samples]
    df = sum(share for share, _ in shares) ** 2 / sum(share**2 / (n - 1) for share, n in shares)
    return sum(m for m, _, _ in samples), students_t.ppf(0.975, df) * math.sqrt(sum(share for share, _ in shares))


def write_as(written, found):
    digits = len(written.partition(".")[2].partition(" ")[0])
    return f"{abs(found[0]):.{digits}f} ± {found[1]:.{digits}f}"


def cells_of(board):
    with (PUBLISHED / f"{board}.long.csv").open() as lines:
        return {f"{r['row'].split(' / ')[0]}/{r['column']}": r for r in reversed(list(csv.DictReader(lines)))}


@pytest.mark.parametrize("section", FINDINGS.split("\n## ")[1:], ids=lambda text: text.split("\n")[0][:40])
def test_each_interval_stands_on_a_board_or_page_of_claims_of_its_section_or_is_listed_here(section):
    suites = set(re.findall(r"`([a-z_0-9]+)`", section)) & set(list_suites())
    papers = {get_suite(suite).paper for suite in suites}
    claims = [page.read_text() for page in PUBLISHED.glob("claims/*.md")]
    boards = [page.read_text() for suite in suites for page in (PUBLISHED / suite).glob("*.md")]
    of_its_papers = [text for text in claims if any(paper in text for paper in papers)]
    printed = set().union(*map(intervals, boards + of_its_papers))
    assert intervals(section) - printed - LISTED == set()


def test_what_is_listed_here_is_written_there():
    assert intervals(FINDINGS) >= LISTED
    assert intervals(HISTORY) >= set(SEARCH)


def sample_of(cell, sign):
    return sign * float(cell["mean"]), float(cell["sd"]) ** 2, int(cell["n"])


@pytest.mark.parametrize(("written", "board", "added", "taken"), [(k, *v) for k, v in DIFFERENCES.items()])
def test_an_interval_that_no_board_prints_is_welchs_of_its_cells(written, board, added, taken):
    cells = cells_of(board)
    samples = [sample_of(cells[name], sign) for sign, names in ((1, added), (-1, taken)) for name in names]
    assert write_as(written, welch(samples)) == written


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


@pytest.fixture(scope="module")
def shares_of_maps(tmp_path_factory):
    """Percent of attention within a step of its patch, and of a map's variance between its keys alone."""
    row, column = np.divmod(np.arange(64), 8)
    near = (abs(row[:, None] - row) <= 1) & (abs(column[:, None] - column) <= 1)
    found = {}
    with unpacked(PUBLISHED / "init_attention_maps" / "laptop.records.tar.xz") as store:
        for experiment in get_suite("init_attention_maps").profile("laptop").experiments():
            if experiment.kind != "maps":
                continue
            (parent,) = experiment.parents
            start = dict(parent.model_options).get("initialization", "trunc_normal")
            for run in find_runs(store, experiment).values():
                maps = load_file(run.maps_path)
                for name in (name for name in maps if name.endswith("/between")):
                    when, layer, _ = name.split("/")
                    map_NN = maps[name].astype(float)
                    near_share = 100 * (map_NN * near).sum(1).mean()
                    found.setdefault((start, when, int(layer), "near"), []).append(near_share)
                    columns = 100 * map_NN.mean(0).var() / map_NN.var()
                    found.setdefault((start, when, int(layer), "columns"), []).append(columns)
    return found


@pytest.mark.parametrize(("written", "share"), MAPS.items())
def test_what_is_said_of_attention_maps_is_so_in_their_records(shares_of_maps, written, share):
    shares = shares_of_maps[share]
    assert write_as(written, welch([(mean(shares), variance(shares), len(shares))])) == written


def test_a_bold_interval_excludes_zero():
    bold = [INTERVAL.fullmatch(part) for part in re.findall(r"\*\*([^*]+)\*\*", FINDINGS)]
    found = [(float(m[1]), float(m[2])) for m in bold if m]
    assert len(found) > 30
    assert all(mean > half for mean, half in found), found
