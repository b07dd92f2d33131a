"""A cache on the disk for parts of far files: blocks, in one sparse file for each far file.

Where it grows over its limit, the files that were used longest ago go. Each block is followed by its checksum: one that
a killed process wrote in part, or that was damaged, is fetched again, and processes may write the same one at once.
"""

import contextlib
import hashlib
import os
import struct
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock

Fetch = Callable[[int, int], bytes]

BLOCK = 1 << 16
_SEAL = struct.Struct("<II")  # a block's CRC-32, and 1: a hole in the file reads as zeros
_RECORD = BLOCK + _SEAL.size
_SWEPT_PER_LIMIT = 64
_TOUCHED_EVERY_S = 60.0


class BlockCache:
    """The cache in one folder, for any number of threads and processes.

    Args:
        folder: the folder that holds its files, and nothing else.
        max_bytes: bytes that it may take on the disk.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self._max_bytes = folder, max_bytes
        self._is_on, self._unswept = max_bytes > 0, max_bytes

    def read(self, key: str, start: int, stop: int, size: int, fetch: Fetch) -> bytes:
        """The bytes from ``start`` to ``stop`` of a file of ``size`` bytes.

        Args:
            key: name of the file and its version.
            start, stop: offsets in the file.
            size: bytes of the whole file.
            fetch: function that gives the bytes from one offset to another.
        """
        if not self._is_on or stop <= start:
            return fetch(start, stop) if stop > start else b""
        first, last = start // BLOCK, -(-stop // BLOCK)
        path = self.folder / hashlib.sha256(key.encode()).hexdigest()
        blocks = self._load(path, first, last, size)
        missing = [number for number in range(first, last) if number not in blocks]
        while missing:
            run = next((k for k, number in enumerate(missing) if number != missing[0] + k), len(missing))
            data = fetch(missing[0] * BLOCK, min((missing[0] + run) * BLOCK, size))
            fetched = [data[place : place + BLOCK] for place in range(0, len(data), BLOCK)]
            blocks.update(zip(missing, fetched, strict=False))
            self._save(path, missing[0], fetched)
            missing = missing[run:]
        return b"".join(blocks[number] for number in range(first, last))[start - first * BLOCK :][: stop - start]

    def _load(self, path: Path, first: int, last: int, size: int) -> dict[int, bytes]:
        """Those of the blocks that are there and whole."""
        blocks: dict[int, bytes] = {}
        with self._going_off(), path.open("rb", buffering=0) as file:
            data = os.pread(file.fileno(), (last - first) * _RECORD, first * _RECORD)
            if time.time() - os.fstat(file.fileno()).st_mtime > _TOUCHED_EVERY_S:
                os.utime(path)
            for number in range(first, last):
                record = data[(number - first) * _RECORD :][:_RECORD]
                block = record[: min(BLOCK, size - number * BLOCK)]
                if record[BLOCK:] == _SEAL.pack(zlib.crc32(block), 1):
                    blocks[number] = block
        return blocks

    def _save(self, path: Path, first: int, blocks: list[bytes]) -> None:
        data = b"".join(block.ljust(BLOCK, b"\0") + _SEAL.pack(zlib.crc32(block), 1) for block in blocks)
        with self._going_off():
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                os.pwrite(file.fileno(), data, first * _RECORD)
            self._unswept += len(data)
            if self._unswept * _SWEPT_PER_LIMIT > self._max_bytes:
                self._unswept = 0
                self._sweep()

    def _sweep(self) -> None:
        """Remove what was used longest ago, until the rest has room; leave it to another process that is at it."""
        with contextlib.suppress(filelock.Timeout), filelock.FileLock(self.folder / "lock", timeout=0):
            files = [(found.stat(), found.path) for found in os.scandir(self.folder) if found.name != "lock"]
            taken = sum(state.st_blocks * 512 for state, _ in files)
            for state, path in sorted(files, key=lambda pair: pair[0].st_mtime):
                if taken <= self._max_bytes:
                    break
                Path(path).unlink(missing_ok=True)
                taken -= state.st_blocks * 512

    @contextlib.contextmanager
    def _going_off(self) -> Iterator[None]:
        """Go on without the cache where the disk is full, or refuses."""
        try:
            yield
        except FileNotFoundError:  # nothing of it is there yet, or somebody cleared the folder
            pass
        except OSError as error:
            if self._is_on:
                warnings.warn(f"the cache {self.folder} is not used: {error.strerror}", stacklevel=2)
            self._is_on = False
