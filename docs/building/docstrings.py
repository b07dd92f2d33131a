"""Docstrings -> what Sphinx reads without a complaint: they are written for readers of the code, in plain text.

``|x|`` and ``*`` mean themselves in them, and what is indented is a formula or a table, whose columns must stay.
"""

import re
from typing import Any

from sphinx.application import Sphinx

_CODE = re.compile(r"(``.+?``)")
_MARKUP = re.compile(r"([|*`]|(?<=\w)_(?!\w))")
_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields|Differs|Note|Example|Examples):\s*$", re.MULTILINE)


def to_rst(lines: list[str]) -> list[str]:
    """Escape what only looks like markup, and mark indented blocks as literal ones.

    Args:
        lines: lines of a docstring, without the indentation of all.

    Returns:
        The lines for napoleon, whose sections stay as they are but for the escapes.
    """
    found = list[str]()
    in_section = is_literal = False
    for block in "\n".join(lines).split("\n\n"):
        is_indented = block.startswith("    ")
        in_section = bool(_SECTION.match(block)) or (in_section and is_indented)
        was_literal, is_literal = is_literal, is_indented and not in_section
        found += ["::", ""] if is_literal and not was_literal else []
        found += [*(block if is_literal else _escape(block)).split("\n"), ""]
    return found[:-1]


def _escape(text: str) -> str:
    parts = _CODE.split(text)
    return "".join(part if part.startswith("``") else _MARKUP.sub(r"\\\1", part) for part in parts)


def process(app: Sphinx, what: str, *described: Any) -> None:
    """Change the lines of a docstring, which come last, in place, before napoleon reads them."""
    lines = described[-1]
    lines[:] = to_rst(lines)
    if what in ("attribute", "property"):
        lines.insert(0, "")  # or napoleon takes what stands before a colon for a type
