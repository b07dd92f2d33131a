"""Images a second from sets in place, beside timm's, WebDataset's and LitData's own readers, by one core, in one run.

    python benchmarks/containers.py [--rounds 7] [--photographs DIR] [--folder FOLDER]

The photographs of ``loaders.py`` (JPEGs of 500 x 375) lie in class folders, tars, a zip, Parquet files and .betons. All
readers draw at random, crop to 224, flip and normalize; the others do so by torchvision, as their manuals do. LitData
needs older packages than ours beside it, and is left out where they are not in a folder of their own:

    pip install --target FOLDER/litdata_packages --no-deps litdata lightning-utilities obstore boto3 botocore jmespath
        s3transfer "python-dateutil<3" six tifffile
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from loaders import RECIPES, count_images, report_rates, torch_loader
from photographs import PHOTOGRAPHS, make_image_sets, tiles
from PIL import Image
from timing import Contender, describe_machine, rates_in_turn

from imagesets import decode
from imagesets.catalog import CATALOG
from imagesets.loader import ImageLoader
from suite.base.torchvision_ops import make_torchvision_importable
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.training.environment import keep_freed_memory

_BATCH, _NUM_BATCHES = 64, 10
_ROWS_IN_GROUP = 100  # as the hub has it
_CONTAINERS = ("folders", "tars", "zip", "parquet", "beton")


# -- the same photographs in each container


def make_containers(folder: Path) -> None:
    """Write the containers once, and their indexes."""
    classes, sets = tiles(folder).parent, folder / "containers"
    if not sets.exists():
        partial = folder / "containers.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        (partial / "folders").symlink_to(classes)
        for container, storage_format in {"tars": "webdataset", "beton": "ffcv"}.items():
            shutil.copytree(folder / PHOTOGRAPHS / storage_format, partial / container)
            (partial / container / "manifest.json").unlink()
        (partial / "zip").mkdir()
        with zipfile.ZipFile(partial / "zip" / "all.zip", "w") as archive:
            for path in sorted(classes.rglob("*.jpg")):
                archive.write(path, path.relative_to(classes))
        (partial / "parquet").mkdir()
        for split in ("train", "val"):
            paths = sorted((classes / split).rglob("*.jpg"))
            names = sorted({path.parent.name for path in paths})
            rows = [{"bytes": path.read_bytes(), "path": path.name} for path in paths]
            labels = [names.index(path.parent.name) for path in paths]
            pq.write_table(
                pa.table({"image": rows, "label": labels}),
                partial / "parquet" / f"{split}-00000-of-00001.parquet",
                row_group_size=_ROWS_IN_GROUP,
            )
        partial.rename(sets)
    for container in _CONTAINERS:
        command = [sys.executable, "-m", "imagesets.prepare", "--dataset", container, "--in-place"]
        command += ["--source", str(sets / container), "--out", str(folder / "in_place")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


# -- contenders


def ours(folder: Path, name: str) -> Callable[[], int]:
    """Our loader, of a set in place."""
    keep_freed_memory()
    experiment = Experiment(model="none", dataset=name, image_size=224, recipe=RECIPES[PHOTOGRAPHS])
    resources = Resources(data_dir=str(folder / "in_place"), loader="in_place", num_workers=1)
    loader, first = ImageLoader(experiment, resources), count(step=_NUM_BATCHES)

    def run() -> int:
        start = next(first)
        return count_images(batch.images for batch in loader.train_batches(start, start + _NUM_BATCHES))

    return run


def _transform() -> Callable[[Image.Image], torch.Tensor]:
    make_torchvision_importable()
    from torchvision import transforms

    crop = transforms.RandomResizedCrop(224, interpolation=transforms.InterpolationMode.BICUBIC)
    steps = [crop, transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    normalized: Callable[[Image.Image], torch.Tensor] = transforms.Compose(
        [*steps, transforms.Normalize(CATALOG["imagenet"].mean, CATALOG["imagenet"].std)]
    )
    return normalized


def timms(root: Path) -> Callable[[], int]:
    """timm's own reader of class folders, or of a tar of them, whose members it reads by their places."""
    make_torchvision_importable()
    from timm.data import create_dataset

    return torch_loader(create_dataset("", str(root), transform=_transform()), _BATCH, 1, _NUM_BATCHES)


def _batches(loader: Any) -> Iterator[torch.Tensor]:
    while True:
        for images, _ in loader:
            yield images


def _take(loader: Any) -> Callable[[], int]:
    endless = _batches(loader)
    return lambda: sum(len(next(endless)) for _ in range(_NUM_BATCHES))


def webdatasets(folder: Path) -> Callable[[], int]:
    """WebDataset's own pipeline: shards in turn, a buffer that shuffles."""
    import webdataset as wds

    shards = [str(path) for path in sorted(folder.glob("train-*.tar"))]
    pipeline = wds.WebDataset(shards, shardshuffle=len(shards), empty_check=False).shuffle(1000).decode("pil")
    dataset = pipeline.to_tuple("jpg", "cls").map_tuple(_transform(), int)
    return _take(torch.utils.data.DataLoader(dataset, _BATCH, num_workers=1, multiprocessing_context="fork"))


def litdatas(packages: Path, folder: Path) -> Callable[[], int]:
    """LitData's streaming data set, from chunks that it has written on this disk."""
    sys.path.insert(0, str(packages))
    from litdata import StreamingDataLoader, StreamingDataset

    transform = _transform()

    def collate(samples: list[tuple[bytes, int]]) -> tuple[torch.Tensor, list[int]]:
        images = [transform(Image.open(io.BytesIO(jpeg)).convert("RGB")) for jpeg, _ in samples]
        return torch.stack(images), [label for _, label in samples]

    dataset = StreamingDataset(str(folder), shuffle=True)
    fork = {"num_workers": 1, "multiprocessing_context": "fork"}
    return _take(StreamingDataLoader(dataset, batch_size=_BATCH, collate_fn=collate, **fork))


def write_chunks(packages: Path, classes: Path, folder: Path) -> None:
    """Write LitData's chunks by its own writer."""
    if folder.exists():
        return
    sys.path.insert(0, str(packages))
    from litdata.streaming import Cache

    names = sorted(path.name for path in classes.iterdir())
    cache = Cache(str(folder), chunk_bytes="64MB")
    for index, path in enumerate(sorted(classes.rglob("*.jpg"))):
        cache[index] = (path.read_bytes(), names.index(path.parent.name))
    cache.done()
    cache.merge()


def main() -> None:
    """Make the containers, and let the readers take turns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--photographs", type=Path, help="a folder of large JPEGs; default: Debian's wallpapers")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "loader_benchmark")
    options = parser.parse_args()
    folder, classes = options.folder, tiles(options.folder)
    print(f"{describe_machine()}, JPEGs by {decode.JPEG_DECODER}")
    make_image_sets(folder, options.photographs, {PHOTOGRAPHS: ("webdataset", "ffcv")})
    make_containers(folder)
    one_tar = folder / "train.tar"
    if not one_tar.exists():
        shutil.make_archive(str(folder / "train"), "tar", classes)
    contenders = {
        "timm, class folders, 1": Contender(1, timms, (classes,)),
        "timm, a tar, 1": Contender(1, timms, (one_tar,)),
        "WebDataset, 1": Contender(1, webdatasets, (folder / "containers" / "tars",)),
    }
    if (packages := folder / "litdata_packages").is_dir():
        write_chunks(packages, classes, folder / "litdata")
        contenders["LitData, 1"] = Contender(1, litdatas, (packages, folder / "litdata"))
    references = [name.removesuffix(", 1") for name in contenders]
    contenders |= {f"ours: {name} in place, 1": Contender(1, ours, (folder, name)) for name in _CONTAINERS}
    report_rates("Photographs", contenders, rates_in_turn(contenders, options.rounds), references)


if __name__ == "__main__":
    main()
