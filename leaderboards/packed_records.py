"""The records of a leaderboard's finished runs as one file, from which its tables are built again anywhere.

    a store -> <profile>.records.tar.xz -> a store, to read (``build.py --runs``) or, unpacked, to train more seeds in

Packed is what a leaderboard reads: experiment, environment, attempts, logged steps, recorded maps and result. Weights
are left out: they take the most, and the leaderboard reads none.
"""

import contextlib
import io
import lzma
import re
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from leaderboards.boards.board import Leaderboard
from suite.base.archives import StrictHeader, unpack_files
from suite.base.errors import RecordError
from suite.base.files import disk_error, open_file, read_file
from suite.store.custom_models import FOLDER, record_name
from suite.store.frozen_plan import FOLDER as PLANS
from suite.store.frozen_plan import plan_path
from suite.store.results import why_void
from suite.store.run_directory import EXPERIMENTS, RunDirectory
from suite.store.run_store import list_runs
from suite.store.tuning import FOLDER as TUNINGS
from suite.store.tuning import tuning_path

SUFFIX = "records.tar.xz"
_ANY_RUN = RunDirectory(Path())
_FIRST = tuple(path.name for path in (_ANY_RUN.experiment_path, _ANY_RUN.environment_path, _ANY_RUN.attempts_path))
_LARGE = tuple(path.name for path in (_ANY_RUN.metrics_path, _ANY_RUN.maps_path))
_LAST = tuple(path.name for path in (_ANY_RUN.predictions_path, _ANY_RUN.result_path))
_RECORDS = (*_FIRST, *_LARGE, *_LAST)  # as they follow each other in the file
_MOST_AT_ONCE, _MOST_OF_LARGE = 1 << 24, 1 << 28  # bytes of a record: a hundred times those of the largest suites
_MOST_IN_ALL = 1 << 32  # bytes of all records together
_MOST_TIMES = 200  # as large as they are packed: ours are 2 to 22 times as large
_MEMBER = re.compile(
    rf"{EXPERIMENTS}/[^/]+/seed-\d+/({'|'.join(map(re.escape, _RECORDS))})|({FOLDER}|{PLANS}|{TUNINGS})/[^/]+\.json"
)


@dataclass(frozen=True)
class PackedRecords:
    """The content of a file of records, and the number of finished runs that are in it or could not be read."""

    content: bytes
    num_runs: int
    num_left_out: int


def pack_records(leaderboard: Leaderboard) -> PackedRecords:
    """Pack the runs of a leaderboard that have a valid result, and its custom models; the same records make the same
    bytes, as long as the compressor is the same."""
    packed, num_runs, num_left_out = io.BytesIO(), 0, 0
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for run in leaderboard.ended_runs():
            try:
                records = _read_records(run)
            except (OSError, RecordError):  # the leaderboard names it
                num_left_out += 1
                continue
            num_runs += bool(records)
            for name, content in records.items():
                _add(archive, f"{EXPERIMENTS}/{run.id}/{name}", content)
        for custom_model in sorted(leaderboard.suite.custom_models, key=lambda custom_model: custom_model.name):
            _add(archive, record_name(custom_model), custom_model.model_dump_json(indent=1).encode())
        for plan in filter(None, (leaderboard.plan, *leaderboard.other_plans)):
            _add(archive, str(plan_path(Path(), plan.suite, plan.profile)), plan.as_record())
        if (tuning := leaderboard.suite.tuning) is not None:
            path = tuning_path(Path(), leaderboard.suite.name, leaderboard.profile_name)
            _add(archive, str(path), tuning.model_dump_json(indent=1).encode())
    return PackedRecords(packed.getvalue(), num_runs, num_left_out)


def _read_records(run: RunDirectory) -> dict[str, bytes]:
    """A finished run's records by file name; {} without a result that holds."""
    result = run.read_result()
    if result is None or why_void(result.protocol_version):
        return {}
    found = {}
    for name in _RECORDS:
        with contextlib.suppress(FileNotFoundError):
            found[name] = read_file(run.path / name)
    return found


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file without an owner and a time."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o644
    archive.addfile(member, io.BytesIO(content))


@contextlib.contextmanager
def unpacked(packed: Path) -> Iterator[Path]:
    """Unpack records into a temporary store for a ``with`` block; a folder is taken as the store itself.

    Raises:
        RecordError: The file is damaged, or holds anything else than records.
        RunError: There is no place to unpack it to.
    """
    if not packed.is_file():
        yield packed
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, packed.name)  # so that messages name the file
        try:
            with (
                open_file(packed) as file,
                _Decompressed(file, packed.stat().st_size) as content,
                tarfile.open(fileobj=content, mode="r:", tarinfo=StrictHeader) as archive,
            ):
                unpack_files(archive, store, _find_fault)  # to the end, where the checksum stands
        except (EOFError, lzma.LZMAError, tarfile.TarError, ValueError) as error:
            raise _no_records(packed, error) from error
        except OSError as error:
            raise disk_error(store, error) from error
        if not any(list_runs(store)):
            raise _no_records(packed, "it holds no run")
        yield store


class _Decompressed(lzma.LZMAFile):
    """The tar in a packed file, with a limit on what is read at once and in all."""

    def __init__(self, file: BinaryIO, num_bytes: int) -> None:
        super().__init__(file)
        self._limit = min(_MOST_TIMES * num_bytes + _MOST_AT_ONCE, _MOST_IN_ALL)

    def read(self, size: int | None = -1) -> bytes:
        """Read as any file: a block of the tar, a part of a file, or a long name."""
        if size is None or not 0 <= size <= _MOST_AT_ONCE or self.tell() + size > self._limit:
            raise ValueError("it unpacks to more than records can be")
        return super().read(size)


def _find_fault(member: tarfile.TarInfo) -> str:
    if not (_MEMBER.fullmatch(member.name) and member.name.isprintable()):
        return "which is no record"
    most = _MOST_OF_LARGE if member.name.endswith(_LARGE) else _MOST_AT_ONCE
    return f"of {member.size:,} bytes, expected at most {most:,}" if member.size > most else ""


def _no_records(packed: Path, why: object) -> RecordError:
    return RecordError(
        f"cannot take records from {packed}: {why}. Expected a file that `build.py --pack` wrote, <profile>.{SUFFIX}: "
        "bring it again, or name a run store's folder."
    )
