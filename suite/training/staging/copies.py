"""Copies of an image set on a node's disk, made once for all who read them there.

    prepared folder, or the file of a fetched set -> DIR/staged-KEY/NAME/FORMAT, which is read as any data folder

KEY is a digest of the set's manifest. The manifest itself is copied last: without it nobody reads what is there.
"""

import contextlib
import errno
import functools
import shutil
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import filelock

from imagesets.manifest import (
    MANIFEST,
    SPLITS,
    Manifest,
    StoredFile,
    describe_file,
    read_index,
    read_manifest,
    write_manifest,
)
from imagesets.prefetch import in_order
from suite.base.errors import DataError
from suite.base.far import remote
from suite.spec.resources import StorageFormat

_FILES_AT_ONCE = 8  # a file system that is far takes its time for each


class _StoppedError(Exception):
    """The run was asked to stop."""


class Watch:
    """Messages between the thread that copies and the one that speaks to the other ranks."""

    def __init__(self) -> None:
        self.progress, self.is_stopped = 0, False

    def go_on(self) -> None:
        """Note that the copying goes on, or waits for another run's."""
        self.progress += 1
        if self.is_stopped:
            raise _StoppedError


class _Copy(NamedTuple):
    """One file to copy, from a path or an address to a name below the prepared folder.

    ``digest`` is a SHA-256; of an image that is a file of its own the CRC-32 that its index has.
    """

    source: str
    name: str
    num_bytes: int
    digest: str | int


@dataclass(frozen=True)
class ImageSet:
    """An image set: a prepared folder and its manifest, or the file of one that was fetched, which has none."""

    path: Path
    manifest: Manifest | None = None

    @property
    def loader(self) -> StorageFormat:
        return self.manifest.format if self.manifest else "memory"

    @property
    def key(self) -> str:
        text = self.manifest.model_dump_json() if self.manifest else self._fetched.sha256
        return sha256(text.encode()).hexdigest()[:16]

    @functools.cached_property
    def _fetched(self) -> StoredFile:
        """Size and digest of the file of a set that was fetched, which is read once for all who ask."""
        return describe_file(self.path)

    def copies(self) -> Iterator[_Copy]:
        """All files but the manifest."""
        if self.manifest is None:
            yield _Copy(str(self.path), self.path.name, self._fetched.num_bytes, self._fetched.sha256)
            return
        base = self.manifest.base(self.path)
        for name, file in self.manifest.files.items():
            is_here = self.manifest.shards_url is None or (self.path / name).exists()
            where = self.path if is_here else str(self.manifest.shards_url).rstrip("/")
            yield _Copy(f"{where}/{name}", name, file.num_bytes, file.sha256)
        # one zip may hold both splits
        containers = {name: file for of in self.manifest.containers.values() for name, file in of.items()}
        yield from (_Copy(f"{base}/{n}", n, file.num_bytes, file.sha256) for n, file in containers.items())
        for split in SPLITS:
            index = read_index(self.path, split)
            for k in range(len(index.labels) if "num_bytes" in index.places else 0):
                name, num_bytes, crc32 = index.name(k), index.places["num_bytes"][k], index.places["crc32"][k]
                yield _Copy(f"{base}/{name}", name, int(num_bytes), int(crc32))

    def copy_to(self, target: Path, watch: Watch) -> None:
        """Copy what is not in ``target`` yet; of several processes on a node one does.

        Raises:
            OSError: if there is no space, or no permission; then nothing is left there.
            DataError: if a file is not what the manifest says.
        """
        folder = target / self.manifest.dataset / self.manifest.format if self.manifest else target
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_suffix(".lock"), watch):
            if self._is_in(folder):
                return
            missing = sum(copy.num_bytes for copy in self.copies() if not _is_there(folder, copy))
            if (free := shutil.disk_usage(target.parent).free) < missing:
                raise OSError(errno.ENOSPC, f"{missing / 1e9:,.1f} GB are needed, {free / 1e9:,.1f} GB are free")
            try:
                self._copy_missing(folder, watch)
            except (OSError, DataError):
                if not (folder / MANIFEST).exists():  # else others read there
                    shutil.rmtree(target, ignore_errors=True)
                raise

    def _is_in(self, folder: Path) -> bool:
        """Whether all of the set has been copied, and nothing of it was removed since."""
        if self.manifest is None:
            return all(map(_has_digest, [folder], self.copies()))
        with contextlib.suppress(DataError):
            return read_manifest(folder) == self._copied_manifest and all(_is_there(folder, c) for c in self.copies())
        return False

    def _copy_missing(self, folder: Path, watch: Watch) -> None:
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            try:
                for _ in in_order((pool.submit(_copy, c, folder, watch) for c in self.copies()), 4 * _FILES_AT_ONCE):
                    pass
            finally:
                pool.shutdown(cancel_futures=True)
        if self.manifest:
            write_manifest(folder, self._copied_manifest)

    @property
    def _copied_manifest(self) -> Manifest:
        assert self.manifest
        return self.manifest.model_copy(root=None, shards_url=None)


@contextlib.contextmanager
def _locked(path: Path, watch: Watch) -> Iterator[None]:
    lock = filelock.FileLock(path)
    while not lock.is_locked:
        watch.go_on()
        with contextlib.suppress(filelock.Timeout):
            lock.acquire(timeout=1.0)
    try:
        yield
    finally:
        lock.release()


def _is_there(folder: Path, copy: _Copy) -> bool:
    path = folder / copy.name
    return path.is_file() and path.stat().st_size == copy.num_bytes


def _has_digest(folder: Path, copy: _Copy) -> bool:
    if not _is_there(folder, copy):
        return False
    return _digest_of(remote.read_pieces(str(folder / copy.name)), copy.digest) == copy.digest


def _digest_of(pieces: Iterable[bytes], like: str | int) -> str | int:
    """The digest of a file that comes in pieces, of the kind of another."""
    if isinstance(like, int):
        return functools.reduce(lambda crc32, piece: zlib.crc32(piece, crc32), pieces, 0)
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _copy(copy: _Copy, folder: Path, watch: Watch) -> None:
    """Copy a file that is not there yet."""
    watch.go_on()
    if _has_digest(folder, copy):
        return
    path = folder / copy.name
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:

        def written() -> Iterator[bytes]:
            for piece in remote.read_pieces(copy.source):
                watch.go_on()
                file.write(piece)
                yield piece

        found = _digest_of(written(), copy.digest)
    if found != copy.digest:
        partial.unlink()
        raise DataError(f"{copy.source} is not what the manifest says: it changed after the set was prepared")
    partial.replace(path)
