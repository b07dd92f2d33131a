"""Unpacking tar archives that may be a stranger's. Standard library only: kits are unpacked where nothing else is."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath


def unpack_files(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the plain files of an archive below a folder, without owners, rights and times.

    ``TarFile.extractall`` follows links that an archive brings along, and its filters, which older Pythons do not have,
    were led out of the folder more than once.

    Raises:
        ValueError: it holds a link, a device or a FIFO, or a name that leads out of the folder.
        OSError: a file cannot be written.
        tarfile.TarError: it is damaged.
    """
    for member in archive:
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise ValueError(f"it holds {member.name!r}, which leads out of its folder")
        path = folder / name
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            continue
        content = archive.extractfile(member) if member.isreg() else None
        if content is None:
            raise ValueError(f"it holds {member.name!r}, which is no plain file")
        path.parent.mkdir(parents=True, exist_ok=True)
        with content, path.open("wb") as file:
            shutil.copyfileobj(content, file)
