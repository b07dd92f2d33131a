"""The published boards' records -> pages with their runs, figures and claims, in ``published/`` of the site.

    <suite>/<profile>.records.tar.xz -> build/boards/ -> <suite>/<profile>.html, claims/<paper>.html, index.html

A board of an earlier recipe has none: its runs belong to no experiment that its suite has today. The pages are made
again only where the records, or the code that reads them, have changed.
"""

import os
import re
import shutil
from contextlib import ExitStack
from pathlib import Path

import links

from leaderboards import board_files
from leaderboards.boards.joined_stores import joined
from leaderboards.packed_records import SUFFIX, unpacked
from leaderboards.published_boards import is_outdated, list_boards
from leaderboards.survey import judge_all, read_line, survey
from suite.papers import get_suite, list_suites

MADE = links.ROOT / "build" / "boards"
_CODE = ("leaderboards/**/*", "suite/**/*", "datasets/imagesets/catalog.*", "docs/building/*.py", "entries/**/*")
_COPIED = re.compile(r'src="data:image/png;[^"]*" data-file="([^"]+)"')  # a page's large figure
_PAGES = '<nav aria-label="Pages"><ul>'  # in every page of a board, before the links to the others


def copy_pages(site: Path) -> None:
    """Bring the pages into the site, each with a link to the manual, and with the site's own large figures; they are
    made first, unless they are there."""
    files = (path for pattern in _CODE for path in links.ROOT.glob(pattern) if "__pycache__" not in path.parts)
    changed, stamp = max(path.stat().st_mtime for path in files), MADE / "made"
    if not stamp.exists() or stamp.stat().st_mtime != changed:
        shutil.rmtree(MADE, ignore_errors=True)
        _make_pages()
        stamp.touch()
        os.utime(stamp, (changed, changed))
    for path in MADE.rglob("*.html"):
        copy = site / "published" / path.relative_to(MADE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        manual = f'<li><a href="{os.path.relpath(site / "index.html", copy.parent)}">The manual</a></li>'
        text = path.read_text(encoding="utf-8").replace(_PAGES, f"{_PAGES}\n{manual}", 1)
        text = text.replace("img-src data:", "img-src data: &#39;self&#39; file:", 1)  # from a server, or as a file
        copy.write_text(_COPIED.sub(r'src="\1" data-file="\1"', text), encoding="utf-8")


def _make_pages() -> None:
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
                board_files.write_leaderboard(line.leaderboard, MADE / line.suite.name)
        board_files.make_folder(MADE / "claims")
        board_files.write_effects(claims, MADE / "claims")
        board_files.write_pages(lines, claims, MADE)
