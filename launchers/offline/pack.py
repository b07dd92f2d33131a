"""Wheels and images -> a kit. Runs where there is a network; the first step of a kit's way."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from imagesets.strips import write_strips
from launchers.offline.parts import MANIFEST, KitError, KitManifest, split
from launchers.offline.wheels import Target, WheelCollection, read_dependencies

_PROJECT = Path(__file__).resolve().parents[2]
_BESIDE = ("pip", "setuptools>=77,<82", "pytest")  # to install and to test the project with; PyTorch 2.11 refuses newer
_OURS = re.compile(rf"part-[0-9]+|tmp[a-z0-9_]{{8}}|{re.escape(MANIFEST)}")  # a scratch folder of a killed one too
_MEGABYTE = 1_000_000


def pack(
    kit: Path, target: Target, assume_installed: Sequence[str], image_sets: Sequence[str], part_mb: float
) -> KitManifest:
    """Write the kit's parts and its manifest; a former kit in that folder is replaced.

    Args:
        kit: the folder to write.
        target: the Python and platform that the wheels are for.
        assume_installed: packages that are there already, and are left out with what only they need.
        image_sets: names of the sets whose images are brought along.
        part_mb: the largest size of a part, in megabytes.

    Raises:
        KitError: a wheel that cannot be had, or a folder that holds something else.
        DataError: an image set that cannot be had.
    """
    _clear(kit)
    with tempfile.TemporaryDirectory(dir=kit) as scratch:
        content = Path(scratch)
        (content / "wheels").mkdir()
        print(f"wheels for Python {target.python} on {target.platform}", flush=True)
        wheels = WheelCollection(content / "wheels", target, assume_installed, _PROJECT / "constraints.txt")
        wheels.collect([*read_dependencies(_PROJECT), *_BESIDE])
        for name in image_sets:
            print(f"images of {name}", flush=True)
            write_strips(name, content / name)
        parts = split(content, kit, int(part_mb * _MEGABYTE))
    manifest = KitManifest(
        python=target.python,
        platform=target.platform,
        glibc=f"2.{target.glibc}",
        assumed=tuple(sorted(wheels.assumed)),
        image_sets=tuple(image_sets),
        parts=parts,
    )
    manifest.write(kit)  # last: without it, there is no kit
    return manifest


def _clear(kit: Path) -> None:
    kit.mkdir(parents=True, exist_ok=True)
    others = [path for path in kit.iterdir() if not _OURS.fullmatch(path.name)]
    if others:
        raise KitError(f"{kit} holds {others[0].name}, which is no kit's: name another folder with --kit")
    for path in kit.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
