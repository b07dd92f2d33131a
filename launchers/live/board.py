"""A run store -> a suite's board as a served page, made anew once a run of it has begun, ended or failed."""

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from launchers.live.cached_page import ServedPage
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
        self._made = ""

    def mark(self) -> str:
        """A mark that changes when a run of the board begins, ends or fails."""
        profile = enter_custom_models(self._suite, self._profile, self._store).profile(self._profile)
        configurations = {experiment.configuration for experiment in profile.experiments()}
        return digest_of(experiments_folder(self._store) / configuration for configuration in sorted(configurations))

    def make(self) -> ServedPage | None:
        """The page, or None where it would be the same; a SuiteError where the store is not there or broken."""
        if (mark := self.mark()) == self._made:
            return None
        leaderboard = make_leaderboard(self._suite, self._profile, self._store, self._seeds)
        claims = find_claims(leaderboard, self._store)
        live = replace(self._live, board=mark) if self._live else None
        above, grid = (".", "") if live else ("..", "../")
        with _DRAWING:
            pictures = {figure.name: draw(figure, leaderboard, _FORMATS) for figure in leaderboard.suite.figures}
            text = render_suite_page(leaderboard, pictures, claims, above=above, live=live, grid=grid)
        self._made = mark
        svgs = {name: files["svg"].decode() for name, files in pictures.items() if "svg" in files}
        sidecars = {f"{self._profile}.{name}.svg": ServedPage.of(svg, "image/svg+xml") for name, svg in svgs.items()}
        return ServedPage.of(text, "text/html", sidecars)


def digest_of(folders: Iterator[Path]) -> str:
    """A digest of configurations' folders that changes when a run in one of them begins, ends or fails."""
    found = hashlib.sha256()
    for folder in folders:
        found.update(repr([folder.name, *_look_at(folder)]).encode())
    return found.hexdigest()


def _look_at(folder: Path) -> Iterator[tuple[str | int, ...]]:
    """Each seed in a configuration's folder, with the date and size of its result or failure."""
    with contextlib.suppress(OSError):  # none was begun
        for seed in sorted(os.listdir(folder)):
            yield (seed,)
            run = RunDirectory(folder / seed)
            for path in (run.result_path, run.failure_path):
                yield path.name, *(mark_of(path) or ())
