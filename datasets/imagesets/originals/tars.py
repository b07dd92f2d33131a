"""Tar files that nobody vouches for: their members are listed and read by offset, and never extracted by name."""

import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, NamedTuple, cast

from imagesets.originals.samples import GZIP
from suite.base.archives import StrictHeader
from suite.base.errors import DataError
from suite.base.files import open_file


class Member(NamedTuple):
    """A regular file in a tar: its bytes are at ``offset`` of the tar's own file."""

    name: str
    offset: int
    length: int


class _Part:
    """A file that ends where a member of it does."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file, self._end = file, end
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        return self._file.read(max(min(size, self._end - self._file.tell()), 0))


def list_members(path: Path, within: Member | None = None) -> Iterator[Member]:
    """The regular files in a tar, or in a tar that is a member of one; of a compressed one, as if it were not.
    DataError if the tar is cut short, compressed or broken or goes on after its end, or has a member that is no plain
    file or whose name leads out of it."""
    shown = f"{path}: {within.name}" if within else str(path)
    try:
        with open_file(path) as file:
            yield from _list(path, file, within, shown)
    except FileNotFoundError as error:
        raise DataError(f"{shown} is not there") from error
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        kind = "a gzip" if shown.endswith(GZIP) else "an uncompressed"
        raise DataError(f"{shown} cannot be read as {kind} tar: {str(error).rstrip('.')}. Bring it again.") from error


def _list(path: Path, file: BinaryIO, within: Member | None, shown: str) -> Iterator[Member]:
    file.seek(within.offset if within else 0)
    source = cast(BinaryIO, _Part(file, within.offset + within.length)) if within else file  # offsets stay absolute
    mode: Literal["r|gz", "r:"] = "r|gz" if path.name.endswith(GZIP) else "r:"
    names = set[str]()
    with tarfile.open(fileobj=source, mode=mode, tarinfo=StrictHeader) as tar:
        while (info := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # a million of them would fill the memory
            name = check_name(shown, info.name)
            if info.isdir():
                continue
            if not info.isfile():
                raise DataError(f"{shown}: {info.name} is not a plain file, and nothing else belongs in there")
            if name in names:
                raise DataError(f"{shown}: {info.name} is there twice, and nobody knows which counts. Remove one.")
            names.add(name)
            yield Member(info.name, info.offset_data, info.size)


def check_name(shown: str, name: str) -> str:
    """A member's name without needless parts."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if not name or any(character < " " for character in name):
        raise DataError(f"{shown}: a member is called {name!r}, which nobody would write: this file is damaged")
    if parts.is_absolute() or ".." in parts.parts:
        raise DataError(f"{shown}: the name of member {name!r} leads out of the archive. Do not trust this file.")
    return str(PurePosixPath(name))
