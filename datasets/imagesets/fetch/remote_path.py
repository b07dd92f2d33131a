"""Addresses as paths, for what looks for an image set in a folder: names, listing, patterns, sizes."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from os import stat_result
from pathlib import Path, PurePosixPath
from typing import cast

from imagesets.fetch import remote
from suite.base.errors import DataError

_ENDINGS = (".tar", ".gz", ".tgz", ".zip", ".parquet", ".beton", ".ffcv", ".mds", ".json", ".txt")


class RemotePath(PurePosixPath):
    """An address with those methods of ``pathlib.Path`` that only read; a file is known by its ending."""

    def __str__(self) -> str:
        return re.sub(r"^(\w+):/", r"\1://", super().__str__())

    def is_file(self) -> bool:
        return self.name.lower().endswith(_ENDINGS) and self.exists()

    def is_dir(self) -> bool:
        try:
            return not self.name.lower().endswith(_ENDINGS) and bool(remote.list_folder(str(self)))
        except DataError:
            return False

    def exists(self) -> bool:
        try:
            return str(self) in remote.list_folder(str(self.parent)) or self.is_dir()
        except DataError:  # a server that lists nothing may have it all the same
            return False

    def iterdir(self) -> Iterator["RemotePath"]:
        return map(RemotePath, remote.list_folder(str(self)))

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        name, _, rest = pattern.partition("/")
        for address in remote.list_folder(str(self)):
            path = RemotePath(address)
            if fnmatchcase(path.name, name) and not (rest and not address.endswith("/")):
                yield from path.glob(rest) if rest else [path]

    def stat(self) -> stat_result:
        return stat_result((0o100444, 0, 0, 1, 0, 0, remote.find(str(self)).size, 0, 0, 0))

    def absolute(self) -> "RemotePath":
        return self

    resolve = absolute


def path_of(text: str) -> Path:
    """A path of this machine, or an address, which is none but serves as one."""
    return cast(Path, RemotePath(text)) if remote.is_address(text) else Path(text)
