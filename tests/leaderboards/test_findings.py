"""FINDINGS.md: its intervals stand on published boards, or are Welch's of their cells; bold ones exclude zero."""

import csv
import math
import re

import pytest
from scipy.stats import t as students_t

from leaderboards.published_boards import PUBLISHED

FINDINGS = (PUBLISHED / "FINDINGS.md").read_text()
INTERVAL = re.compile(r"(?<![\d.])[+-]?(\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)")
# A comparison that no board prints: the board, the cells that are added, and those that are taken away.
DIFFERENCES = {
    "0.6 ± 1.3": ("sample_efficiency/laptop", ["5/convit_top1", "100/deit_top1"], ["5/deit_top1", "100/convit_top1"]),
    "6.01 ± 0.79": ("init_heads/laptop", ["Mimetic/vit_t_h3"], ["Imp.-3/vit_t_h3"]),
    "5.77 ± 0.78": ("init_heads/laptop", ["Mimetic/vit_t_h3"], ["Imp.-5/vit_t_h3"]),
    "1.9 ± 1.5": (
        "init_heads/laptop",
        ["Imp.-3/vit_t_h8", "Trunc Normal/vit_t_h3"],
        ["Imp.-3/vit_t_h3", "Trunc Normal/vit_t_h8"],
    ),
    "4.9 ± 1.1": ("cmhsa_cifar100/laptop", ["CMHSA-3 (ours)/top1"], ["CMHSA (2nd phase)/top1"]),
    "0.5 ± 1.8": ("cmhsa_cifar100/laptop", ["CMHSA-3 (ours)/top1"], ["CMHSA-3 (1st phase)/top1"]),
    "1.5 ± 1.7": (
        "convit_distillation/laptop",
        ["Hard distillation/convit_s_plus"],
        ["No distillation/convit_s_plus"],
    ),
    "1.0 ± 1.7": ("convit_distillation/laptop", ["No distillation/convit_s_plus"], ["No distillation/deit_b"]),
    "1.8 ± 4.5": ("convit_cifar100/laptop", ["B+/convit_top1", "Ti+/deit_top1"], ["B+/deit_top1", "Ti+/convit_top1"]),
}
OF_NO_BOARD = {"2.0 ± 2.6"}  # of a laptop profile that is gone; the text names the commit


def intervals(text):
    return {f"{mean} ± {half}" for mean, half in INTERVAL.findall(text)}


def cells_of(board):
    with (PUBLISHED / f"{board}.long.csv").open() as lines:
        return {f"{r['row'].split(' / ')[0]}/{r['column']}": r for r in reversed(list(csv.DictReader(lines)))}


def test_each_interval_stands_on_a_board_or_a_page_of_claims_or_is_listed_here():
    pages = [*PUBLISHED.glob("*/*.md"), *PUBLISHED.glob("claims/*.md")]
    printed = set().union(*(intervals(page.read_text()) for page in pages))
    assert intervals(FINDINGS) - printed - set(DIFFERENCES) - OF_NO_BOARD == set()
    assert set(DIFFERENCES) | OF_NO_BOARD <= intervals(FINDINGS)


@pytest.mark.parametrize(("written", "board", "added", "taken"), [(k, *v) for k, v in DIFFERENCES.items()])
def test_an_interval_that_no_board_prints_is_welchs_of_its_cells(written, board, added, taken):
    cells = cells_of(board)
    mean = sum(float(cells[c]["mean"]) for c in added) - sum(float(cells[c]["mean"]) for c in taken)
    sizes = [int(cells[c]["n"]) for c in added + taken]
    shares = [float(cells[c]["sd"]) ** 2 / n for c, n in zip(added + taken, sizes, strict=True)]
    df = sum(shares) ** 2 / sum(s**2 / (n - 1) for s, n in zip(shares, sizes, strict=True))
    half = students_t.ppf(0.975, df) * math.sqrt(sum(shares))
    digits = len(written.split(".")[-1])
    assert f"{abs(mean):.{digits}f} ± {half:.{digits}f}" == written


def test_a_bold_interval_excludes_zero():
    bold = [INTERVAL.fullmatch(part) for part in re.findall(r"\*\*([^*]+)\*\*", FINDINGS)]
    found = [(float(m[1]), float(m[2])) for m in bold if m]
    assert len(found) > 30
    assert all(mean > half for mean, half in found), found
