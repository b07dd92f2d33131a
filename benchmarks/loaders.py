"""Images a second from our loaders, FFCV's own and torchvision's, and the memory they take, in one run.

    python benchmarks/loaders.py [--part cifar|photographs|memory|checks] [--cores 1 2] [--rounds 7] [--photographs DIR]

Each contender is a process of its own, kept on as many cores as the table says, and the rounds take turns. CIFAR-10:
crop of an image padded by 4, flip, normalize, batches of 128. Photographs (JPEGs of 500 x 375 pixels): random resized
crop to 224, flip, normalize, batches of 64, beside what libjpeg-turbo takes just to decode the same bytes. Checks: what
is read for the first time, and held against its checksums, beside the same without.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measured import note
from photographs import CIFAR, PHOTOGRAPHS, SMALL, make_image_sets, tiles
from timing import Contender, describe_machine, keep_on_cores, load, rates_in_turn

from imagesets import decode
from imagesets.catalog import CATALOG
from imagesets.fetch import ensure
from imagesets.fetch.storage import check_file
from imagesets.loader import ImageLoader
from suite.base.torchvision_ops import make_torchvision_importable
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.training.environment import keep_freed_memory

RECIPES = {
    CIFAR: Recipe(
        name="cifar", epochs=1, batch_size=128, learning_rate=1, crop="pad", crop_padding=4, flip_probability=0.5
    ),
    PHOTOGRAPHS: Recipe(
        name="photographs", epochs=1, batch_size=64, learning_rate=1, crop="random_resized", flip_probability=0.5
    ),
}
RECIPES[SMALL] = RECIPES[PHOTOGRAPHS]
_MEMORY_IMAGES = 100_000
_HAS_FFCV = find_spec("ffcv") is not None
_FORMATS: tuple[tuple[str, str], ...] = (
    (PHOTOGRAPHS, "webdataset"),
    (PHOTOGRAPHS, "folder"),
    (PHOTOGRAPHS, "ffcv"),
    (SMALL, "ffcv"),
)


def open_loader(folder: Path, name: str, storage_format: str, cores: int) -> ImageLoader:
    """Open the set's loader with the recipe of its augmentation.

    Args:
        folder: Folder of the prepared sets.
        name: Name of the set.
        storage_format: Format in which the set is read.
        cores: Number of workers.
    """
    experiment = Experiment(model="none", dataset=name, image_size=32 if name == CIFAR else 224, recipe=RECIPES[name])
    data_dir = None if (name, storage_format) == (CIFAR, "memory") else str(folder)
    return ImageLoader(experiment, Resources(data_dir=data_dir, loader=storage_format, num_workers=cores))


# -- contenders: what a round delivers


def ours(
    folder: Path, name: str, storage_format: str, cores: int, num_batches: int, is_first_reading: bool = False
) -> Callable[[], int]:
    """Make our loader a contender: each call goes on where the one before ended.

    Args:
        folder, name, storage_format, cores: The arguments of ``open_loader``.
        num_batches: Number of batches that one call reads.
        is_first_reading: Whether to check every image, as when it is read for the first time, or none.
    """
    keep_freed_memory()  # as a run does
    loader, first = open_loader(folder, name, storage_format, cores), count(step=num_batches)

    def run() -> int:
        loader._train._is_unread[:] = is_first_reading
        start = next(first)
        return count_images(batch.images for batch in loader.train_batches(start, start + num_batches))

    return run


def checking_cifar() -> Callable[[], int]:
    """All that is checked when CIFAR-10's ready file is opened."""
    path = ensure(CIFAR)

    def run() -> int:
        check_file(path, CATALOG[CIFAR])
        return 60_000

    return run


def ours_by_pillow(*arguments: Any) -> Callable[[], int]:
    """Our loader as it is without the extra ``jpeg``."""
    decode._TURBOJPEG = None
    return ours(*arguments)


def ffcv_cifar(beton: Path, cores: int) -> Callable[[], int]:
    """FFCV's own loader at its fastest: channels last, the file held in memory. It normalizes before ToTensor only."""
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import SimpleRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, RandomTranslate, Squeeze, ToTensor, ToTorchImage

    mean, std = (255 * np.array(value) for value in (CATALOG[CIFAR].mean, CATALOG[CIFAR].std))
    augment = [SimpleRGBImageDecoder(), RandomHorizontalFlip(), RandomTranslate(padding=4)]
    image = [*augment, NormalizeImage(mean, std, np.float32), ToTensor(), ToTorchImage()]
    pipelines = {"image": image, "label": [IntDecoder(), ToTensor(), Squeeze()]}
    loader = Loader(
        str(beton), 128, num_workers=cores, os_cache=True, order=OrderOption.RANDOM, drop_last=True, pipelines=pipelines
    )
    torch.set_num_threads(cores)  # which FFCV has set to one
    return lambda: count_images(images for images, _ in loader)


def torchvision_cifar(folder: Path, cores: int, num_batches: int) -> Callable[[], int]:
    make_torchvision_importable()
    from PIL import Image
    from torchvision import transforms

    stored = open_loader(folder, CIFAR, "memory", 1)._train
    augment = [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    transform = transforms.Compose([*augment, transforms.Normalize(CATALOG[CIFAR].mean, CATALOG[CIFAR].std)])

    class Cifar(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
        """As ``torchvision.datasets.CIFAR10``, which would download what is here already."""

        def __len__(self) -> int:
            return len(stored)

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            return transform(Image.fromarray(stored.whole(index))), int(stored.labels[index])

    return torch_loader(Cifar(), 128, cores, num_batches)


def torchvision_photographs(classes: Path, cores: int, num_batches: int) -> Callable[[], int]:
    make_torchvision_importable()
    from torchvision import datasets, transforms

    crop = transforms.RandomResizedCrop(224, interpolation=transforms.InterpolationMode.BICUBIC)
    augment = [crop, transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    transform = transforms.Compose([*augment, transforms.Normalize(CATALOG["imagenet"].mean, CATALOG["imagenet"].std)])
    return torch_loader(datasets.ImageFolder(classes, transform), 64, cores, num_batches)


def torch_loader(
    dataset: torch.utils.data.Dataset[Any], batch_size: int, cores: int, num_batches: int
) -> Callable[[], int]:
    """Make PyTorch's loader a contender, with a worker for each core, which live on from round to round.

    Args:
        dataset: One of torchvision's.
        batch_size: Images a batch.
        cores: Number of workers.
        num_batches: Number of batches that one call reads.
    """
    num_images = len(dataset)  # type: ignore[arg-type]  # torch names no type of those with a length
    chosen = torch.utils.data.Subset(dataset, torch.randperm(num_images)[: batch_size * num_batches].tolist())
    loader = torch.utils.data.DataLoader(
        chosen, batch_size, shuffle=True, num_workers=cores, persistent_workers=True, multiprocessing_context="fork"
    )
    return lambda: count_images(images for images, _ in loader)


def bare_decoding(classes: Path, cores: int, num_images: int) -> Callable[[], int]:
    """libjpeg-turbo's full decoding, with handles and memory used again: nothing is read, cut or resized."""
    turbojpeg = decode._TURBOJPEG
    assert turbojpeg, "libjpeg-turbo 3 is not there: pip install '.[jpeg]'"
    files = sorted(classes.rglob("*.jpg"))
    chosen = np.random.default_rng(0).choice(len(files), num_images)
    data = [files[index].read_bytes() for index in chosen]
    handles = [turbojpeg.tj3Init(1) for _ in range(cores)]
    buffers = [ctypes.create_string_buffer(1 << 20) for _ in range(cores)]
    threads = ThreadPoolExecutor(cores)

    def decode_share(worker: int) -> int:
        for image in data[worker::cores]:
            assert turbojpeg.tj3DecompressHeader(handles[worker], image, len(image)) == 0
            assert turbojpeg.tj3Decompress8(handles[worker], image, len(image), buffers[worker], 0, 0) == 0
        return len(data[worker::cores])

    return lambda: sum(threads.map(decode_share, range(cores)))


def count_images(batches: Iterable[torch.Tensor]) -> int:
    return sum(len(images) for images in batches)


# -- the tables


def compare_on_cifar(folder: Path, all_cores: list[int], rounds: int) -> None:
    contenders = {}
    for cores in all_cores:
        contenders[f"torchvision, {cores}"] = Contender(cores, torchvision_cifar, (folder, cores, 40))
        if _HAS_FFCV:
            contenders[f"FFCV, {cores}"] = Contender(cores, ffcv_cifar, (folder / CIFAR / "ffcv/train.beton", cores))
        contenders[f"ours: memory, {cores}"] = Contender(cores, ours, (folder, CIFAR, "memory", cores, 390))
    rates = rates_in_turn(contenders, rounds, warmup=2)
    report_rates(
        "CIFAR-10", contenders, rates, [name for name in ("torchvision", "FFCV") if name != "FFCV" or _HAS_FFCV]
    )


def compare_on_photographs(folder: Path, all_cores: list[int], rounds: int) -> None:
    contenders, classes = {}, tiles(folder)
    for cores in all_cores:
        contenders[f"bare decoding, {cores}"] = Contender(cores, bare_decoding, (classes, cores, 640))
        contenders[f"torchvision, {cores}"] = Contender(cores, torchvision_photographs, (classes, cores, 10))
        for name, storage_format in _FORMATS:
            title = f"ours: {storage_format}{' of 256 px, raw' if name == SMALL else ''}, {cores}"
            contenders[title] = Contender(cores, ours, (folder, name, storage_format, cores, 10))
        by_pillow = Contender(cores, ours_by_pillow, (folder, PHOTOGRAPHS, "webdataset", cores, 10))
        contenders[f"ours: webdataset by Pillow, {cores}"] = by_pillow
    files = list(classes.rglob("*.jpg"))
    mean_kb = statistics.mean(path.stat().st_size for path in files) / 1000
    rates = rates_in_turn(contenders, rounds)
    title = f"{len(files):,} photographs of 500 x 375, {mean_kb:.0f} kB in the mean"
    report_rates(title, contenders, rates, ["torchvision", "bare decoding"])


def report_rates(
    title: str, contenders: dict[str, Contender], rates: dict[str, list[float]], references: list[str]
) -> None:
    """Print medians, and the medians over rounds of the ratios to the references at equal cores.

    Args:
        title: Line that is printed above.
        contenders: The contenders by their names, which end with the number of cores.
        rates: Images per second of each round.
        references: Names of the contenders to compare with.
    """
    print(f"\n{title} ({load()})")
    header = "".join(f"{'/ ' + reference:>16s}" for reference in references)
    print(f"{'what, cores':34s}{'images/s':>10s}{'per core':>10s}{header}   slowest to fastest round")
    for name, values in rates.items():
        cores, median = contenders[name].cores, statistics.median(values)
        ratios = [
            statistics.median(a / b for a, b in zip(values, rates[f"{reference}, {cores}"], strict=True))
            for reference in references
        ]
        columns = "".join(f"{ratio:16.2f}" for ratio in ratios)
        if name.startswith("ours"):
            for reference in references:
                note(f"{title}, {name} cores", reference, rates[f"{reference}, {cores}"], values)
        spread = f"   {min(values):,.0f} to {max(values):,.0f}"
        print(f"{name:34s}{median:10,.0f}{median / cores:10,.0f}{columns}{spread}")


def compare_checks(folder: Path, rounds: int) -> None:
    """Print what checksums cost: while every image is read for the first time, and when a ready file is opened."""
    cases = [(CIFAR, "memory"), (CIFAR, "ffcv"), *_FORMATS]
    contenders = {"CIFAR-10's ready file, checked": Contender(1, checking_cifar)}
    for name, storage_format in cases:
        for is_first in (True, False):
            arguments = (folder, name, storage_format, 1, 390 if name == CIFAR else 10, is_first)
            contenders[_name_case(name, storage_format, is_first)] = Contender(1, ours, arguments)
    rates = rates_in_turn(contenders, rounds, warmup=2)
    print(f"\nRead for the first time, beside without checks, on one core ({load()})")
    for name, storage_format in cases[1:]:
        _compare(rates, _name_case(name, storage_format, True), _name_case(name, storage_format, False))
    _compare(rates, "CIFAR-10's ready file, checked", _name_case(CIFAR, "memory", False))


def _name_case(name: str, storage_format: str, is_first: bool) -> str:
    return f"{name}, {storage_format}, {'first reading' if is_first else 'no check'}"


def _compare(rates: dict[str, list[float]], what: str, reference: str) -> None:
    note(what, reference, rates[reference], rates[what])
    ratio = statistics.median(a / b for a, b in zip(rates[what], rates[reference], strict=True))
    print(f"{what:46s}{statistics.median(rates[what]):10,.0f} images/s{ratio:8.3f} times {reference}")


# -- memory


def report_memory(folder: Path) -> None:
    """Print the memory of processes that deliver 100,000 images each, several at once."""
    print(f"\nMemory over {_MEMORY_IMAGES:,} images, MiB: the process's own, and of mapped files ({load()})")
    cases = [(CIFAR, "memory"), *_FORMATS]
    context = multiprocessing.get_context("spawn")
    with context.Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        lines = pool.starmap(memory_of, [(folder, *case) for case in cases], chunksize=1)
    for (name, storage_format), line in zip(cases, lines, strict=True):
        print(f"{name + ', ' + storage_format:34s}{line}")


def memory_of(folder: Path, name: str, storage_format: str) -> str:
    keep_on_cores(1)
    keep_freed_memory()
    loader = open_loader(folder, name, storage_format, 1)
    num_batches = -(-_MEMORY_IMAGES // loader.recipe.batch_size)
    batches = loader.train_batches(0, num_batches)
    points = []
    for part in (num_batches // 50, num_batches // 2 - num_batches // 50, num_batches - num_batches // 2):
        count_images(batch.images for batch in islice(batches, part))
        points.append(resident_mib())
    return "   ".join(
        f"{when} {own:4.0f} + {mapped:3.0f}"
        for when, (own, mapped) in zip(("at 2 %", "half way", "at the end"), points, strict=True)
    )


def resident_mib() -> tuple[float, float]:
    """This process's own memory and its pages of mapped files."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    own, mapped, shared = (int(lines[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile", "RssShmem"))
    return own, mapped + shared


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--part", choices=["cifar", "photographs", "memory", "checks"], help="default: all of them")
    parser.add_argument("--cores", type=int, nargs="+", default=sorted({1, min(2, os.cpu_count() or 1)}))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--photographs", type=Path, help="a folder of large JPEGs; default: Debian's wallpapers")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "loader_benchmark")
    options = parser.parse_args()
    print(f"{describe_machine()}, JPEGs by {decode.JPEG_DECODER}; {load()}")
    formats = {CIFAR: ("ffcv",), PHOTOGRAPHS: ("webdataset", "folder", "ffcv"), SMALL: ("ffcv",)}
    make_image_sets(options.folder, options.photographs, formats)
    if options.part in (None, "cifar"):
        compare_on_cifar(options.folder, options.cores, options.rounds)
    if options.part in (None, "photographs"):
        compare_on_photographs(options.folder, options.cores, options.rounds)
    if options.part in (None, "checks"):
        compare_checks(options.folder, options.rounds)
    if options.part in (None, "memory"):
        report_memory(options.folder)


if __name__ == "__main__":
    main()
