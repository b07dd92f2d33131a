"""Addresses as paths, for what looks for an image set in a folder: names, listing, patterns, sizes."""

import errno
import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import cast

from suite.base.errors import DataError
from suite.base.far import remote

_ENDINGS = (".tar", ".gz", ".tgz", ".zip", ".parquet", ".beton", ".ffcv", ".mds", ".json", ".txt")


class RemotePath(PurePosixPath):
    """An address with those methods of ``pathlib.Path`` that only read; a file is known by its ending."""

    def __str__(self) -> str:
        return re.sub(r"^(\w+):/", r"\1://", super().__str__())

    def is_file(self) -> bool:
        return self.name.lower().endswith(_ENDINGS) and self.exists()

    def is_dir(self) -> bool:
        return not self.name.lower().endswith(_ENDINGS) and bool(self._entries())

    def exists(self) -> bool:
        if beside := RemotePath(self.parent)._entries():
            return str(self) in beside or self.is_dir()
        try:
            return remote.find(str(self)).size >= 0
        except DataError:
            return False

    def _entries(self) -> list[str]:
        """The addresses in it; none where a server lists nothing."""
        try:
            return remote.list_folder(str(self))
        except DataError:
            return []

    def iterdir(self) -> Iterator["RemotePath"]:
        return map(RemotePath, self._entries())

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        name, _, rest = pattern.partition("/")
        for address in self._entries():
            path = RemotePath(address)
            if fnmatchcase(path.name, name) and not (rest and not address.endswith("/")):
                yield from path.glob(rest) if rest else [path]

    def open_binary(self) -> BufferedReader:
        try:
            return cast(BufferedReader, remote.find(str(self)).open())
        except remote.AbsentError as error:
            raise FileNotFoundError(errno.ENOENT, "it is not there", str(self)) from error

    def stat(self) -> os.stat_result:
        return os.stat_result((0o100444, 0, 0, 1, 0, 0, remote.find(str(self)).size, 0, 0, 0))

    def absolute(self) -> "RemotePath":
        return self

    resolve = expanduser = absolute


def path_of(text: str) -> Path:
    """A path of this machine, or an address, which is none but serves as one."""
    return cast(Path, RemotePath(text)) if remote.is_address(text) else Path(text)


def common_folder(paths: Iterable[str]) -> str:
    """The folder that all these files, or addresses, are in or below."""
    return str(path_of(re.sub(r"^(\w+):/", r"\1://", os.path.commonpath([os.path.dirname(path) for path in paths]))))  # noqa: PTH120
