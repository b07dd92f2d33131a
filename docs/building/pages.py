"""The pages that nobody writes by hand: each suite's, from the registry and the published boards; the API's; copies.

    suite.suites, leaderboards/claims, leaderboards/published   -> suites/<name>.md
    the packages' modules                                       -> api/<package>.md
    CHANGELOG.md, CONTRIBUTING.md, the findings, the claims     -> project/*.md, claims/*.md

They lie beside the others while Sphinx reads them, git-ignored, and are written anew each time.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import links
import suite_pages
from reference import list_packages, render_package
from sphinx.application import Sphinx

from suite.suites import list_suites

FOLDERS = ("api", "claims", "project", "suites")


def write_pages(app: Sphinx) -> None:
    """Write all of them, and nothing that was there before stays."""
    for name in FOLDERS:
        shutil.rmtree(links.DOCS / name, ignore_errors=True)
        (links.DOCS / name).mkdir()
    for name in list_suites():
        _write(f"suites/{name}", suite_pages.render(name))
    for package in list_packages():
        _write(f"api/{package}", render_package(package))
    for name, page in links.COPIES.items():
        origin = links.ROOT / name
        _write(page, links.move(origin.read_text(), origin, links.DOCS / f"{page}.md"))


def _write(page: str, text: str) -> None:
    (links.DOCS / f"{page}.md").write_text(text)


def move_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Let the links of a page that was written by hand lead to pages of the site."""
    path = Path(app.srcdir) / f"{page}.md"
    if page.partition("/")[0] not in FOLDERS:
        source[0] = links.move(source[0], path, path)


def copy_published(app: Sphinx, error: Exception | None) -> None:
    """Put the published boards' own pages, tables and figures beside the site's pages, which link to them."""
    if error is None:
        shutil.copytree(links.PUBLISHED, Path(app.outdir) / "published", dirs_exist_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write before Sphinx looks for pages."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", move_links)
    app.connect("build-finished", copy_published)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
