"""A folder as one tar, cut into parts that can be brought one after the other, and the manifest that they are held
against. Between ``wheels`` (which fills the folder) and ``install``. Nothing but the standard library here."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from suite.base.archives import StrictHeader, unpack_files
from suite.base.errors import SuiteError

MANIFEST = "manifest.json"
_CHUNK_BYTES = 1 << 20


class KitError(SuiteError):
    """A kit that is not whole, or not for this machine."""


@dataclass(frozen=True)
class Part:
    """A piece of the tar, as a file of the kit."""

    name: str
    num_bytes: int
    sha256: str


@dataclass(frozen=True)
class KitManifest:
    """The purpose of a kit, and its contents.

    Attributes:
        python: the version that its wheels are for, such as "3.12".
        platform: the system and processor, such as "linux-x86_64".
        glibc: the oldest C library that its wheels run with, such as "2.28".
        assumed: the packages that are not in it, since they are to be there.
        image_sets: the sets whose images are in it.
    """

    python: str
    platform: str
    glibc: str
    assumed: tuple[str, ...]
    image_sets: tuple[str, ...]
    parts: tuple[Part, ...]

    def write(self, kit: Path) -> None:
        (kit / MANIFEST).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, kit: Path) -> KitManifest:
        """Read the manifest of a kit's folder.

        Raises:
            KitError: there is none, or it cannot be read.
        """
        path = kit / MANIFEST
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            parts = tuple(Part(**part) for part in fields.pop("parts"))
            lists: dict[str, Any] = {name: tuple(fields.pop(name)) for name in ("assumed", "image_sets")}
            if not all(isinstance(part.name, str) and type(part.num_bytes) is int for part in parts):
                raise ValueError(f"{parts} are no parts")
            return cls(**fields, **lists, parts=parts)
        except FileNotFoundError as error:
            raise KitError(f"{path} is not there: bring it beside the parts, or name the kit's folder") from error
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise KitError(f"{path} is no kit's manifest ({error!r}): bring it again") from error


def split(folder: Path, kit: Path, max_bytes: int) -> tuple[Part, ...]:
    """Write ``folder`` into ``kit``, in parts of at most ``max_bytes``; the same files give the same parts."""
    writer = _PartWriter(kit, max_bytes)
    with tarfile.open(fileobj=writer, mode="w|", bufsize=_CHUNK_BYTES) as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, path.relative_to(folder), recursive=False, filter=_without_owner)
    return writer.finish()


def find_problems(kit: Path, parts: Sequence[Part]) -> dict[str, str]:
    """Name the fault of each part that is missing or damaged; {} for a whole kit."""
    found = {part.name: _find_problem(kit / part.name, part) for part in parts}
    return {name: problem for name, problem in found.items() if problem}


def join(kit: Path, parts: Sequence[Part], folder: Path) -> None:
    """Unpack the parts into ``folder``, reading each once.

    Raises:
        KitError: some are missing or damaged; the message names them all, and nothing is written.
    """
    if problems := find_problems(kit, parts):
        lines = "".join(f"\n  {name} {problem}" for name, problem in problems.items())
        raise KitError(f"{len(problems)} of the {len(parts)} parts in {kit} cannot be used; bring these again:{lines}")
    stream = io.BufferedReader(_JoinedReader([kit / part.name for part in parts]), _CHUNK_BYTES)
    try:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=StrictHeader) as tar:
            unpack_files(tar, folder)
    except (tarfile.TarError, ValueError) as error:
        raise KitError(f"{kit} is no kit: {error}") from error


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _find_problem(path: Path, part: Part) -> str:
    if not path.exists():
        return "is missing"
    if (size := path.stat().st_size) != part.num_bytes:
        return f"has {size:,} bytes, expected {part.num_bytes:,}: it was not copied whole"
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return "" if digest == part.sha256 else f"has SHA-256 {digest}, expected {part.sha256}: it is damaged"


class _PartWriter(io.RawIOBase):
    """Takes one stream of bytes, and starts a new file whenever one is full."""

    def __init__(self, kit: Path, max_bytes: int) -> None:
        self._kit, self._max_bytes = kit, max_bytes
        self._parts: list[Part] = []
        self._open_next()

    def write(self, data: bytes) -> int:  # type: ignore[override]  # tarfile gives bytes alone
        rest = memoryview(data)
        while rest:
            room = self._max_bytes - self._file.tell()
            self._file.write(rest[:room])
            self._digest.update(rest[:room])
            rest = rest[room:]
            if rest:
                self._close_file()
                self._open_next()
        return len(data)

    def finish(self) -> tuple[Part, ...]:
        self._close_file()
        return tuple(self._parts)

    def _open_next(self) -> None:
        self._file = (self._kit / f"part-{len(self._parts) + 1:02d}").open("wb")
        self._digest = hashlib.sha256()

    def _close_file(self) -> None:
        size = self._file.tell()
        self._file.close()
        self._parts.append(Part(Path(self._file.name).name, size, self._digest.hexdigest()))


class _JoinedReader(io.RawIOBase):
    """Several files read as one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._chunks = _read_chunks(paths)
        self._chunk = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # BufferedReader gives a memoryview
        if not self._chunk:
            self._chunk = memoryview(next(self._chunks, b""))
        size = min(len(buffer), len(self._chunk))
        buffer[:size], self._chunk = self._chunk[:size], self._chunk[size:]
        return size


def _read_chunks(paths: Sequence[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
