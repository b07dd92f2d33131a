"""Docstrings -> what Sphinx reads without a complaint: they are written for readers of the code, in plain text.

``|x|`` and ``*`` mean themselves in them, and what is indented is a formula or a table, whose columns must stay.
"""

import re

from sphinx.application import Sphinx

_CODE = re.compile(r"(``.+?``)")
_MARKUP = re.compile(r"([|*`]|(?<=\w)_(?!\w))")
_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields|Differs|Note|Example|Examples):\s*$")


def to_rst(lines: list[str]) -> list[str]:
    """Escape what only looks like markup, and mark indented blocks as literal ones.

    Args:
        lines: lines of a docstring, without the indentation of all.

    Returns:
        The lines for napoleon, whose sections stay as they are but for the escapes.
    """
    found: list[str] = []
    in_section = in_block = False
    for number, line in enumerate(lines):
        indented, after_blank = line.startswith("    "), number and not lines[number - 1].strip()
        in_section = bool(_SECTION.match(line)) or (in_section and (indented or not line.strip()))
        if in_block and line.strip() and not indented:
            in_block = False
        elif indented and after_blank and not in_section and not in_block:
            in_block = True
            found += ["::", ""]
        found.append(line if in_block else _escape(line))
    return found


def _escape(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(part if part.startswith("``") else _MARKUP.sub(r"\\\1", part) for part in parts)


def process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Change a docstring in place, before napoleon reads it."""
    lines[:] = to_rst(lines)
    if what in ("attribute", "property"):
        lines.insert(0, "")  # or napoleon takes what stands before a colon for a type
