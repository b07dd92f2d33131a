"""The texts of numbers, differences and headlines, wherever they are shown, and the Markdown of tables and lists.

A number with an interval has as many decimals as show two significant digits of the interval; else those of the paper's
column, or more where these would leave only zeros.
"""

import math
from collections.abc import Iterable

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.boards.metrics import is_accuracy
from leaderboards.published_boards import BoardHeadline
from leaderboards.significance.power import MOST_SEEDS, POWER, seeds_needed
from leaderboards.significance.rules import SIGNIFICANCE
from suite.store.run_status import name_state

NOTHING = "-"


def format_value(value: float | None, decimals: int) -> str:
    """``value`` rounded to ``decimals``; a dash where there is none."""
    return NOTHING if value is None else f"{value:z.{decimals}f}"


def format_signed(value: float | None, decimals: int) -> str:
    """A difference, with its sign; a dash where there is none."""
    return NOTHING if value is None else f"{value:+z.{decimals}f}"


def format_mean(cell: Cell, decimals: int) -> str:
    """The mean, with its sign where it is a change; a dash where there is none."""
    return (format_signed if cell.is_change else format_value)(cell.mean, decimals)


def shown_decimals(cell: Cell, decimals: int) -> int:
    """The decimals that show two significant digits of ±; without an interval those of the paper, or more."""
    if cell.interval is not None:
        return significant_decimals(cell.interval.half_width)
    return readable_decimals(cell, decimals)


def readable_decimals(cell: Cell, decimals: int) -> int:
    """The paper's decimals, or those of two digits where the paper's would round a small model's size to 0."""
    mean = abs(cell.mean or 0.0)
    if not cell.metric or is_accuracy(cell.metric) or mean == 0 or round(mean, decimals) > 0:
        return decimals
    return 1 - math.floor(math.log10(mean))


def significant_decimals(half_width: float) -> int:
    """The decimals that show its first two digits."""
    return max(0, 1 - math.floor(math.log10(float(f"{half_width:.1e}"))))


def format_interval(cell: Cell, decimals: int) -> str:
    """`` ± 0.41``; empty where there is none."""
    return "" if cell.interval is None else f" ± {cell.interval.half_width:.{decimals}f}"


def format_ours(cell: Cell, decimals: int) -> str:
    """Mean and interval, without status: ``34.82 ± 0.41``; empty where there is no mean."""
    decimals = shown_decimals(cell, decimals)
    return "" if cell.mean is None else format_mean(cell, decimals) + format_interval(cell, decimals)


def format_ranks(cell: Cell) -> str:
    """``#1``, or ``#1-3`` where the seeds leave it open; in brackets where no other's rank counts it, empty for what is
    not ranked."""
    if cell.comparison.ranks is None:
        return ""
    best, worst = cell.comparison.ranks
    ranks = f"#{best}" if best == worst else f"#{best}-{worst}"
    return f"({ranks})" if cell.comparison.is_aside else ranks


def format_status(cell: Cell) -> str:
    """``n=3`` for a cell that is done, else what it lacks: ``partial 1/3``, counted over all candidates of a search.
    The seeds of a number that leaves out runs follow: ``partial 2/3, n=1, 2 runs unmatched``."""
    of, matched = cell.coverage, _format_matched(cell)
    if of.status == "done":
        return matched or f"n={len(cell.estimate.values) or of.num_done}"
    done, planned = of.num_done, of.num_planned
    if of.search is not None:
        done, planned = of.search.num_done, planned * of.search.num_candidates
    return f"{name_state(of.status)} {done}/{planned}" + (f", {matched}" if matched and cell.is_usable else "")


def _format_matched(cell: Cell) -> str:
    """``n=2, 1 run unmatched`` where runs are left out as the other number lacks their seed; else empty."""
    count, left_out = len(cell.estimate.values), cell.estimate.num_unmatched
    matched = f"n={count}, {left_out} run{'s' * (left_out > 1)} unmatched" if count else "no seeds matched"
    return matched if left_out else ""


def scale_title(leaderboard: Leaderboard) -> str:
    """One line that says whether the numbers may be compared with the paper's."""
    if not leaderboard.profile.scale_note:
        return f"Profile {leaderboard.profile_name}: the paper's own scale."
    return f"Profile {leaderboard.profile_name}: another scale than the paper's, not comparable with its numbers."


def make_headline(leaderboard: Leaderboard) -> BoardHeadline:
    """The headline in words and numbers, as it stands beside a board in ``<profile>.headline.json``: ``ConViT over
    DeiT: +2.0 ± 1.9 points (paper: +13.0), searched 12 against 1``."""
    cell = leaderboard.headline
    number = format_difference(cell) if cell else "not in this profile"
    paper = f" (paper: {format_signed(cell.paper, paper_decimals(cell))})" if cell and cell.paper is not None else ""
    searches = _format_searches(leaderboard) if cell else ""
    return BoardHeadline(
        told=f"{leaderboard.suite.headline.text}: {number}{paper}{searches}",
        ours=f"{number}{searches}",
        mean=cell and cell.mean,
        variances=(cell.estimate.sd**2,) if cell and cell.estimate.sd else (),
        num_cells=leaderboard.num_cells,
        num_missing=leaderboard.count("missing"),
    )


def format_power(leaderboard: Leaderboard) -> str:
    """``To find such an effect takes 4 seeds of each configuration …``; "" where the headline's seeds cannot tell."""
    headline = make_headline(leaderboard)
    if not headline.mean or not headline.variances:
        return ""
    count = seeds_needed(headline.mean, math.sqrt(sum(headline.variances))) or f"more than {MOST_SEEDS:,}"
    return (
        f"To find such an effect takes {count} seeds of each configuration "
        f"(power {100 * POWER:.0f} % at {100 * SIGNIFICANCE:.0f} %, if these means and deviations are true)."
    )


def _format_searches(leaderboard: Leaderboard) -> str:
    """The number of candidates of each side, where one was searched."""
    sides = [
        leaderboard.cell(place) for place in (leaderboard.suite.headline.better, leaderboard.suite.headline.baseline)
    ]
    counts = [side.coverage.search.num_candidates if side and side.coverage.search else 1 for side in sides]
    return f", searched {counts[0]} against {counts[1]}" if max(counts) > 1 else ""


def format_difference(cell: Cell) -> str:
    """A headline's difference: ``+2.0 ± 1.9 points``; without an interval with its number of seeds."""
    if cell.mean is None:
        return format_status(cell)
    decimals = shown_decimals(cell, paper_decimals(cell))
    unit = " points" if is_accuracy(cell.metric) else ""
    whole = cell.status == "done" and cell.interval is not None and not cell.estimate.num_unmatched
    status = "" if whole else f", {format_status(cell)}"
    return format_signed(cell.mean, decimals) + format_interval(cell, decimals) + unit + status


def format_comparison(board: Board, cell: Cell) -> str:
    """Ours minus the paper's number at its scale; else the effect, the seeds of one that leaves out runs, and in
    brackets the paper's: ``+2.0 ± 2.6 (+13.0)``; a dash where nothing is compared."""
    if board.is_at_papers_scale:
        return format_signed(cell.difference, board.paper.decimals(cell.column))
    effect = board.effects.get((cell.row, cell.column))
    if effect is None or effect.difference is None:
        return NOTHING if effect is None else "baseline"
    cell = effect.difference
    paper = "" if cell.paper is None else f" ({format_signed(cell.paper, paper_decimals(cell))})"
    if not cell.is_usable:
        return NOTHING + paper
    decimals, matched = shown_decimals(cell, paper_decimals(cell)), _format_matched(cell)
    paper = f", {matched}{paper}" if matched else paper
    return format_signed(cell.mean, decimals) + format_interval(cell, decimals) + paper


def paper_decimals(cell: Cell) -> int:
    """The decimals of a headline's difference in the paper's numbers."""
    return 1 if is_accuracy(cell.metric) else 2


def pad(header: list[str], lines: list[list[str]], right: list[bool]) -> str:
    """A Markdown table whose columns also line up as plain text."""
    cells = [
        [text.replace("\n", " ").replace("|", "\\|").replace("<", "&lt;") for text in line] for line in [header, *lines]
    ]
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
