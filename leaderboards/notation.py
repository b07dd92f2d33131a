"""How numbers, differences and headlines are written wherever they are shown, and the Markdown of tables and lists.

A number has the decimals of the paper's column, or more where these would leave nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from leaderboards.boards import SuiteBoard
from leaderboards.cells import Cell
from leaderboards.collect import is_accuracy

NOTHING = "-"


def write_value(value: float | None, decimals: int) -> str:
    """``value`` rounded to ``decimals``; a dash where there is none."""
    return NOTHING if value is None else f"{value:z.{decimals}f}"


def write_signed(value: float | None, decimals: int) -> str:
    """A difference, with its sign; a dash where there is none."""
    return NOTHING if value is None else f"{value:+z.{decimals}f}"


def write_mean(cell: Cell, decimals: int) -> str:
    """The mean, with its sign where it is a change; a dash where there is none."""
    return (write_signed if cell.is_change else write_value)(cell.mean, decimals)


def readable_decimals(cell: Cell, decimals: int) -> int:
    """The paper's, or as many as two digits take where these would round a small model's size to 0."""
    mean = abs(cell.mean or 0.0)
    if not cell.metric or is_accuracy(cell.metric) or mean == 0 or round(mean, decimals) > 0:
        return decimals
    return 1 - math.floor(math.log10(mean))


def write_interval(cell: Cell, decimals: int) -> str:
    """`` ± 0.4`` where it is symmetric about the mean, else `` (34.1 to 35.4)``; empty where there is none, and for
    what no seed changes, such as a number of parameters."""
    interval = cell.interval
    if interval is None or (interval.sd == 0 and not (is_accuracy(cell.metric) or cell.is_change)):
        return ""
    if interval.half_width is not None:
        return f" ± {interval.half_width:.{decimals}f}"
    return f" ({write_value(interval.low, decimals)} to {write_value(interval.high, decimals)})"


def write_ours(cell: Cell, decimals: int) -> str:
    """Mean and interval, without status: ``34.8 ± 0.4``; empty where there is no mean."""
    decimals = readable_decimals(cell, decimals)
    return "" if cell.mean is None else write_mean(cell, decimals) + write_interval(cell, decimals)


def write_status(cell: Cell) -> str:
    """``n=3`` for a cell that is done, else what it lacks: ``partial 1/3``, counted over all candidates of a search."""
    of = cell.coverage
    if of.status == "done":
        return f"n={of.num_done}"
    if of.search is None:
        return f"{of.status} {of.num_done}/{of.num_planned}"
    return f"{of.status} {of.search.num_done}/{of.num_planned * of.search.num_candidates}"


def scale_title(boards: SuiteBoard) -> str:
    """One line that says whether the numbers may be compared with the paper's."""
    if not boards.profile.scale_note:
        return f"Profile {boards.profile_name}: the paper's own scale."
    return f"Profile {boards.profile_name}: another scale than the paper's, not comparable with its numbers."


def write_headline(boards: SuiteBoard) -> str:
    """``ConViT over DeiT: +2.0 ± 1.9 points (paper: +13.0)``."""
    text, cell = boards.suite.headline.text, boards.headline
    if cell is None:
        return f"{text}: not in this profile"
    paper = "" if cell.paper is None else f" (paper: {write_signed(cell.paper, difference_decimals(cell))})"
    return f"{text}: {write_difference(cell)}{paper}"


def write_difference(cell: Cell) -> str:
    """A headline's: ``+2.0 ± 1.9 points``, in points of percent where these are accuracies. Without an interval it
    says of how many seeds it is."""
    if cell.mean is None:
        return write_status(cell)
    decimals = difference_decimals(cell)
    unit = " points" if is_accuracy(cell.metric) else ""
    status = "" if cell.status == "done" and cell.interval is not None else f", {write_status(cell)}"
    return write_signed(cell.mean, decimals) + write_interval(cell, decimals) + unit + status


def difference_decimals(cell: Cell) -> int:
    return 1 if is_accuracy(cell.metric) else 2


def pad(header: list[str], lines: list[list[str]], right: list[bool]) -> str:
    """A Markdown table whose columns also line up as plain text."""
    cells = [[text.replace("|", "\\|").replace("<", "&lt;") for text in line] for line in [header, *lines]]
    widths = [max(3, *(len(line[i]) for line in cells)) for i in range(len(header))]
    rule = ["-" * (w - 1) + ":" if r else "-" * w for w, r in zip(widths, right, strict=True)]
    rows = [
        [text.rjust(w) if r else text.ljust(w) for text, w, r in zip(line, widths, right, strict=True)]
        for line in cells
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [rows[0], rule, *rows[1:]])


def section(title: str, items: Iterable[str]) -> list[str]:
    text = "\n".join(f"- {item}" for item in items)
    return [f"{title}\n\n{text}"] if text else []
