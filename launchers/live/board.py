"""A run store -> a suite's board as a served page, made anew once a run of it has begun, ended or failed."""

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from launchers.live.cached_page import Page
from leaderboards.boards.board import enter_custom_models, make_leaderboard
from leaderboards.figures import draw
from leaderboards.report.suite_page import LiveTable, render_suite_page
from leaderboards.survey import find_claims
from suite.base.files import mark_of
from suite.spec.suite import Suite
from suite.store.run_directory import RunDirectory
from suite.store.run_store import experiments_folder

_FORMATS = ("svg", "pdf")  # that a page carries along
_DRAWING = threading.Lock()  # Matplotlib's settings are all threads' own


class ServedBoard:
    """The page of one suite at one scale. ``mark`` is that of the page that was made last.

    Args:
        suite: suite as it is published, without custom models.
        num_seeds: seeds planned per cell; None: as many as the fullest cell has.
        live: table of runs at work on the page of a grid, which stands above all others; None: another page.
    """

    def __init__(
        self, suite: Suite, profile: str, store: Path, num_seeds: int | None = None, live: LiveTable | None = None
    ) -> None:
        self._suite, self._profile, self._store = suite, profile, store
        self._num_seeds, self._live = num_seeds, live
        self.mark = ""

    def make(self) -> Page | None:
        """The page, or None where it would be the same; a SuiteError where the store is not there or broken."""
        profile = enter_custom_models(self._suite, self._profile, self._store).profile(self._profile)
        groups = {experiment.configuration for experiment in profile.experiments()}
        mark = digest_of(experiments_folder(self._store) / group for group in sorted(groups))
        if mark == self.mark:
            return None
        leaderboard = make_leaderboard(self._suite, self._profile, self._store, self._num_seeds)
        claims = find_claims(leaderboard, self._store)
        live = replace(self._live, board=mark) if self._live else None
        above, grid = (".", "") if live else ("..", "../")
        with _DRAWING:
            pictures = {figure.name: draw(figure, leaderboard, _FORMATS) for figure in leaderboard.suite.figures}
            text = render_suite_page(leaderboard, pictures, claims, above=above, live=live, grid=grid)
        self.mark = mark
        svgs = {name: files["svg"].decode() for name, files in pictures.items() if "svg" in files}
        sidecars = {f"{self._profile}.{name}.svg": Page.of(svg, "image/svg+xml") for name, svg in svgs.items()}
        return Page.of(text, "text/html", sidecars)


def digest_of(groups: Iterator[Path]) -> str:
    """A digest of folders of runs that changes when one of these begins, ends or fails."""
    found = hashlib.sha256()
    for group in groups:
        found.update(repr([group.name, *_look_at(group)]).encode())
    return found.hexdigest()


def _look_at(group: Path) -> Iterator[tuple[str | int, ...]]:
    """Each seed in a folder, and the date and size of what it ended with."""
    with contextlib.suppress(OSError):  # none was begun
        for seed in sorted(os.listdir(group)):
            yield (seed,)
            run = RunDirectory(group / seed)
            for path in (run.result_path, run.failure_path):
                yield path.name, *(mark_of(path) or ())
