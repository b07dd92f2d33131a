"""Whether a suite fits the paper's table: checked before any run is read, so that a misspelt column is told at once."""

from __future__ import annotations

from leaderboards.metrics import check_metric
from leaderboards.papers import PaperTable
from suite.errors import SpecError, unknown_name
from suite.spec import Profile, Suite


def check_layout(suite: Suite, profile: Profile, paper: PaperTable) -> None:
    """Check rows, columns, metrics, derived columns and the figure against the paper's table.

    Raises:
        SpecError: names what the table does not have, or a place that two entries claim.
    """
    places: set[tuple[tuple[str, ...], str]] = set()
    for entry in profile.entries:
        if entry.row not in paper.rows:
            raise unknown_name("row", " / ".join(entry.row), (" / ".join(row) for row in paper.rows))
        for column, metric in entry.columns.items():
            _check_column(column, paper)
            check_metric(metric)
            if (entry.row, column) in places:
                raise SpecError(
                    f"suite {suite.name}: two entries fill row {' / '.join(entry.row)}, column {column}; "
                    "expected one. Remove one of them."
                )
            places.add((entry.row, column))
    for gain in suite.derived:
        for column in (gain.column, gain.better, gain.baseline):
            _check_column(column, paper)
    _check_figure(suite, paper)


def _check_figure(suite: Suite, paper: PaperTable) -> None:
    figure = suite.figure
    if figure is None:
        return
    if figure.x_key not in paper.row_keys:
        raise unknown_name("row key", figure.x_key, paper.row_keys)
    for column in figure.lines.values():
        _check_column(column, paper)
    if figure.gain_column is not None:
        _check_column(figure.gain_column, paper)


def _check_column(column: str, paper: PaperTable) -> None:
    columns = paper.header[len(paper.row_keys) :]
    if column not in columns:
        raise unknown_name("column", column, columns)
