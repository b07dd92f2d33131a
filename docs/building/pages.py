"""The pages that nobody writes by hand: each suite's, from the registry and the published boards; the API's; copies.

    suite.papers, leaderboards/published                        -> suites/<name>.md
    the docstrings of what is called from Python                -> api/<part>.md
    CHANGELOG.md, CONTRIBUTING.md, the findings, the claims     -> project/*.md, claims/*.md
    benchmarks/results/<machine>.md                             -> the end of measured.md

They lie beside the others, where Sphinx looks for them, and are git-ignored.
"""

import re
import shutil
from pathlib import Path

import board_pages
import links
import suite_pages
from PIL import Image
from reference import list_pages
from sphinx.application import Sphinx

from leaderboards.report.compressed import shorten
from suite.papers import list_suites

FOLDERS = ("api", "claims", "project", "suites")
_INTERACTIVE = '<a href="published/index.html">The boards with their runs</a>: pages to sort, filter and draw.'


def write_pages(app: Sphinx) -> None:
    """Write all of them anew."""
    pages = {f"suites/{name}": suite_pages.render(name) for name in list_suites()}
    pages |= {f"api/{name}": text for name, text in list_pages().items()}
    for name, page in links.COPIES.items():
        origin = links.ROOT / name
        pages[page] = links.move(origin.read_text(encoding="utf-8"), origin, links.DOCS / f"{page}.md")
    for name in FOLDERS:
        shutil.rmtree(links.DOCS / name, ignore_errors=True)
        (links.DOCS / name).mkdir()
    for page, text in pages.items():
        (links.DOCS / f"{page}.md").write_text(text, encoding="utf-8")


def move_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Let the links of a page that was written by hand lead to pages of the site."""
    path = Path(app.srcdir) / f"{page}.md"
    if "/" not in page:
        source[0] = links.move(source[0], path, path)
    if page == "suites":
        source[0] = source[0].replace("\n\n", f"\n\n{_INTERACTIVE}\n\n", 1)
    if page == "measured":
        for results in sorted(links.ROOT.glob("benchmarks/results/*.md")):
            source[0] += "\n" + re.sub(r"^#", "##", results.read_text(encoding="utf-8"), flags=re.MULTILINE)


def copy_published(app: Sphinx, error: Exception | None) -> None:
    """Put the published boards' tables, figures and records and their own pages beside the site's pages, which link to
    them and show the rest."""
    if error is None:
        published, shown = Path(app.outdir) / "published", shutil.ignore_patterns("*.md", "*.png")
        shutil.rmtree(published, ignore_errors=True)
        shutil.copytree(links.PUBLISHED, published, ignore=shown)
        for path in (Path(app.outdir) / "_images").glob("*.png"):  # of lines and areas: half as large, and look alike
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
        for path in published.rglob("*.svg"):
            path.write_text(shorten(path.read_text(encoding="utf-8")), encoding="utf-8")
        board_pages.copy_pages(Path(app.outdir))
