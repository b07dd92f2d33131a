"""Cells of a table -> effects: by how much each exceeds the baseline that it competes with.

Away from the paper's scale single numbers cannot be compared with the paper's, but differences of rows can.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboards.boards.cell_values import competitors_of, difference_of
from leaderboards.boards.cells import Cell
from leaderboards.boards.metrics import is_accuracy
from suite.spec.profile import Place, Row
from suite.spec.suite import ChangeFrom, Gain, Suite, Table

Key = tuple[Row, str]


@dataclass(frozen=True)
class CellEffect:
    """``difference`` is in points, ours and the paper's; None at the baseline itself."""

    baseline: Key
    difference: Cell | None


def find_effects(suite: Suite, table: Table, cells: Mapping[Key, Cell]) -> dict[Key, CellEffect]:
    """Compare the accuracies that compete in a table, but for columns that have changes, gains or custom models of
    their own.

    The suite's headline names the baseline, in its own table and, by its row and column, in others.
    """
    changed = {derived.of for derived in table.derived if isinstance(derived, ChangeFrom)}
    changed |= {derived.better for derived in table.derived if isinstance(derived, Gain)}
    skipped = changed | {*table.custom_columns}
    groups: dict[tuple[str, ...], list[Key]] = {}
    for key, cell in cells.items():
        if table.ranked != "none" and is_accuracy(cell.metric) and cell.provenance.experiment and key[1] not in skipped:
            groups.setdefault((cell.metric, *competitors_of(table, cell)), []).append(key)
    effects = {}
    baseline = suite.headline.baseline
    like = baseline.model_copy(column=table.baseline or baseline.column)
    for keys in groups.values():
        chosen = choose_baseline(keys, like)
        for key in keys if len(keys) > 1 else ():
            found = None if key == chosen else difference_of(cells[key], cells[chosen])
            effects[key] = CellEffect(chosen, found)
    return effects


def choose_baseline(keys: Sequence[Key], baseline: Place) -> Key:
    """The competitor that is most like the headline's baseline, by its column and its row's keys; else the first."""

    def likeness(key: Key) -> tuple[int, bool]:
        row, column = key
        return sum(ours == its for ours, its in zip(row, baseline.row, strict=False)), column == baseline.column

    return max(keys, key=likeness)
