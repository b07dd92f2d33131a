"""Leaderboard -> paragraphs that explain its numbers, marks and verdicts."""

from leaderboards.boards.board import Leaderboard
from suite.spec.suite import RankedWithin

LEGEND = """\
Ours is the mean over n training seeds ± half its 95 % confidence interval, conditional on this test set{images}\
: Student's t, for numbers made of several (changes, gains) by seed; none below three
seeds, nor for what no seed changes. ± has two significant digits and the mean as many decimals; without it they are the
paper's, or more where these would leave only zeros.{compared}
What is not complete is marked in the table: partial 2/3 (two of three runs are done), failed (a seed has no usable
result; the mean is of the others, and the CSV leaves the place empty), not counted (the same, for a result of another
version of the protocol), missing (no seed is done). A dash: no number, or a place that this profile does not fill."""
ONE_SUBSET = " and on this\nsubset of the training images"
OWN_SUBSETS = " but not on\nthe training images, which each seed draws anew"
DIFF = " Diff is ours minus the paper's, before rounding."
EFFECT = """
Effect is by how many points a number exceeds the baseline that it competes with, and in brackets the same in the
paper's numbers: away from the paper's scale only such effects can be set beside each other."""
RANKS = """\
#1-3: between the best and the third of {group}, where cells show the same metric. Of k competitors a cell stands
between 1 + those that are significantly better and k - those that are significantly worse (Student's t by seed for each
pair at 5 %, by Holm's method over all pairs)."""
COMPETITORS = {"in_columns": "a column", "in_rows": "a row", "in_table": "the whole table"}
VERDICTS = """\
Verdict on the paper's number: reproduced (the 90 % interval lies within one point of it), contradicted (it does not,
and the number would be improbable, p < 0.05 by Benjamini and Hochberg's method over the table, as the mean of the
paper's own seeds, one unless it says otherwise, if they scattered as ours do), else undecided."""


def explain(leaderboard: Leaderboard) -> list[str]:
    """The paragraphs that this leaderboard needs, as plain text."""
    boards, has_verdicts = leaderboard.tables.values(), any(cell.comparison.verdict for _, cell in leaderboard.cells)
    has_diff = any(board.has_paper and board.is_at_papers_scale for board in boards)
    compared = DIFF if has_diff else EFFECT if any(board.effects for board in boards) else ""
    is_drawn = any(entry.experiment.images_drawn_by_seed for entry in leaderboard.profile.entries)
    legend = LEGEND.format(images=OWN_SUBSETS if is_drawn else ONE_SUBSET, compared=compared)
    return [legend, *_rank_legend(leaderboard), *([VERDICTS] if has_verdicts else [])]


def _rank_legend(leaderboard: Leaderboard) -> list[str]:
    """Explain ranks, with the tables' names where they do not mean the same in all."""
    items: dict[str, list[str]] = {}
    for board in leaderboard.tables.values():
        if any(cell.comparison.ranks for cell in board.cells.values()):
            ranked = board.table.ranked
            if isinstance(ranked, RankedWithin):
                group = f"a column among the rows of one {' and '.join(ranked.row_keys)}"
            else:
                group = COMPETITORS[ranked]
            items.setdefault(RANKS.format(group=group), []).append(board.table.item)
    return [f"{'; '.join(of)}: {said}" if len(items) > 1 else said for said, of in items.items()]
