"""A small image folder, made of the packaged CIFAR images, and a way to prepare it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console

from imagesets import fetch
from imagesets.fetch import storage
from imagesets.manifest import Manifest, Split, read_index, read_manifest
from imagesets.prepare.conversion import prepare
from imagesets.prepare.settings import Prepared, PrepareSettings

CLASSES = ("n01440764", "n01443537", "n01484850")


@pytest.fixture(scope="session")
def photos() -> Iterator[list[bytes]]:
    """30 JPEGs of 40..60 by 30..45 pixels."""
    images = storage.open_arrays(fetch.ensure("cifar10_sample"))["train_images"]
    photos = []
    for number in range(30):
        file = io.BytesIO()
        size = (40 + number % 5 * 5, 30 + number % 4 * 5)
        Image.fromarray(images[number]).resize(size, Image.Resampling.BICUBIC).save(file, "JPEG", quality=85)
        photos.append(file.getvalue())
    return photos


@pytest.fixture
def folder(tmp_path: Path, photos: list[bytes]) -> Path:
    """Three classes, named as ImageNet's, with 6 images each to train on and 2 to test on."""
    root = tmp_path / "photos"
    numbers = iter(range(30))
    for split, count in (("train", 6), ("val", 2)):
        for name in CLASSES:
            (root / split / name).mkdir(parents=True)
            for _ in range(count):
                number = next(numbers)
                file = f"{name}_{number}.JPEG" if split == "train" else f"ILSVRC2012_val_{number - 17:08d}.JPEG"
                (root / split / name / file).write_bytes(photos[number])
    return root


@pytest.fixture
def run(folder: Path, tmp_path: Path) -> Callable[..., Prepared]:
    """Prepare the folder (or what the arguments say) in ``tmp_path/data``."""

    def run(storage_format: str = "webdataset", dataset: str = "pets", **options: Any) -> Prepared:
        source = str(options.pop("source", folder))
        request = PrepareSettings(
            dataset=dataset,
            source=None if source == "None" else source,
            storage_format=storage_format,
            out=options.pop("out", tmp_path / "data"),
            **({"samples_per_shard": 4} | options),
        )
        return prepare(request, Console(stderr=True, soft_wrap=True))

    return run


class Stored:
    """A prepared set as tests compare it: read without the project's own readers."""

    def __init__(self, prepared: Prepared) -> None:
        self.folder = prepared.folder
        self.manifest: Manifest = read_manifest(prepared.folder)

    def labels(self, split: Split) -> list[int]:
        return read_index(self.folder, split).labels.tolist()

    def names(self, split: Split) -> list[str]:
        index = read_index(self.folder, split)
        return [index.name(number) for number in range(len(index.labels))]

    def sizes(self, split: Split) -> list[list[int]]:
        return read_index(self.folder, split).sizes.tolist()

    def encoded(self, split: Split) -> list[bytes]:
        """The bytes of each image, by the index's places."""
        index = read_index(self.folder, split)
        if self.manifest.format == "folder":
            root = Path(self.manifest.root) if self.manifest.root else self.folder
            return [(root / name).read_bytes() for name in self.names(split)]
        shards = [(self.folder / name).read_bytes() for name in self.manifest.shards(split)]
        places = zip(*(index.places[name].tolist() for name in ("shard", "offset", "length")), strict=True)
        return [shards[shard][offset : offset + length] for shard, offset, length in places]

    def decoded(self, split: Split) -> list[NDArray[np.uint8]]:
        return [np.asarray(Image.open(io.BytesIO(data)).convert("RGB")) for data in self.encoded(split)]

    def files(self) -> dict[str, bytes]:
        """All files but the manifest, which says when it was made."""
        paths = [path for path in self.folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def stored() -> type[Stored]:
    return Stored
