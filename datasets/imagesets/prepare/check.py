"""``--check``: every byte of a prepared set, held against its manifest."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from imagesets.formats import find_format
from imagesets.manifest import SPLITS, Manifest, check_bytes, read_index, read_manifest
from imagesets.prepare.progress_bar import show_progress


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
    storage = find_format(manifest.format)
    if not storage.has_apart:
        return manifest, len(paths)
    with show_progress("checking images", 0, sum(manifest.num_images.values()), console) as advance:
        for split in SPLITS:
            images = storage.open(folder, split, read_index(folder, split), manifest)
            for index in range(len(images)):
                images.read(index)
                advance(1)
    return manifest, len(paths) + sum(manifest.num_images.values())
