"""Records as CSV: a line each, the same columns in all, and what others wrote made harmless."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from leaderboards.text.escaping import escape_cell


def render_records(columns: Sequence[str], records: Iterable[Mapping[str, object]]) -> str:
    """CSV with a header and a line for each record.

    Raises:
        ValueError: if a record has not exactly these columns.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for record in records:
        if record.keys() != set(columns):
            differing = ", ".join(sorted(record.keys() ^ set(columns)))
            raise ValueError(f"a record and its columns differ in {differing}; expected {', '.join(columns)}")
        writer.writerow(escape_cell(record[name]) for name in columns)
    return text.getvalue()


def format_numbers(numbers: Mapping[str, object], digits: int = 10) -> dict[str, str]:
    """Spell numbers with so many significant digits; empty where there is none."""
    return {name: "" if number is None else f"{number:.{digits}g}" for name, number in numbers.items()}
