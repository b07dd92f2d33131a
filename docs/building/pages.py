"""The pages that nobody writes by hand: each suite's, from the registry and the published boards; the API's; copies.

    suite.papers, leaderboards/published                        -> suites/<name>.md
    the docstrings of what is called from Python                -> api/<part>.md
    CHANGELOG.md, CONTRIBUTING.md, the findings, the claims     -> project/*.md, claims/*.md
    benchmarks/results/<machine>.md                             -> the end of measured.md
    the boards' records -> build/boards/                        -> published/ of the site: runs, figures and claims

All but the last lie beside the others, where Sphinx looks for them, and are git-ignored. A board of an earlier recipe
has no page of its own: its runs belong to no experiment that its suite has today. Boards' pages are made again only
where the records, or the code that reads them, have changed.
"""

import os
import re
import shutil
from contextlib import ExitStack
from pathlib import Path

import links
import suite_pages
from PIL import Image
from reference import list_pages
from sphinx.application import Sphinx

from leaderboards import board_files
from leaderboards.boards.joined_stores import joined
from leaderboards.packed_records import SUFFIX, unpacked
from leaderboards.published_boards import is_outdated, list_boards
from leaderboards.report.compressed import shorten
from leaderboards.survey import judge_all, read_line, survey
from suite.papers import get_suite, list_suites

FOLDERS = ("api", "claims", "project", "suites")
_INTERACTIVE = '<a href="published/index.html">The boards with their runs</a>: pages to sort, filter and draw.'
_MADE = links.ROOT / "build" / "boards"
_CODE = ("leaderboards/**/*", "suite/**/*", "datasets/imagesets/catalog.*", "docs/building/*.py", "entries/**/*")
_COPIED = re.compile(r'src="data:image/png;[^"]*" data-file="([^"]+)"')  # a page's large figure
_PAGES = '<nav aria-label="Pages"><ul>'  # in every page of a board, before the links to the others


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
        _copy_board_pages(Path(app.outdir))


def _copy_board_pages(site: Path) -> None:
    """Bring the pages into the site, each with a link to the manual, and with the site's own large figures; they are
    made first, unless they are there."""
    files = (path for pattern in _CODE for path in links.ROOT.glob(pattern) if "__pycache__" not in path.parts)
    changed, stamp = max(path.stat().st_mtime for path in files), _MADE / "made"
    if not stamp.exists() or stamp.stat().st_mtime != changed:
        shutil.rmtree(_MADE, ignore_errors=True)
        _make_board_pages()
        stamp.touch()
        os.utime(stamp, (changed, changed))
    for path in _MADE.rglob("*.html"):
        copy = site / "published" / path.relative_to(_MADE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        manual = f'<li><a href="{os.path.relpath(site / "index.html", copy.parent)}">The manual</a></li>'
        text = path.read_text(encoding="utf-8").replace(_PAGES, f"{_PAGES}\n{manual}", 1)
        text = text.replace("img-src data:", "img-src data: &#39;self&#39; file:", 1)  # from a server, or as a file
        copy.write_text(_COPIED.sub(r'src="\1" data-file="\1"', text), encoding="utf-8")


def _make_board_pages() -> None:
    """Make the page of each board from its own records, and judge the claims on the records of all."""
    with ExitStack() as stack:
        found = (board for suite in list_suites() for board in list_boards(links.PUBLISHED / suite))
        packs = {board: path for board in found if (path := board.with_suffix(f".{SUFFIX}")).exists()}
        boards = {board: stack.enter_context(unpacked(path)) for board, path in packs.items()}
        current = ((board, store) for board, store in boards.items() if not is_outdated(board))
        lines = [read_line(get_suite(board.parent.name), board.stem, store) for board, store in current]
        whole = stack.enter_context(joined(list(boards.values())))
        claims = judge_all(list(survey(whole)), whole)
        for line in lines:
            if line.leaderboard:
                board_files.write_leaderboard(line.leaderboard, _MADE / line.suite.name)
        board_files.make_folder(_MADE / "claims")
        board_files.write_effects(claims, _MADE / "claims")
        board_files.write_pages(lines, claims, _MADE)
