"""Image sets for timing loaders: CIFAR-10, and photographs cut into JPEGs of ImageNet's usual size.

    photographs (Debian's wallpapers, or a folder) -> tiles, 500 x 375, quality 90 -> datasets/prepare.py

All of it lies in one folder and is made once.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

PACKAGES = ("mate-backgrounds", "lomiri-wallpapers-16.04")
CIFAR, PHOTOGRAPHS, SMALL = "cifar10", "photographs", "photographs_256"  # image sets; the last is stored as pixels
_WIDTH, _HEIGHT, _QUALITY = 500, 375, 90
_STEP = 5  # tiles overlap: each starts a fifth of its size from the one before
_SHORTER_SIDE = 1000  # of a photograph before it is cut: unshrunk, a tile shows little but blur
_PREPARE = Path(__file__).parents[1] / "datasets" / "prepare.py"


def make_image_sets(folder: Path, photographs: Path | None, formats: Mapping[str, tuple[str, ...]]) -> None:
    """Have the named sets in the named formats under ``folder``, as ``datasets/prepare.py`` writes them."""
    if PHOTOGRAPHS in formats:
        _make_tiles(folder, photographs)
    for name, storage_format in formats.items():
        source = [] if name == CIFAR else ["--source", str(folder / "tiles" / name)]
        for each in storage_format:
            print(f"preparing {name} as {each}", flush=True)
            command = [sys.executable, str(_PREPARE), "--dataset", name, "--format", each]
            command += ["--out", str(folder), *source]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def tiles(folder: Path) -> Path:
    """The folder of classes whose JPEGs the prepared photographs are."""
    return folder / "tiles" / PHOTOGRAPHS / "train"


def _make_tiles(folder: Path, photographs: Path | None) -> None:
    if (folder / "tiles").exists():
        return
    partial = folder / "tiles.partial"
    shutil.rmtree(partial, ignore_errors=True)
    found = [path for path in sorted((photographs or _download(folder)).rglob("*")) if path.suffix in (".jpg", ".jpeg")]
    num_tiles = sum(_cut(path, number, partial) for number, path in enumerate(found))
    if not num_tiles:
        sys.exit(f"{photographs or folder}: no photographs (*.jpg) found that are large enough to be cut into tiles")
    partial.rename(folder / "tiles")


def _cut(path: Path, number: int, out: Path) -> int:
    """Write the tiles of one photograph, a class of its own, one in ten for testing; says how many."""
    with Image.open(path) as opened:
        scale = _SHORTER_SIDE / min(opened.size)
        if scale > 1.4:  # too small
            return 0
        image = opened.convert("RGB").resize((round(opened.width * scale), round(opened.height * scale)))
    corners = [
        (left, top)
        for top in range(0, image.height - _HEIGHT + 1, _HEIGHT // _STEP)
        for left in range(0, image.width - _WIDTH + 1, _WIDTH // _STEP)
    ]
    for place, (left, top) in enumerate(corners):
        split = "train" if place % 10 else "val"
        tile = image.crop((left, top, left + _WIDTH, top + _HEIGHT))
        small = tile.resize((256, 192))
        for name, picture, ending in ((PHOTOGRAPHS, tile, "jpg"), (SMALL, small, "png")):
            target = out / name / split / f"{number:03d}" / f"{place:04d}.{ending}"
            target.parent.mkdir(parents=True, exist_ok=True)
            picture.save(target, quality=_QUALITY, compress_level=1)
    return len(corners)


def _download(folder: Path) -> Path:
    """Debian's wallpapers, unpacked but not installed."""
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        sys.exit(
            "There is no apt-get here to download wallpapers with: name a folder of photographs, --photographs DIR"
        )
    packages = folder / "wallpapers"
    packages.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        done = subprocess.run(
            ["apt-get", "download", package], cwd=packages, capture_output=True, encoding="utf-8", errors="replace"
        )
        if done.returncode:
            sys.exit(
                f"apt-get download {package}: {done.stderr.strip()}\nName a folder of photographs: --photographs DIR"
            )
    for archive in packages.glob("*.deb"):
        subprocess.run(["dpkg", "-x", archive, packages], check=True)
    return packages
