"""Files behind an address, read by ranges.

    address -> size and version, noted when a process first asks -> ranges of that version, kept in a cache

The cache lies in the data folder, ``.remote``, and takes ``$IMAGESETS_CACHE_GB`` (20; 0 = no cache) at most.
Credentials come from the environment alone (AWS_…, GOOGLE_…, HF_TOKEN), and stand in no address.
"""

import functools
import os
import posixpath
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from suite.base.errors import DataError, SpecError
from suite.base.far import stores
from suite.base.far.block_cache import BlockCache
from suite.base.files import default_data_dir, open_file

SCHEMES = ("s3://", "gs://", "hf://", "https://", "http://")
Returned = TypeVar("Returned")

NUM_TRIES = 6  # with the waits between them, a server may be gone for half a minute
FIRST_WAIT_S = 1.0
_PIECE = 8 << 20  # bytes of one request, at most
_SCANNED_AHEAD = 1 << 20
_SECRET = re.compile(r"\?[^\s'\"]+")  # in an address that a server led to
_jitter = random.Random()  # training's draws come from the other one
_REFUSALS = {  # which another try would meet again
    *("NotSupportedError", "PermissionDeniedError", "UnauthenticatedError", "InvalidPathError", "FileNotFoundError"),
    *("RepositoryNotFoundError", "RevisionNotFoundError", "EntryNotFoundError", "ValueError"),
}
_NO_RANGES = "Its server has to answer range requests, as nginx does: use such a one, or download the file."
_ADVICE = "Look at the address and the server, and at the credentials in the environment (AWS_…, GOOGLE_…, HF_TOKEN)."


class AbsentError(DataError):
    """An address at which there is nothing."""


class RefusedError(DataError):
    """An address that may not be read; object stores say so, too, of what is absent."""


def is_address(path: str) -> bool:
    return path.startswith(SCHEMES)


def check_address(option: str, address: str) -> None:
    """Raise SpecError for an address of another kind, or one that holds what nobody else may read."""
    parts = urlsplit(address)
    if not is_address(address):
        raise SpecError(f"{option} {address}: expected {', '.join(SCHEMES)}, never a command")
    if parts.username is not None or parts.query or parts.fragment:
        raise SpecError(
            f"{option} holds a password, or a ? or # and what may be one, which all could read in the set's manifest: "
            "leave it out. Credentials come from the environment: AWS_…, GOOGLE_…, HF_TOKEN."
        )


@dataclass(frozen=True)
class RemoteFile:
    """One version of a file: ``version`` is its ETag, or what else its server tells of its bytes."""

    address: str
    size: int
    version: str

    def read(self, offset: int, length: int) -> bytes:
        """A part of the file, fewer bytes at its end. DataError if it cannot be had, or the file has changed since it
        was first asked for."""
        stop = min(offset + length, self.size)
        key = f"{self.address} {self.version} {self.size}"
        return _open_cache().read(key, offset, stop, self.size, self.fetch)

    def fetch(self, start: int, stop: int) -> bytes:
        """The bytes from ``start`` to ``stop``, from the server."""
        pieces = []
        for first in range(start, stop, _PIECE):
            ask = functools.partial(stores.get, self.address, first, min(first + _PIECE, stop))
            data, found = _try(self.address, ask)
            if found not in (None, (self.size, self.version)):
                raise DataError(
                    f"{self.address} has changed while it was read: it was {self.size:,} bytes, version "
                    f"{self.version}, and is {found[0]:,} bytes, version {found[1]}. Prepare the image set again."
                )
            pieces.append(data)
        return b"".join(pieces)

    def open(self) -> Any:
        """The file for whoever reads it from front to back."""
        from fsspec.spec import AbstractBufferedFile  # takes a moment to import, and few need it

        opened = AbstractBufferedFile(None, self.address, block_size=_SCANNED_AHEAD, size=self.size)
        opened.cache.fetcher = lambda start, stop: self.read(start, stop - start)
        return opened


@functools.cache
def find(address: str) -> RemoteFile:
    """The file at an address, as it is when this process first asks for it; DataError if it is not to be had."""
    return RemoteFile(address, *_try(address, lambda: stores.head(address)))


@functools.cache
def list_folder(address: str) -> list[str]:
    """The addresses in a folder, sorted, with / behind those of folders; of https://, what its page links to."""
    address = address.rstrip("/") + "/"
    found = _try(address, lambda: stores.list_names(address))
    return sorted({one for one in found if posixpath.dirname(one.rstrip("/")) + "/" == address})


def read_pieces(path: str) -> Iterator[bytes]:
    """All bytes of a file of this machine or behind an address, piece by piece, past the cache."""
    if is_address(path):
        file = find(path)
        yield from (file.fetch(start, min(start + _PIECE, file.size)) for start in range(0, file.size, _PIECE))
        return
    with open_file(Path(path)) as opened:
        while piece := opened.read(_PIECE):
            yield piece


def _try(address: str, ask: Callable[[], Returned]) -> Returned:
    """Ask a server; again, after waits that grow, where it fails in a way that may pass."""
    for number in range(1, NUM_TRIES + 1):
        try:
            return ask()
        except ImportError as error:
            raise DataError(f'{address}: {error}. What reads addresses is missing: pip install ".[remote]"') from error
        except Exception as error:  # each library has its own
            names = {kind.__name__ for kind in type(error).__mro__}
            if number == NUM_TRIES or names & _REFUSALS or 400 <= getattr(error, "status", 0) < 429:
                times = f" (tried {number} times)" if number > 1 else ""
                is_absent, advice = "FileNotFoundError" in names, _NO_RANGES if "Range" in str(error) else _ADVICE
                what = _SECRET.sub("", str(error).partition("\n")[0]) or type(error).__name__
                told = f"cannot be read: {'nothing is there (404)' if is_absent else what}{times}. {advice}"
                is_refused = "PermissionDeniedError" in names
                kind = AbsentError if is_absent else RefusedError if is_refused else DataError
                raise kind(f"{address} {told}") from error
        time.sleep(FIRST_WAIT_S * _jitter.uniform(0.5, 1.0) * 2 ** (number - 1))
    raise AssertionError("the last try returns or raises")


@functools.cache
def _open_cache() -> BlockCache:
    size = os.environ.get("IMAGESETS_CACHE_GB", "20")
    try:
        return BlockCache(default_data_dir() / ".remote", int(float(size) * 1e9))
    except (ValueError, OverflowError) as error:
        raise SpecError(f"IMAGESETS_CACHE_GB is {size!r}, expected a number of gigabytes") from error
