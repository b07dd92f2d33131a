"""Unpacking tar archives that may be a stranger's. Standard library only: kits are unpacked where nothing else is."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath


def unpack_files(
    archive: tarfile.TarFile, folder: Path, find_fault: Callable[[tarfile.TarInfo], str] = lambda member: ""
) -> None:
    """Write the plain files of an archive below a folder, without owners, rights and times.

    ``TarFile.extractall`` follows links that an archive brings along, and its filters, which older Pythons do not have,
    were led out of the folder more than once. A sparse file of a few bytes may claim to be gigabytes of nothing.

    Raises:
        ValueError: it holds a link, a device, a FIFO, a sparse file, a file twice, a name that leads out of the folder,
            or what ``find_fault`` names a fault of.
        OSError: a file cannot be written.
        tarfile.TarError: it is damaged.
    """
    while (member := archive.next()) is not None:
        archive.members = []  # type: ignore[attr-defined]  # as there may be millions
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise ValueError(f"it holds {member.name!r}, which leads out of its folder")
        path = folder / name
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            continue
        content = archive.extractfile(member) if member.isreg() and not member.issparse() else None
        if content is None:
            raise ValueError(f"it holds {member.name!r}, which is no plain file")
        if fault := find_fault(member):
            raise ValueError(f"it holds {member.name!r}, {fault}")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with content, path.open("xb") as file:
                shutil.copyfileobj(content, file)
        except FileExistsError as error:
            raise ValueError(f"it holds {member.name!r} twice") from error
