"""Puts into the written pages what Sphinx and Furo leave out for keyboards and screen readers.

Code and tables that have a scroll bar of their own can be reached by the keyboard, the sides of a page have names, the
search has a heading, and no column's heading is empty.
"""

from pathlib import Path

from sphinx.application import Sphinx

CHANGES = {
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper ': '<div tabindex="0" class="table-wrapper ',
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer': '<aside aria-label="The manual" class="sidebar-drawer',
    '\n<div id="search-results"></div>': '\n<h1>Search</h1><div id="search-results"></div>',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
}


def open_to_all(app: Sphinx, error: Exception | None) -> None:
    """Change the site's own pages; one that was not written again has been changed before, and stays as it is."""
    outdir = Path(app.outdir)
    own = [path for path in outdir.rglob("*.html") if "published" not in path.relative_to(outdir).parts]
    for path in own if error is None else ():
        text = path.read_text(encoding="utf-8")
        for found, wanted in CHANGES.items():
            text = text.replace(found, wanted)
        path.write_text(text, encoding="utf-8")
