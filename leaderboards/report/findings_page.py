"""``published/FINDINGS.md``, what the published boards say -> ``findings.html``: the same page in every report."""

import itertools
from collections.abc import Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from leaderboards.published_boards import PUBLISHED
from leaderboards.report.rendering import find_links, render

_FOLDER = f"{PUBLISHED.parent.name}/{PUBLISHED.name}"


def render_findings_html(grid: str = "") -> str:
    """Render the page, with ``grid`` as in ``render_index_html``. Links into the project's folder become the files'
    names, as a report lies elsewhere."""
    title, _, text = (PUBLISHED / "FINDINGS.md").read_text(encoding="utf-8").partition("\n")
    markdown = MarkdownIt("js-default")  # tables, and no HTML
    tokens = markdown.parse(text)
    _name_files(tokens)
    _frame_tables(tokens)
    return render(
        "findings.html.j2",
        title=title.removeprefix("# "),
        place=f"{_FOLDER}/FINDINGS.md",
        findings=Markup(markdown.renderer.render(tokens, markdown.options, {})),
        links=find_links(".", grid),
    )


def _name_files(tokens: Sequence[Token]) -> None:
    """Write the name of a link's file after its text, and a picture's file by its name."""
    for picture in (token for block in tokens for token in block.children or () if token.type == "image"):
        picture.content = f"{escape(picture.content)} <small>({_FOLDER}/{escape(str(picture.attrs['src']))})</small>"
        picture.type = "html_inline"
    for link in (token for block in tokens for token in block.children or () if token.type.startswith("link_")):
        if link.type == "link_open":
            place = f"{_FOLDER}/{link.attrs['href']}"
        else:
            link.content = f" <small>({escape(place)})</small>"
        link.type = "html_inline"


def _frame_tables(tokens: Sequence[Token]) -> None:
    """Let a table scroll by itself on a narrow screen."""
    numbers = itertools.count(1)
    for table in tokens:
        if table.type == "table_open":
            label = f"Table {next(numbers)} of these findings"
            table.content = f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table>'
            table.type = "html_block"
        elif table.type == "table_close":
            table.type, table.content = "html_block", "</table></div>"
