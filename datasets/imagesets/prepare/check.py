"""``--check``: every byte of a prepared set, held against its manifest."""

from __future__ import annotations

import zlib
from pathlib import Path

from rich.console import Console

from imagesets.formats import find_format
from imagesets.manifest import Manifest, check_bytes, read_manifest
from imagesets.prepare.progress import show_progress
from suite.errors import DataError


def check_prepared(folder: Path, console: Console) -> tuple[Manifest, int]:
    """Read a prepared set in full.

    Returns:
        Its manifest, and how many files were read. Shards that are kept elsewhere and are not here are not.

    Raises:
        DataError: at the first file that is not what the manifest says.
    """
    manifest = read_manifest(folder)
    paths = [folder / name for name in manifest.files if (folder / name).exists()]
    with show_progress("checking files", 0, len(paths), console) as advance:
        for path in paths:
            check_bytes(path, manifest.files[path.relative_to(folder).as_posix()])
            advance(1)
    list_files = find_format(manifest.format).list_files
    if list_files is None:
        return manifest, len(paths)
    with show_progress("checking images", 0, sum(manifest.num_images.values()), console) as advance:
        for path, num_bytes, crc32 in list_files(folder, manifest):
            _check_image(path, num_bytes, crc32)
            advance(1)
    return manifest, len(paths) + sum(manifest.num_images.values())


def _check_image(path: Path, num_bytes: int, crc32: int) -> None:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. The index of the prepared set lists it.") from error
    if len(data) != num_bytes or zlib.crc32(data) != crc32:
        raise DataError(
            f"{path} has {len(data):,} bytes with CRC-32 {zlib.crc32(data):08x}, the index says {num_bytes:,} with "
            f"{crc32:08x}: it changed. Put the old file back, or prepare the image set again."
        )
