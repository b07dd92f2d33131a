"""A run store -> a suite's board as a served page, made anew once a run of it has begun, ended or failed."""

import hashlib
import threading
from dataclasses import replace
from pathlib import Path

from launchers.live.cached_page import ServedPage
from leaderboards.boards.board import enter_custom_models, make_leaderboard
from leaderboards.figures import draw_all
from leaderboards.report.suite_page import LiveTable, render_suite_page
from leaderboards.survey import find_claims
from suite.base.files import mark_of
from suite.spec.suite import Suite
from suite.store.run_directory import RunDirectory
from suite.store.run_store import experiments_folder

_FORMATS = ("svg", "pdf")  # that a page carries along
_DRAWING = threading.Lock()  # Matplotlib's settings are all threads' own


class ServedBoard:
    """The page of one suite at one scale.

    Args:
        suite: suite as it is published, without custom models.
        seeds: seeds planned for each cell; None: those of the fullest cell.
        live: table of runs at work on the page of a grid, which stands above all others; None: another page.
    """

    def __init__(
        self, suite: Suite, profile: str, store: Path, seeds: range | None = None, live: LiveTable | None = None
    ) -> None:
        self._suite, self._profile, self._store = suite, profile, store
        self._seeds, self._live = seeds, live
        self._folder, self._made = experiments_folder(store), ""

    def mark(self) -> str:
        """A mark that changes when a run of the board begins, ends or fails."""
        profile = enter_custom_models(self._suite, self._profile, self._store).profile(self._profile)
        names = sorted({experiment.configuration for experiment in profile.experiments()})
        runs = [RunDirectory(path) for name in names for path in sorted((self._folder / name).glob("*"))]
        files = [(run.id, mark_of(run.result_path), mark_of(run.failure_path)) for run in runs]
        return hashlib.sha256(repr(files).encode()).hexdigest()

    def make(self) -> ServedPage | None:
        """The page, or None where it would be the same; a SuiteError where the store is not there or broken."""
        if (mark := self.mark()) == self._made:
            return None
        leaderboard = make_leaderboard(self._suite, self._profile, self._store, self._seeds)
        claims = find_claims(leaderboard, self._store)
        live = replace(self._live, board=mark) if self._live else None
        above, grid = (".", "") if live else ("..", "../")
        with _DRAWING:
            pictures, _ = draw_all(leaderboard, _FORMATS)
            text = render_suite_page(leaderboard, pictures, claims, above=above, live=live, grid=grid)
        self._made = mark
        svgs = {name: files["svg"].decode() for name, files in pictures.items() if "svg" in files}
        sidecars = {f"{self._profile}.{name}.svg": ServedPage.of(svg, "image/svg+xml") for name, svg in svgs.items()}
        return ServedPage.of(text, "text/html", sidecars)
