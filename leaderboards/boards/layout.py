"""The papers' tables, and the places in them of a suite's entries, derived columns, figures and headline.

Cells stay strings, as their decimals show how the paper rounded each column. The layout is checked before any run is
read, so that a misspelt column is an error at once.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from leaderboards.boards.metrics import check_metric
from suite.base.errors import RecordError, SpecError, check_name
from suite.papers import find_table
from suite.spec.figures import Figure, RunFigure, TableFigure
from suite.spec.profile import Entry, Place, Profile, Row
from suite.spec.suite import ChangeFrom, Derived, Gain, RankedWithin, RelativeGain, RelativeTo, Suite, Table


@dataclass(frozen=True)
class PaperTable:
    """A table as printed: ``rows`` maps the leading ``row_keys`` columns to the row's cells by column.

    Where the paper only draws, the layout is ours and its cells are empty; such columns have ``own_decimals``. On
    another image set no number ``is_comparable`` with a printed one.
    """

    name: str
    header: tuple[str, ...]
    row_keys: tuple[str, ...]
    rows: dict[tuple[str, ...], dict[str, str]]
    own_decimals: int = 1
    is_comparable: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return self.header[len(self.row_keys) :]

    def value(self, row: tuple[str, ...], column: str) -> float | None:
        """The printed number; None where the cell is empty, or of other images. RecordError if it is no number."""
        text = self.rows[row][column]
        try:
            return float(text) if text and self.is_comparable else None
        except ValueError as error:
            raise RecordError(
                f"table {self.name}, row {' / '.join(row)}, column {column}: found {text!r}, expected a number. "
                "Correct the CSV, or make the column a row key."
            ) from error

    def decimals(self, column: str) -> int:
        """The number of decimals that the paper prints in this column; our own choice where it prints nothing."""
        printed = [cells[column] for cells in self.rows.values() if cells[column]]
        return max((len(text.partition(".")[2]) for text in printed), default=self.own_decimals)


def load_paper_table(name: str, row_keys: tuple[str, ...], own_decimals: int = 1) -> PaperTable:
    """Read ``suite/papers/<paper>/printed_tables/<name>.csv``; ``own_decimals`` are those of columns without a number.

    Raises:
        SpecError: There is no such table.
        RecordError: ``row_keys`` are not its leading columns or are the same in two rows, or a row is ragged.
    """
    path = find_table(name)
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = (tuple(line) for line in csv.reader(file))
    if header[: len(row_keys)] != row_keys:
        raise RecordError(f"{path.name} begins with the columns {header}, expected row keys {row_keys} first.")
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise RecordError(f"{path.name}:{number} has {len(line)} cells, its header {len(header)}. Correct the CSV.")
        key = line[: len(row_keys)]
        if key in rows:
            raise RecordError(f"{path.name}:{number} repeats the row {key}. Add a row key that tells the rows apart.")
        rows[key] = dict(zip(header, line, strict=True))
    return PaperTable(name, header, row_keys, rows, own_decimals)


RESERVED = ("long", "runs", "challengers")  # <profile>.long.csv and the like are no tables


def lay_out(table: Table, entries: Iterable[Entry]) -> PaperTable:
    """The paper's table, or our own layout: the entries' rows in order of first appearance. The columns of custom
    models follow. SpecError if the paper has no such table, RecordError if its CSV cannot be used."""
    if table.is_papers:
        paper = load_paper_table(table.name, table.row_keys, table.decimals)
    else:
        own: dict[Row, dict[str, str]] = {entry.row: dict.fromkeys(table.columns, "") for entry in entries}
        paper = PaperTable(table.name, (*table.row_keys, *table.columns), table.row_keys, own, table.decimals)
    if not table.custom_columns:
        return paper
    empty = dict.fromkeys(table.custom_columns, "")
    rows = {row: cells | empty for row, cells in paper.rows.items()}
    return replace(paper, header=(*paper.header, *table.custom_columns), rows=rows)


def check_layout(suite: Suite, profile: Profile) -> None:
    """Check a profile's entries, and the suite's derived columns, figures and headline, against its tables.

    Raises:
        SpecError: A table does not have something, or two entries fill one place.
        RecordError: A paper's CSV cannot be used.
    """
    names = [table.name for table in suite.tables] + [figure.name for figure in suite.figures]
    for name in (name for i, name in enumerate(names) if name in RESERVED or name in names[:i]):
        raise SpecError(f"suite {suite.name}: the name {name!r} is taken; give that table or figure another.")
    scales = {id(scale): scale for scale in (profile, *suite.profiles.values())}.values()
    layouts = {}  # a figure may name a row that this profile leaves out
    for table in suite.tables:
        layouts[table.name] = lay_out(table, (e for scale in scales for e in suite.entries_of(scale, table)))
        entries = suite.entries_of(profile, table)
        _check_entries(suite, entries, layouts[table.name])
        if table.baseline:
            check_name("column", table.baseline, layouts[table.name].columns)
        for derived in table.derived:
            _check_derived(derived, entries, layouts[table.name])
        for key in table.ranked.row_keys if isinstance(table.ranked, RankedWithin) else ():
            check_name("row key", key, layouts[table.name].row_keys)
    for entry in profile.entries:
        suite.table(entry.table)
    for place in (suite.headline.better, suite.headline.baseline):
        _check_place(place, suite, layouts)
    for figure in suite.figures:
        _check_figure(figure, suite, layouts)


def _check_entries(suite: Suite, entries: Sequence[Entry], paper: PaperTable) -> None:
    places: set[tuple[Row, str]] = set()
    for entry in entries:
        _check_row(entry.row, paper)
        for column, metric in entry.columns.items():
            check_name("column", column, paper.columns)
            check_metric(metric)
            if (entry.row, column) in places:
                raise SpecError(
                    f"suite {suite.name}: two entries fill row {' / '.join(entry.row)}, column {column}; "
                    "expected one. Remove one of them."
                )
            places.add((entry.row, column))


def _check_derived(derived: Derived, entries: Sequence[Entry], paper: PaperTable) -> None:
    columns = [derived.column]
    if isinstance(derived, RelativeTo):
        check_metric(derived.metric)
        _check_row(derived.baseline, paper)
        measured: dict[Row, set[str]] = {}
        for entry in entries:
            if entry.beside:
                continue
            measured.setdefault(entry.row, set()).update(candidate.configuration_id for candidate in entry.candidates)
            if len(measured[entry.row]) > len(entry.candidates):
                raise SpecError(
                    f"column {derived.column} needs one experiment in row {' / '.join(entry.row)}, found several "
                    "entries with different ones. Split the row, or measure that column by an entry."
                )
    elif isinstance(derived, ChangeFrom):
        columns.append(derived.of)
        _check_row(derived.baseline, paper)
    elif isinstance(derived, RelativeGain | Gain):
        columns += [derived.better, derived.baseline]
    else:
        columns += derived.columns
    for column in columns:
        check_name("column", column, paper.columns)


def _check_figure(figure: Figure, suite: Suite, layouts: dict[str, PaperTable]) -> None:
    if isinstance(figure, RunFigure):
        for place in figure.places:
            _check_place(place, suite, layouts)
    if isinstance(figure, TableFigure):
        paper = layouts[suite.table(figure.table).name]
        for key in figure.row_keys:
            check_name("row key", key, paper.row_keys)
        for column in figure.columns:
            check_name("column", column, paper.columns)


def _check_place(place: Place, suite: Suite, layouts: dict[str, PaperTable]) -> None:
    paper = layouts[suite.table(place.table).name]
    _check_row(place.row, paper)
    check_name("column", place.column, paper.columns)


def _check_row(row: Row, paper: PaperTable) -> None:
    if len(row) != len(paper.row_keys):
        raise SpecError(f"row {' / '.join(row)} has {len(row)} keys, table {paper.name} {len(paper.row_keys)}.")
    check_name("row", " / ".join(row), (" / ".join(known) for known in paper.rows))
