"""``entries/NAME/``: the runs that others have entered, as boards show them beside ours, with who recomputed them.

    entry.toml       who, which suite, and who has checked or recomputed it; ``leaderboards.schemas.entry`` is its form
    records.tar.xz   the records of its runs, with the source of custom models
    README.md        a line

What a board shows of an entry is computed from its records each time, never read from what it says of itself.
"""

import statistics
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from leaderboards.boards.board import Leaderboard, make_leaderboard
from leaderboards.packed_records import unpacked
from leaderboards.schemas.entry import EntryFile
from leaderboards.schemas.verification import CheckedPart
from suite.base.errors import RecordError, SuiteError, check_name
from suite.base.files import read_file, sha256_of
from suite.base.reading import unreadable
from suite.papers import get_suite, list_suites

ENTRIES = Path(__file__).parents[1] / "entries"
FILE, RECORDS = "entry.toml", "records.tar.xz"  # of an entry's folder


def read_entry(folder: Path) -> EntryFile:
    """Read what an entry says of itself; RecordError where it cannot be read or bears another's name."""
    path = folder / FILE
    try:
        entry = EntryFile.model_validate(tomllib.loads(read_file(path).decode()))
        if entry.name != folder.resolve().name:
            raise ValueError(f"it names the entry {entry.name!r}, and its folder is {folder.resolve().name!r}")
        check_name("suite", entry.suite, list_suites())  # a suite of its own would be a program
        get_suite(entry.suite).profile(entry.profile)
    except (OSError, ValueError, RecursionError) as error:
        raise unreadable(path, error, "Make the entry again with `convolutional-prior submit`.") from error
    return entry


def check_entry(folder: Path) -> CheckedPart:
    """Check what an entry says of itself, and that its records are no other entry's beside it."""
    problems = []
    try:
        entry = read_entry(folder)
        own = _make_board(entry, folder)
        same = find_entries(folder.resolve().parent, entry.records_sha256)
        problems += [f"its records are those of {name}" for name in same if name != entry.name]
        if not own.count("done") + own.count("partial"):
            problems.append(f"its records hold no finished run of {entry.suite} in {entry.profile}")
    except RecordError as error:
        problems.append(str(error))
    return CheckedPart(part="entry", num_checked=1, problems=tuple(problems))


def _make_board(entry: EntryFile, folder: Path) -> Leaderboard:
    """Make the board of an entry's own records; RecordError where they make none, or are not those it was made with."""
    try:
        if sha256_of(folder / RECORDS) != entry.records_sha256:
            raise ValueError(f"{RECORDS} has another SHA-256 than records_sha256")
        with unpacked(folder / RECORDS) as store:
            return make_leaderboard(get_suite(entry.suite), entry.profile, store)
    except (SuiteError, OSError, ValueError) as error:
        raise RecordError(f"entry {entry.name}: {error}") from error


def list_entries(folder: Path) -> list[Path]:
    """The folders of all entries, sorted by name."""
    return sorted(path.parent for path in folder.glob(f"*/{FILE}"))


def find_entries(folder: Path, records_sha256: str) -> list[str]:
    """The names of the entries in a folder that have these records."""
    paths = (entry / RECORDS for entry in list_entries(folder))
    return [path.parent.name for path in paths if path.is_file() and sha256_of(path) == records_sha256]


def with_entries(leaderboard: Leaderboard, folder: Path = ENTRIES) -> Leaderboard:
    """Set the entries of a board's suite and scale beside it, and those of any board that cannot be read."""
    lines: list[tuple[str, ...]] = []
    for path in list_entries(folder):
        try:
            entry = read_entry(path)
            if (entry.suite, entry.profile) == (leaderboard.suite.name, leaderboard.profile_name):
                lines += _write_lines(entry, path)
        except RecordError as error:
            lines.append((path.name, "", "", "", "", str(error)))
    return replace(leaderboard, entries=tuple(lines))


def _write_lines(entry: EntryFile, folder: Path) -> Iterator[tuple[str, ...]]:
    """A line for each custom model, with its mean top-1 over the rows; without any, one with the headline."""
    own = _make_board(entry, folder)
    status = " by ".join(filter(None, (entry.status, ", ".join(entry.recomputed_by))))
    status = f"withdrawn ({status})" if entry.withdrawn else status
    for model in own.suite.custom_models:
        cells = [
            own.board(of.table).cells[of.row, column]
            for of in own.profile.entries
            if of.custom_model == model.name
            for column, metric in of.columns.items()
            if metric == "top1_percent"
        ]
        means = [cell.mean for cell in cells if cell.mean is not None]
        value = f"top-1 {statistics.fmean(means):.2f}, mean of {len(means)}" if means else "no top-1"
        num_seeds = max((cell.coverage.num_done for cell in cells), default=0)
        yield entry.name, entry.who, model.name, value, str(num_seeds), status
    if not own.suite.custom_models:
        cell = own.headline
        value = "no headline" if cell is None or cell.mean is None else f"{own.suite.headline.text}: {cell.mean:+.2f}"
        yield entry.name, entry.who, "the papers'", value, str(cell.coverage.num_done if cell else 0), status
