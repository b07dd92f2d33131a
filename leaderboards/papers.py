"""The papers' tables. Cells stay strings, because their decimals are how the paper rounded each column."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from suite.errors import RecordError, unknown_name

PAPERS = Path(__file__).parent / "papers"


@dataclass(frozen=True)
class PaperTable:
    """A table as printed: ``rows`` maps the leading ``row_keys`` columns to the row's cells by column.

    A layout of our own, where the paper only draws, has empty cells; ``own_decimals`` are those of such columns.
    """

    name: str
    header: tuple[str, ...]
    row_keys: tuple[str, ...]
    rows: dict[tuple[str, ...], dict[str, str]]
    own_decimals: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return self.header[len(self.row_keys) :]

    def value(self, row: tuple[str, ...], column: str) -> float | None:
        """The printed number, or None where the paper leaves the cell empty.

        Raises:
            RecordError: if the cell is not a number.
        """
        text = self.rows[row][column]
        try:
            return float(text) if text else None
        except ValueError as error:
            raise RecordError(
                f"table {self.name}, row {' / '.join(row)}, column {column}: found {text!r}, expected a number. "
                "Correct the CSV, or make the column a row key."
            ) from error

    def decimals(self, column: str) -> int:
        """How many decimals the paper prints in this column; our own choice where it prints nothing."""
        printed = [cells[column] for cells in self.rows.values() if cells[column]]
        return max((len(text.partition(".")[2]) for text in printed), default=self.own_decimals)


def load_paper_table(name: str, row_keys: tuple[str, ...], own_decimals: int = 1) -> PaperTable:
    """Read ``leaderboards/papers/<name>.csv``; ``own_decimals`` are those of columns without a number.

    Raises:
        SpecError: if there is no such table.
        RecordError: if ``row_keys`` are not its leading columns, do not tell its rows apart, or a row is ragged.
    """
    path = PAPERS / f"{name}.csv"
    if not path.is_file():
        raise unknown_name("paper table", name, (found.stem for found in PAPERS.glob("*.csv")))
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
