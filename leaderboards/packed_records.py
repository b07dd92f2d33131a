"""The records of a leaderboard's finished runs as one file, from which it is built again, and gone on with, anywhere.

    a store -> <profile>.records.tar.xz -> a store, to read (``build.py --runs``) or, unpacked, to train more seeds in

Packed is what a leaderboard reads: experiment, environment, attempts, logged steps, recorded maps and result. Weights
are left out: they take the most, and the leaderboard reads none.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from leaderboards.boards import Leaderboard
from suite.challengers import record_challengers
from suite.errors import RecordError
from suite.files import read_file
from suite.records import RunDirectory
from suite.run_store import experiments_folder, find_runs

SUFFIX = "records.tar.xz"


def pack_records(leaderboard: Leaderboard, store: Path) -> bytes:
    """Pack the finished runs of a leaderboard, those that others depend on too, and the challengers entered in it.

    The same records make the same bytes, whoever packs them, and when.

    Args:
        leaderboard: whose runs.
        store: that they are in.

    Raises:
        RecordError: a result that cannot be read.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive, tempfile.TemporaryDirectory() as folder:
        for experiment in leaderboard.profile.experiments():
            for run in find_runs(store, experiment).values():
                if run.read_result() is not None:
                    for path in _records(run):
                        _add(archive, path, experiments_folder(Path()) / run.id / path.name)
        record_challengers(Path(folder), leaderboard.suite.challengers)
        for path in sorted(Path(folder).rglob("*.json")):
            _add(archive, path, path.relative_to(folder))
    return packed.getvalue()


def _records(run: RunDirectory) -> Iterator[Path]:
    for path in (
        run.experiment_path,
        run.environment_path,
        run.attempts_path,
        run.metrics_path,
        run.maps_path,
        run.result_path,
    ):
        if path.exists():
            yield path


def _add(archive: tarfile.TarFile, path: Path, name: Path) -> None:
    """Add a file without its owner and its time."""
    content = read_file(path)
    member = tarfile.TarInfo(str(name))
    member.size, member.mode = len(content), 0o644
    archive.addfile(member, io.BytesIO(content))


@contextlib.contextmanager
def unpacked(packed: Path) -> Iterator[Path]:
    """Unpack records into a store for as long as the ``with`` lasts; a store that is a folder is itself.

    Raises:
        RecordError: it is no such file, or a damaged one.
    """
    if not packed.is_file():
        yield packed
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(packed, mode="r:xz") as archive:
                archive.extractall(folder, filter="data")
        except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
            raise RecordError(
                f"cannot unpack {packed}: {error}. Expected records as `build.py --pack` writes them, "
                f"<profile>.{SUFFIX}: copy the file again, or name a run store's folder."
            ) from error
        yield Path(folder)
