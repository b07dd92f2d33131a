"""The published boards' headlines -> the table of boards in README.md and in the manual.

    python -m leaderboards.overview     # after boards were copied to leaderboards/published/

Each file has the table between two comments. Read are the boards themselves, so that the table says what they say.
"""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

from suite.errors import RecordError
from suite.files import write_atomically
from suite.protocol_changes import PROTOCOL_VERSION
from suite.suites import get_suite, list_suites

ROOT = Path(__file__).parents[1]
FILES = (ROOT / "README.md", ROOT / "docs" / "suites.md")
BEGIN = "<!-- boards: written by `python -m leaderboards.overview` -->"
END = "<!-- end of boards -->"
_HEADLINE = re.compile(r"^Headline: (.*?)\.?$", re.MULTILINE)


def render_table(folder: Path, published: Path) -> str:
    """Markdown: a line a suite, with what is compared and what the published boards say of it.

    Args:
        folder: of the file that the table is for, from which its links start.
        published: holds ``<suite>/<profile>.md`` with ``.runs.csv`` beside.
    """
    lines = ["| suite | of | question | headline |", "|---|---|---|---|"]
    found = {name: sorted((published / name).glob("*.md")) for name in list_suites()}
    for name, boards in sorted(found.items(), key=lambda item: (not item[1], item[0])):  # what there is to see first
        suite = get_suite(name)
        link = os.path.relpath(boards[0] if boards else ROOT / "suite" / "suites" / f"{name}.py", folder)
        paper = suite.paper.partition(" (")[0]
        told = "<br>".join(map(_headline, boards)) or f"{suite.headline.text}: not trained yet"
        lines.append(f"| [{name}]({link}) | {paper}, {suite.item} | {suite.question} | {told} |")
    return "\n".join(lines)


def replace_table(text: str, table: str) -> str:
    """Put the table between the two comments.

    Raises:
        RecordError: they are not there once each.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise RecordError(f"found no place for the table of boards; expected the lines {BEGIN} and {END}, once each")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


def _headline(board: Path) -> str:
    """``laptop: ConViT over DeiT …: +1.78 ± 0.84 points (paper: +13.0)``, and an older protocol's name."""
    found = _HEADLINE.search(board.read_text())
    if found is None:
        raise RecordError(f"{board} has no line that begins with Headline: build it again")
    with board.with_suffix(".runs.csv").open() as file:
        protocols = {int(line["protocol_version"]) for line in csv.DictReader(file) if line["protocol_version"]}
    old = f"; of protocol {min(protocols)}" if protocols and min(protocols) < PROTOCOL_VERSION else ""
    return f"{board.stem}: {found[1]}{old}"


if __name__ == "__main__":
    for path in FILES:
        table = render_table(path.parent, ROOT / "leaderboards" / "published")
        write_atomically(path, replace_table(path.read_text(), table).encode())
