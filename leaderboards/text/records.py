"""Records -> CSV with the same columns in each line, and with the text of others made harmless."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from leaderboards.text.escaping import escape_cell


def render_records(columns: Sequence[str], records: Iterable[Mapping[str, object]], digits: int = 0) -> str:
    """CSV with a header and a line for each record; ValueError if a record has not exactly these columns. Fractions
    have so many significant ``digits``, or with 0 all of theirs."""
    lines: list[Sequence[object]] = [columns]
    for record in records:
        if record.keys() != set(columns):
            differing = ", ".join(sorted(record.keys() ^ set(columns)))
            raise ValueError(f"a record and its columns differ in {differing}; expected {', '.join(columns)}")
        values = [record[name] for name in columns]
        lines.append([f"{it:.{digits}g}" if digits and isinstance(it, float) else escape_cell(it) for it in values])
    return render_lines(lines)


def render_lines(lines: Iterable[Iterable[object]]) -> str:
    """CSV with a line for each of ``lines``, whose values are written as they are."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
