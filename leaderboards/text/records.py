"""Records -> CSV with the same columns in each line, and with the text of others made harmless."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from leaderboards.text.escaping import escape_cell


def render_records(columns: Sequence[str], records: Iterable[Mapping[str, object]]) -> str:
    """CSV with a header and a line for each record; ValueError if a record has not exactly these columns."""
    lines: list[Sequence[object]] = [columns]
    for record in records:
        if record.keys() != set(columns):
            differing = ", ".join(sorted(record.keys() ^ set(columns)))
            raise ValueError(f"a record and its columns differ in {differing}; expected {', '.join(columns)}")
        lines.append([escape_cell(record[name]) for name in columns])
    return render_lines(lines)


def render_lines(lines: Iterable[Iterable[object]]) -> str:
    """CSV with a line for each of ``lines``, whose values are written as they are."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def format_numbers(numbers: Mapping[str, object], digits: int = 10) -> dict[str, str]:
    """Write numbers with this many significant digits; "" for None."""
    return {name: "" if number is None else f"{number:.{digits}g}" for name, number in numbers.items()}
