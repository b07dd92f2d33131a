"""The path that a browser asks for -> its page: the grid's own, those of all suites and papers, the published findings.

The paths are those of the files that ``leaderboards/build.py --all`` writes, so that the same links lead there.
"""

import contextlib
import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from launchers.command.grid_request import GridRequest
from launchers.live.board import ServedBoard
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

STATE = "state.json"
_EVERY_S = 2.0  # between two looks at the runs
_EVERY_S_OF_SLURM = 5.0  # it is asked as often as by --watch
_BOARD = re.compile(r"(\w+)/([^/]+)\.html", re.ASCII)
_cache_other = functools.partial(CachedPage, every_s=5.0, share=0.05)  # what is not the grid's own


@dataclass
class ServedSite:
    """Pages by their paths. ``find_more`` makes those that nobody asked for before; ``moved`` names the paths that
    stand for others."""

    pages: dict[str, CachedPage]
    find_more: Callable[[str], CachedPage | None] = lambda path: None
    moved: Mapping[str, str] = field(default_factory=dict)

    def find(self, path: str) -> tuple[CachedPage, str] | None:
        """A page, and the name of the file that is wanted of those it links to, "" for itself; None: there is none."""
        folder, _, name = path.rpartition("/")
        linked = name if name.endswith(".svg") else ""
        if linked:
            path = f"{folder}/{name.rsplit('.', 2)[0]}.html" if folder else ""
        page = self.pages.get(path) or self.find_more(path)
        return None if page is None else (self.pages.setdefault(path, page), linked)


def make_site(grid: GridRequest, state: StateReader) -> ServedSite:
    """The page of a grid, at "", the state that it asks for every few seconds, and the pages of its whole store."""
    options, name = grid.options, grid.options.suite or ""
    seeds = options.seeds if options.until is None else None
    board = ServedBoard(get_suite(name), grid.profile_name, options.runs, seeds, LiveTable(COLUMNS, TEXTS, STATE))
    shown = CachedPage(board.make, _EVERY_S)

    def make_state() -> ServedPage:
        found = state.read()
        found["troubles"] += [f"the board: {shown.trouble}"] if shown.trouble else []
        with contextlib.suppress(SuiteError, OSError):
            found["board"] = board.mark() + shown.trouble  # which is tried again as long as there is one
        return ServedPage.of(json.dumps(without_controls(found), allow_nan=False), "application/json")

    def read() -> tuple[list[IndexLine], list[JudgedClaim]]:
        check_store(options.runs)
        lines = list(survey(options.runs, also=(name, grid.profile_name)))  # the grid's suite may be none of ours
        return lines, judge_all(lines, options.runs)

    def make_claims(paper: PaperClaims) -> ServedPage:
        claims = [judged for judged in read()[1] if judged.paper is paper]
        return ServedPage.of(render_claims_html(paper, claims, grid="../"), "text/html")

    pages = {
        "": shown,
        STATE: CachedPage(make_state, _EVERY_S_OF_SLURM if options.cluster == "slurm" else _EVERY_S),
        "index.html": _cache_other(lambda: ServedPage.of(render_index_html(*read(), grid="./"), "text/html")),
        "findings.html": _cache_other(lambda: ServedPage.of(render_findings_html(grid="./"), "text/html")),
    }
    for paper in list_claims():
        pages[f"claims/{paper.name}.html"] = _cache_other(functools.partial(make_claims, paper))
    own = {f"{grid.suite.name}/{grid.profile_name}.html": ""}
    return ServedSite(pages, functools.partial(_find_board, store=options.runs), own)


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
