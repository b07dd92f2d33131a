"""A run store -> the index of all suites and the papers' claims as served pages, as ``build.py --all`` writes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from launchers.live.board import mark_of
from launchers.live.cached_page import Page
from leaderboards.boards.board import check_store
from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.claims_page import render_claims_html
from leaderboards.report.index_page import render_index_html
from leaderboards.survey import IndexLine, judge_all, survey
from suite.spec.claims import PaperClaims
from suite.store.run_store import experiments_folder


@dataclass(frozen=True)
class Found:
    """Everything that was read: a line for each suite at each scale that has runs, and all claims at these scales."""

    lines: Sequence[IndexLine]
    claims: Sequence[JudgedClaim]


class Overview:
    """The data of all these pages, read once for all of them and again once a run has begun, ended or failed.

    Args:
        store: run store.
        grid: suite and scale that is at work, which is listed also where it is none of ours.
    """

    def __init__(self, store: Path, grid: tuple[str, str]) -> None:
        self._store, self._grid = store, grid
        self._lock, self._mark, self._found = threading.Lock(), "", Found([], [])

    def read(self) -> Found:
        """The same object for as long as nothing has changed; a SpecError where the store is not there."""
        with self._lock:
            check_store(self._store)
            mark = mark_of(iter(sorted(experiments_folder(self._store).glob("*"))))
            if mark != self._mark:
                lines = list(survey(self._store, also=self._grid))
                self._mark, self._found = mark, Found(lines, judge_all(lines, self._store))
            return self._found


class OverviewPage:
    """One of the pages, which ``render`` writes."""

    def __init__(self, overview: Overview, render: Callable[[Found], str]) -> None:
        self._overview, self._render = overview, render
        self._shown: Found | None = None

    def make(self) -> Page | None:
        """The page; None where it would be the same."""
        found = self._overview.read()
        if found is self._shown:
            return None
        self._shown = found
        return Page.of(self._render(found), "text/html")


def write_index(found: Found) -> str:
    """Write the page of all suites."""
    return render_index_html(found.lines, found.claims, grid="./")


def write_claims(found: Found, paper: PaperClaims) -> str:
    """Write the page of one paper's claims."""
    return render_claims_html(paper, [judged for judged in found.claims if judged.paper is paper], grid="../")
