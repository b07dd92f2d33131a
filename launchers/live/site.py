"""The path that a browser asks for -> its page: the grid's own, those of all suites and papers, the published findings.

The paths are those of the files that ``leaderboards/build.py --all`` writes, so that the same links lead there.
"""

import contextlib
import functools
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launchers.command.grid_request import GridRequest
from launchers.live.board import ServedBoard, digest_of
from launchers.live.cached_page import CachedPage, ServedPage
from launchers.live.state import COLUMNS, TEXTS, StateReader
from leaderboards.boards.board import check_store
from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.claims_page import render_claims_html
from leaderboards.report.compressed import without_controls
from leaderboards.report.findings_page import render_findings_html
from leaderboards.report.index_page import render_index_html
from leaderboards.report.suite_page import LiveTable
from leaderboards.survey import IndexLine, has_runs, judge_all, survey
from suite.base.errors import SpecError, SuiteError
from suite.papers import get_suite, list_claims, list_suites
from suite.spec.claims import PaperClaims
from suite.store.run_store import experiments_folder

STATE = "state.json"
_EVERY_S = 2.0  # between two looks at the runs
_EVERY_S_OF_SLURM = 5.0  # it is asked as often as by --watch
_BOARD = re.compile(r"(\w+)/([^/]+)\.html", re.ASCII)
_cache_other = functools.partial(CachedPage, every_s=5.0, share=0.05)  # what is not the grid's own


@dataclass(frozen=True)
class Found:
    """Everything that was read: a line for each suite at each scale that has runs, and all claims at these scales."""

    lines: Sequence[IndexLine]
    claims: Sequence[JudgedClaim]


class Overview:
    """The data of all these pages, read once for all of them and again once a run has begun, ended or failed.

    ``grid`` is the suite and scale that is at work, which is listed also where it is none of ours.
    """

    def __init__(self, store: Path, grid: tuple[str, str]) -> None:
        self._store, self._grid = store, grid
        self._lock, self._mark, self._found = threading.Lock(), "", Found([], [])

    def read(self) -> Found:
        """The same object for as long as nothing has changed; a SpecError where the store is not there."""
        with self._lock:
            check_store(self._store)
            mark = digest_of(iter(sorted(experiments_folder(self._store).glob("*"))))
            if mark != self._mark:
                lines = list(survey(self._store, also=self._grid))
                self._mark, self._found = mark, Found(lines, judge_all(lines, self._store))
            return self._found


def write_index(found: Found) -> str:
    """Write the page of all suites."""
    return render_index_html(found.lines, found.claims, grid="./")


def write_claims(found: Found, paper: PaperClaims) -> str:
    """Write the page of one paper's claims."""
    return render_claims_html(paper, [judged for judged in found.claims if judged.paper is paper], grid="../")


@dataclass
class ServedSite:
    """Pages by their paths. ``find_more`` makes those that nobody asked for before; ``moved`` names the paths that
    stand for others."""

    pages: dict[str, CachedPage]
    find_more: Callable[[str], CachedPage | None] = lambda path: None
    moved: Mapping[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, path: str) -> tuple[CachedPage, str] | None:
        """A page, and the name of the file that is wanted of those it links to, "" for itself; None: there is none."""
        if (page := self._find_page(path)) is not None:
            return page, ""
        folder, _, name = path.rpartition("/")
        if not name.endswith(".svg"):
            return None
        scale = name.rsplit(".", 2)[0]
        page = self._find_page(f"{folder}/{scale}.html" if folder else "")
        return None if page is None else (page, name)

    def _find_page(self, path: str) -> CachedPage | None:
        with self._lock:
            if path not in self.pages and (page := self.find_more(path)) is not None:
                self.pages[path] = page
            return self.pages.get(path)


def make_site(grid: GridRequest, state: StateReader) -> ServedSite:
    """The page of a grid, at "", the state that it asks for every few seconds, and the pages of its whole store."""
    options, name = grid.options, grid.options.suite or ""
    seeds = options.seeds if options.until is None else None
    board = ServedBoard(get_suite(name), grid.profile_name, options.runs, seeds, LiveTable(COLUMNS, TEXTS, STATE))
    shown = CachedPage(board.make, _EVERY_S)
    overview = Overview(options.runs, (name, grid.profile_name))

    def make_state() -> ServedPage:
        found = state.read()
        found["troubles"] += [f"the board: {shown.trouble}"] if shown.trouble else []
        with contextlib.suppress(SuiteError, OSError):
            found["board"] = board.mark() + shown.trouble  # which is tried again as long as there is one
        return ServedPage.of(json.dumps(without_controls(found), allow_nan=False), "application/json")

    pages = {
        "": shown,
        STATE: CachedPage(make_state, _EVERY_S_OF_SLURM if options.cluster == "slurm" else _EVERY_S),
        "index.html": _cache_other(functools.partial(_make_of, overview, write_index)),
        "findings.html": _cache_other(lambda: ServedPage.of(render_findings_html(grid="./"), "text/html")),
    }
    for paper in list_claims():
        make = functools.partial(_make_of, overview, functools.partial(write_claims, paper=paper))
        pages[f"claims/{paper.name}.html"] = _cache_other(make)
    own = {f"{grid.suite.name}/{grid.profile_name}.html": ""}
    return ServedSite(pages, functools.partial(_find_board, store=options.runs), own)


def _make_of(overview: Overview, write: Callable[[Found], str]) -> ServedPage:
    return ServedPage.of(write(overview.read()), "text/html")


def _find_board(path: str, store: Path) -> CachedPage | None:
    """The page of another suite or scale that has runs in the store."""
    found = _BOARD.fullmatch(path)
    if found is None or found[1] not in list_suites():
        return None
    suite, profile = get_suite(found[1]), found[2]
    with contextlib.suppress(SpecError):  # it has no such scale
        if has_runs(suite, profile, store):
            return _cache_other(ServedBoard(suite, profile, store).make)
    return None
