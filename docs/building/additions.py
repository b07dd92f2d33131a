"""Adds what Sphinx and Furo leave out: formulas that need no script, docstrings in plain text, and pages for all.

Formulas are MathML, which browsers draw without a font of ours. Docstrings are written for readers of the code: ``|x|``
and ``*`` mean themselves in them, and what is indented is a formula or a table, whose columns must stay. For keyboards
and screen readers, code and tables that have a scroll bar of their own can be reached, the sides of a page have names,
the search has a heading, and no column's heading is empty.
"""

import re
from pathlib import Path
from typing import Any

from docutils.nodes import Element, SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html import HTMLTranslator

_CODE = re.compile(r"(``.+?``)")
_MARKUP = re.compile(r"([|*`]|(?<=\w)_(?!\w))")
_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields|Differs|Note|Example|Examples):\s*$", re.MULTILINE)
_CHANGES = {
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper ': '<div tabindex="0" class="table-wrapper ',
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer': '<aside aria-label="The manual" class="sidebar-drawer',
    '\n<div id="search-results"></div>': '\n<h1>Search</h1><div id="search-results"></div>',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
}


def write_inline(translator: HTMLTranslator, node: Element) -> None:
    """Write ``$x$``."""
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def write_block(translator: HTMLTranslator, node: Element) -> None:
    """Write ``$$x$$``, with a scroll bar of its own where a phone is too narrow."""
    formula = tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math" style="overflow-x: auto" tabindex="0" role="group">{formula}</div>')
    raise SkipNode


def change_docstring(app: Sphinx, what: str, *described: Any) -> None:
    """Change the lines of a docstring, which come last, in place, before napoleon reads them: escape what only looks
    like markup, and mark indented blocks, but those of its sections, as literal ones."""
    lines = described[-1]
    found = [""] if what in ("attribute", "property") else []  # or what stands before a colon is taken for a type
    in_section = is_literal = False
    for block in "\n".join(lines).split("\n\n"):
        is_indented = block.startswith("    ")
        in_section = bool(_SECTION.match(block)) or (in_section and is_indented)
        was_literal, is_literal = is_literal, is_indented and not in_section
        found += ["::", ""] if is_literal and not was_literal else []
        if not is_literal:
            parts = _CODE.split(block)
            block = "".join(part if part.startswith("``") else _MARKUP.sub(r"\\\1", part) for part in parts)
        found += [*block.split("\n"), ""]
    lines[:] = found[:-1]


def open_to_all(app: Sphinx, error: Exception | None) -> None:
    """Change the site's own pages; one that was not written again has been changed before, and stays as it is."""
    outdir = Path(app.outdir)
    own = [path for path in outdir.rglob("*.html") if "published" not in path.relative_to(outdir).parts]
    for path in own if error is None else ():
        text = path.read_text(encoding="utf-8")
        for found, wanted in _CHANGES.items():
            text = text.replace(found, wanted)
        path.write_text(text, encoding="utf-8")
