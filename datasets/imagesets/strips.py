"""An image set as strips of lossless WebP: how it is carried to a machine that cannot fetch it.

    the ready file <-> a folder of strips: train_images-000.webp, …, train_labels.u8

Beside ``fetch`` on the data's path. CIFAR-10 takes 100 MB so, 184 as arrays, 139 as PNG and 140 under xz; other numbers
of images a strip, and other effort, change that by 2 % at most. ``python -m imagesets.strips`` reads strips.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from imagesets import fetch
from imagesets.catalog import ImageSetInfo, get_info
from imagesets.fetch import storage
from suite.base.arguments import a_path
from suite.base.endings import ends_in_message
from suite.base.errors import DataError
from suite.base.exit_codes import Exit

_MAX_SIDE = 16383  # pixels, of any WebP
_IMAGES_PER_STRIP = 500


def write_strips(name: str, folder: Path, data_dir: Path | None = None) -> None:
    """Write a set that is here, or can be fetched, into ``folder``.

    Raises:
        SpecError: an unknown name.
        DataError: the set cannot be had.
    """
    arrays = storage.open_arrays(fetch.ensure(name, data_dir))
    storage.check_arrays(arrays, get_info(name))
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as threads:
        for split in ("train", "test"):
            images = arrays[f"{split}_images"]
            rows = max(1, min(_IMAGES_PER_STRIP, _MAX_SIDE // images.shape[1]))
            strips = [images[start : start + rows] for start in range(0, len(images), rows)]
            paths = [folder / f"{split}_images-{index:03d}.webp" for index in range(len(strips))]
            list(threads.map(_write_strip, strips, paths))
            (folder / f"{split}_labels.u8").write_bytes(arrays[f"{split}_labels"].astype(np.uint8).tobytes())


def read_strips(name: str, folder: Path, data_dir: Path | None = None) -> Path:
    """Make the ready file of a set from its strips, once they are what the catalog says.

    Returns:
        The file's path, where ``fetch.ensure`` finds it.

    Raises:
        SpecError: an unknown name.
        DataError: strips that are missing, damaged or of another set.
    """
    info, data_dir = get_info(name), data_dir or fetch.default_data_dir()
    arrays = _read_arrays(info, folder)
    path = data_dir.absolute() / f"{name}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    storage.write_arrays(path, arrays, name, f"strips of {name}")
    return path


def _read_arrays(info: ImageSetInfo, folder: Path) -> dict[str, storage.Array]:
    arrays: dict[str, storage.Array] = {}
    try:
        with ThreadPoolExecutor() as threads:
            for split in ("train", "test"):
                strips = list(threads.map(_read_strip, sorted(folder.glob(f"{split}_images-*.webp"))))
                arrays[f"{split}_images"] = np.concatenate(strips)
                labels = (folder / f"{split}_labels.u8").read_bytes()
                arrays[f"{split}_labels"] = np.frombuffer(labels, np.uint8).astype(np.int64)
        storage.check_arrays(arrays, info)
    except (OSError, ValueError, DataError) as error:
        raise DataError(f"{folder} does not hold {info.title} as strips: {error}. Bring it again.") from error
    return arrays


def _write_strip(images: storage.Array, path: Path) -> None:
    side = images.shape[1]
    Image.fromarray(images.reshape(-1, side, 3)).save(
        path, lossless=True, method=4, quality=75
    )  # the best pair in time and size


def _read_strip(path: Path) -> storage.Array:
    with Image.open(path, formats=["WEBP"]) as image:
        return np.asarray(image.convert("RGB")).reshape(-1, image.width, image.width, 3)


@ends_in_message
def main(argv: Sequence[str] | None = None) -> int:
    """Read strips; the exit status is 1 for a set that they do not give."""
    parser = argparse.ArgumentParser(
        prog="python -m imagesets.strips", description="Make an image set ready from strips."
    )
    parser.add_argument("name")
    parser.add_argument("folder", type=a_path)
    parser.add_argument("--data-dir", type=a_path, help="where to keep it (default: $IMAGESETS_DIR or your cache)")
    options = parser.parse_args(argv)
    path = read_strips(options.name, options.folder, options.data_dir)
    print(f"{options.name}: made {path} from {options.folder}; every byte is the catalog's")
    return Exit.DONE


if __name__ == "__main__":
    sys.exit(main())
