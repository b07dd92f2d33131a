"""Files behind an address, read by ranges: s3://, gs:// and https:// by obstore, hf:// by huggingface_hub.

    address -> size and version, noted when a process first asks -> ranges of that version, kept in a cache

The cache lies in the data folder, ``.remote``, and takes ``$IMAGESETS_CACHE_GB`` (20; 0 = no cache) at most.

Credentials come from the environment alone (AWS_…, GOOGLE_…, HF_TOKEN), and stand in no address.
"""

import functools
import io
import os
import posixpath
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from imagesets.fetch.ready import default_data_dir
from suite.base.block_cache import BlockCache
from suite.base.errors import DataError, SpecError
from suite.base.files import open_file

SCHEMES = ("s3://", "gs://", "hf://", "https://", "http://")
Returned = TypeVar("Returned")

NUM_TRIES = 6  # with the waits between them, a server may be gone for half a minute
TIMEOUT_S = 30.0  # of silence; ten times of it for one request
FIRST_WAIT_S = 1.0
_PIECE = 8 << 20  # bytes of one request, at most
_SCANNED_AHEAD = 1 << 20
_jitter = random.Random()  # training's draws come from the other one
_REFUSALS = {  # which another try would meet again
    *("NotSupportedError", "PermissionDeniedError", "UnauthenticatedError", "InvalidPathError", "FileNotFoundError"),
    *("RepositoryNotFoundError", "RevisionNotFoundError", "EntryNotFoundError", "ValueError"),
}
_NO_RANGES = "Its server gives other parts of a file than it is asked for: download the file, and name its folder."
_ADVICE = "Look at the address and the server, and at the credentials in the environment (AWS_…, GOOGLE_…, HF_TOKEN)."


class AbsentError(DataError):
    """An address at which there is nothing."""


class NoRangesError(DataError):
    """A server that gives other parts of a file than it is asked for."""


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
        """A part of the file, fewer bytes at its end.

        Raises:
            DataError: if it cannot be had, or the file has changed since it was first asked for.
        """
        stop = min(offset + length, self.size)
        key = f"{self.address} {self.version} {self.size}"
        return _open_cache().read(key, offset, stop, self.size, self.fetch)

    def fetch(self, start: int, stop: int) -> bytes:
        """The bytes from ``start`` to ``stop``, from the server."""
        edges = [*range(start, stop, _PIECE), stop]
        return b"".join(map(self._fetch_piece, edges[:-1], edges[1:]))

    def _fetch_piece(self, start: int, stop: int) -> bytes:
        data, found = _try(self.address, lambda: _get(self.address, start, stop))
        if found not in (None, (self.size, self.version)):
            raise DataError(
                f"{self.address} has changed while it was read: it was {self.size:,} bytes, version {self.version}, "
                f"and is {found[0]:,} bytes, version {found[1]}. Prepare the image set again."
            )
        return data

    def open(self) -> io.BufferedReader:
        """The file for whoever reads it from front to back."""
        return io.BufferedReader(_Seekable(self), _SCANNED_AHEAD)


class _Seekable(io.RawIOBase):
    def __init__(self, file: RemoteFile) -> None:
        self._file, self._offset = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._offset = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._file.size}[whence]
        return self._offset

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(self._offset, len(buffer)) if self._offset < self._file.size else b""
        buffer[: len(data)] = data
        self._offset += len(data)
        return len(data)


@functools.cache
def find(address: str) -> RemoteFile:
    """The file at an address, as it is when this process first asks for it; DataError if it is not to be had."""
    return RemoteFile(address, *_try(address, lambda: _head(address)))


@functools.cache
def list_folder(address: str) -> list[str]:
    """The addresses in a folder, sorted, with / behind those of folders; of https://, what its page links to."""
    address = address.rstrip("/") + "/"
    found = _try(address, lambda: _list(address))
    return sorted({one for one in found if posixpath.dirname(one.rstrip("/")) + "/" == address})


def read_pieces(path: str) -> Iterator[bytes]:
    """All bytes of a file of this machine or behind an address, piece by piece, past the cache."""
    if is_address(path):
        file = find(path)
        try:
            yield from (file.fetch(start, min(start + _PIECE, file.size)) for start in range(0, file.size, _PIECE))
        except NoRangesError:
            store, name = _locate(path)
            yield _try(path, lambda: bytes(store.get(name).bytes()))
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
                what = (
                    re.sub(r"\?[^\s'\"]+", "", str(error).partition("\n")[0]) or type(error).__name__
                )  # ?: may be a secret
                kind, advice = (NoRangesError, _NO_RANGES) if "Range" in str(error) else (DataError, _ADVICE)
                kind = AbsentError if "FileNotFoundError" in names else kind
                raise kind(f"{address} cannot be read: {what}{times}. {advice}") from error
        time.sleep(FIRST_WAIT_S * _jitter.uniform(0.5, 1.0) * 2 ** (number - 1))
    raise AssertionError("the last try returns or raises")


def _head(address: str) -> tuple[int, str]:
    """The size and version of a file."""
    if address.startswith("hf://"):
        info = _hugging_face().info(_pinned(address))
        return info["size"], str(info.get("xet_hash") or info["blob_id"])
    store, path = _locate(address)
    return _describe(store.head(path))


def _get(address: str, start: int, stop: int) -> tuple[bytes, tuple[int, str] | None]:
    """A part of a file, and the size and version of the file that it is of; None where these cannot change."""
    if address.startswith("hf://"):
        found, data = None, _hugging_face().cat_file(_pinned(address), start, stop, cache_type="none")
    else:
        store, path = _locate(address)
        answer = store.get(path, options={"range": (start, stop)})  # which refuses an answer of another range
        found, data = _describe(answer.meta), bytes(answer.bytes())
    if len(data) != stop - start and found is None:
        raise OSError(f"asked for {stop - start:,} bytes, got {len(data):,}")
    return data, found


def _list(address: str) -> list[str]:
    """The addresses of what lies in a folder, or below it; / is behind those of folders."""
    scheme = address.partition("://")[0]
    if scheme in ("s3", "gs"):
        store, path = _locate(address)
        found, root = store.list_with_delimiter(path), address.removesuffix(path)
        names = [one["path"] for one in found["objects"]] + [f"{one}/" for one in found["common_prefixes"]]
        return [f"{root}{name}" for name in names]
    if scheme == "hf":
        return [f"hf://{one['name']}{'/' * (one['type'] != 'file')}" for one in _hugging_face().ls(address)]
    import fsspec

    return [str(one) for one in fsspec.filesystem(scheme).ls(address, detail=False)]


def _describe(meta: Any) -> tuple[int, str]:
    return meta["size"], meta["e_tag"] or meta["last_modified"].isoformat()


def _locate(address: str) -> tuple[Any, str]:
    """The store that an address names, and the path in it."""
    scheme, _, rest = address.partition("://")
    place, _, path = rest.partition("/")
    return _open_store(f"{scheme}://{place}"), unquote(path) if scheme.startswith("http") else path


@functools.cache
def _open_cache() -> BlockCache:
    size = os.environ.get("IMAGESETS_CACHE_GB", "20")
    try:
        return BlockCache(default_data_dir() / ".remote", int(float(size) * 1e9))
    except (ValueError, OverflowError) as error:
        raise SpecError(f"IMAGESETS_CACHE_GB is {size!r}, expected a number of gigabytes") from error


@functools.cache
def _open_store(root: str) -> Any:
    from obstore.store import from_url

    silence = f"{TIMEOUT_S}s"
    limits: Any = {
        "timeout": f"{10 * TIMEOUT_S}s",
        "read_timeout": silence,
        "connect_timeout": silence,
        "allow_http": True,
    }
    return from_url(root, client_options=limits, retry_config={"max_retries": 0})  # ``_try`` does that


@functools.cache
def _hugging_face() -> Any:
    from huggingface_hub import HfFileSystem

    return HfFileSystem()


@functools.cache
def _find_commit(repo_type: str, repo_id: str, revision: str) -> str:
    from huggingface_hub import HfApi

    return str(HfApi(_hugging_face().endpoint).repo_info(repo_id, repo_type=repo_type, revision=revision).sha)


def _pinned(address: str) -> str:
    """An hf:// address with the commit that its branch is at: what is read by it never changes."""
    found = _hugging_face().resolve_path(address)
    commit = _find_commit(found.repo_type, found.repo_id, found.revision)
    return f"hf://{found.repo_type}s/{found.repo_id}@{commit}/{found.path_in_repo}"
