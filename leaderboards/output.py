"""A suite at one scale and the run store -> its boards, and all files of its leaderboard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leaderboards.accounting import render_accounting
from leaderboards.aggregate import SuiteBoard, aggregate
from leaderboards.collect import Collection, collect
from leaderboards.layout import check_layout
from suite.errors import RunError, SpecError
from suite.files import write_atomically
from suite.tables import Suite

FIGURE_FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Paths:
    """The files of one leaderboard. A figure that has nothing to draw yet has none."""

    tables: dict[str, Path]  # by the table's name
    markdown: Path
    long: Path
    accounting: Path
    figures: tuple[Path, ...]


def make_boards(suite: Suite, profile_name: str, store: Path, num_seeds: int | None = None) -> SuiteBoard:
    """The leaderboard as data.

    Raises:
        SpecError: for an unknown profile, a store that is not there, or a suite that does not fit its tables.
        RecordError: for two run directories of the same seed.
    """
    return aggregate(suite, profile_name, read_runs(suite, profile_name, store, num_seeds))


def read_runs(suite: Suite, profile_name: str, store: Path, num_seeds: int | None = None) -> Collection:
    """The runs of a suite whose layout has been checked."""
    check_store(store)
    profile = suite.profile(profile_name)
    check_layout(suite, profile)
    return collect(profile, store, num_seeds, suite.tables)


def write_boards(boards: SuiteBoard, store: Path, out: Path) -> Paths:
    """Write ``<profile>.md``, ``.<table>.csv``, ``.long.csv``, ``.runs.csv``, ``.<figure>.png`` and ``.svg``.

    Raises:
        RunError: if they cannot be written.
    """
    from leaderboards.render import render_markdown
    from leaderboards.sheets import render_csv, render_long_csv

    make_folder(out)

    def write(suffix: str, content: str) -> Path:
        path = out / f"{boards.profile_name}.{suffix}"
        write_atomically(path, content.encode())
        return path

    return Paths(
        tables={name: write(f"{name}.csv", render_csv(board)) for name, board in boards.tables.items()},
        markdown=write("md", render_markdown(boards)),
        long=write("long.csv", render_long_csv(boards)),
        accounting=write("runs.csv", render_accounting(boards.profile, store)),
        figures=_write_figures(boards, store, out),
    )


def make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make the folder {out}: {error.strerror}. Choose another with --out.") from error


def check_store(store: Path) -> None:
    if not store.is_dir():
        raise SpecError(
            f"there is no run store {store}: expected a folder that holds experiments/. "
            "Run launchers/grid.py first, or name another folder with --runs."
        )
    if (store / "experiments").exists() and not (store / "experiments").is_dir():
        raise SpecError(
            f"{store / 'experiments'} is a file, expected a folder of runs. Name another store with --runs."
        )


def _write_figures(boards: SuiteBoard, store: Path, out: Path) -> tuple[Path, ...]:
    """Draw what there are data for; a picture of runs that are gone does not stay behind."""
    if not boards.suite.figures:
        return ()
    from leaderboards.figures import draw

    written = []
    for figure in boards.suite.figures:
        pictures = draw(figure, boards, store)
        for suffix in FIGURE_FORMATS:
            path = out / f"{boards.profile_name}.{figure.name}.{suffix}"
            if suffix in pictures:
                write_atomically(path, pictures[suffix])
                written.append(path)
            else:
                path.unlink(missing_ok=True)
    return tuple(written)
