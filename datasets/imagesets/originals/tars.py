"""Tar files that nobody vouches for: their members are listed and read by offset, and never extracted by name."""

from __future__ import annotations

import contextlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from suite.errors import DataError
from suite.files import open_file

_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file in a tar: its bytes are at ``offset`` of the tar's own file."""

    name: str
    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length


def list_members(path: Path, within: Member | None = None) -> Iterator[Member]:
    """The regular files in a tar, or in a tar that is a member of one.

    Raises:
        DataError: if the tar is cut short, compressed or broken, or has a member that is no plain file or whose name
            leads out of it.
    """
    shown = f"{path}: {within.name}" if within else str(path)
    with _naming(shown), open_file(path) as file:
        file.seek(within.offset if within else 0)
        with tarfile.open(fileobj=file, mode="r:") as tar:  # absolute offsets, also within another tar
            while (info := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # a million of them would fill the memory
                _check_name(shown, info.name)
                if info.isdir():
                    continue
                if not info.isfile() or info.issparse():
                    raise DataError(f"{shown}: {info.name} is not a plain file, and nothing else belongs in there")
                yield Member(info.name, info.offset_data, info.size)
            file.seek(tar.offset)
            if file.read(_BLOCK) != bytes(_BLOCK) or (within is not None and tar.offset >= within.end):
                raise DataError(f"{shown} is cut short or broken: after {tar.offset:,} bytes there is no end mark")


def _check_name(shown: str, name: str) -> None:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts:
        raise DataError(f"{shown}: the name of member {name!r} leads out of the archive. Do not trust this file.")


@contextlib.contextmanager
def _naming(shown: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{shown} is not there") from error
    except (OSError, tarfile.TarError) as error:
        raise DataError(f"{shown} cannot be read as an uncompressed tar: {error}") from error
