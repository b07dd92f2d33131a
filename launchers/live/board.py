"""A grid's store -> its board as a served page, made anew once a run has begun, ended or failed."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from launchers.live.kept import Page
from launchers.request import GridRequest
from leaderboards.boards import Leaderboard, make_leaderboard
from leaderboards.build import find_claims
from leaderboards.figures import draw
from leaderboards.report.suite_page import LiveTable, render_suite_page
from suite.errors import SuiteError
from suite.records import RunDirectory
from suite.suites import get_suite


class Board:
    """The page of one suite at one scale.

    ``mark`` is that of the page that was made last, ``trouble`` why the next one cannot be.

    Args:
        grid: which suite at which scale, and where its runs are.
        columns: of the runs at work, of which ``texts`` hold no numbers.
        state: where the page asks for these.
    """

    def __init__(self, grid: GridRequest, columns: tuple[str, ...], texts: tuple[str, ...], state: str) -> None:
        self._grid, self._store = grid, grid.options.runs
        self._columns, self._texts, self._state = columns, texts, state
        self.mark = self.trouble = ""

    def make(self) -> Page | None:
        """The page; None where it would be the same, or cannot be made."""
        arms = {f"{e.model}-{e.arm_id}" for e in self._grid.profile.experiments()}
        mark = mark_of(self._store / "experiments" / arm for arm in sorted(arms))
        if mark == self.mark:
            return None
        try:
            text = self._render(mark)
        except (SuiteError, OSError) as error:  # the store is not there yet, or a record in it is broken
            self.trouble = f"the board cannot be built: {error}"
            return None
        self.mark, self.trouble = mark, ""
        return Page.of(text, "text/html")

    def _render(self, mark: str) -> str:
        options = self._grid.options
        suite = get_suite(options.suite or "")
        num_seeds = options.seeds if options.until is None else None
        leaderboard = make_leaderboard(suite, self._grid.profile_name, self._store, num_seeds)
        claims = find_claims(suite, leaderboard, self._store)
        live = LiveTable(self._columns, self._texts, self._state, mark)
        return render_suite_page(leaderboard, self._store, _draw(leaderboard, self._store), claims, live=live)


def _draw(leaderboard: Leaderboard, store: Path) -> Mapping[str, Mapping[str, bytes]]:
    return {figure.name: draw(figure, leaderboard, store, ("svg", "pdf")) for figure in leaderboard.suite.figures}


def mark_of(arms: Iterator[Path]) -> str:
    """A digest that changes when one of their runs begins, ends or fails."""
    found = hashlib.sha256()
    for arm in arms:
        found.update(repr([arm.name, *_look_at(arm)]).encode())
    return found.hexdigest()


def _look_at(arm: Path) -> Iterator[tuple[str, int, int]]:
    """Each seed of an arm, and the date and size of what it ended with."""
    with contextlib.suppress(OSError):  # none was begun
        for seed in sorted(os.listdir(arm)):
            yield seed, 0, 0
            run = RunDirectory(arm / seed)
            for path in (run.result_path, run.failure_path):
                with contextlib.suppress(OSError):
                    status = path.stat()
                    yield path.name, status.st_mtime_ns, status.st_size
