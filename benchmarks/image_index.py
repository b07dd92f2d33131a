"""Time and memory of an index over 1.28 million small images in tars: listing, indexing, opening, an epoch's order.

    python benchmarks/image_index.py DIR [--images 1281167] [--workers 2]

DIR gets shards of 10,000 JPEGs of 32 x 32 pixels each (3 GB) that are links to one and the same file, so that its bytes
stay in memory, and an index beside them. Each step runs in a process of its own, whose peak of memory is printed.
"""

from __future__ import annotations

import argparse
import io
import resource
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

_PER_SHARD, _NUM_CLASSES = 10_000, 1000
_OPEN = """
import time; started = time.monotonic()
from imagesets.loader import ImageLoader
from suite.papers.shared.deit_recipes import DEIT
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
imported = time.monotonic()
experiment = Experiment(model="none", dataset="small", image_size=32, recipe=DEIT)
images = ImageLoader(experiment, Resources(data_dir={data!r}))
opened = time.monotonic()
first = images.samples(0).index[:5].tolist()
print(f"imports {{imported - started:.1f}} s, {{images.num_train:,}} images opened in {{opened - imported:.1f}} s, "
      f"first of the epoch {{first}} after {{time.monotonic() - opened:.2f}} s")
"""


def make_shards(folder: Path, num_images: int) -> None:
    """Write one shard a split, and link the others to it."""
    folder.mkdir(parents=True, exist_ok=True)
    draw, encoded = np.random.default_rng(0), []
    for _ in range(50):
        file = io.BytesIO()
        Image.fromarray(draw.integers(0, 256, (32, 32, 3), np.uint8)).save(file, "JPEG")
        encoded.append(file.getvalue())
    with tarfile.open(folder / "one.bin", "w") as tar:
        for number in range(_PER_SHARD):
            for name, data in (
                (f"{number:06d}.jpg", encoded[number % 50]),
                (f"{number:06d}.cls", b"%d" % (number % _NUM_CLASSES)),
            ):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    for split, count in (("train", -(-num_images // _PER_SHARD)), ("val", 1)):
        for number in range(count):
            path = folder / f"{split}-{number:06d}.tar"
            if not path.exists():
                path.hardlink_to(folder / "one.bin")


def measure(title: str, *command: str) -> None:
    """Run a command, and print its last line, its time, and the largest memory of it and of its workers."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([sys.executable, *command], check=True, capture_output=True, encoding="utf-8")
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, cpu, memory = time.monotonic() - started, usage.ru_utime - before, usage.ru_maxrss / 1024
    print(f"{title}: {seconds:.0f} s ({cpu:.0f} s of a core), at most {memory:.0f} MiB a process so far")
    print(f"  {done.stdout.strip().splitlines()[-1]}", flush=True)


def main() -> None:
    """Make the shards, index them, open the index."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--images", type=int, default=1_281_167, metavar="N")
    parser.add_argument("--workers", default="2", metavar="N")
    options = parser.parse_args()
    source, data = options.folder / "shards", options.folder / "data"
    make_shards(source, options.images)
    measure("opening an empty process", "-c", "import torch, imagesets.loader; print('imports only')")
    prepare = ["-m", "imagesets.prepare", "--dataset", "small", "--in-place", "--out", str(data)]
    measure("indexing", *prepare, "--source", str(source), "--workers", options.workers)
    measure("opening", "-c", _OPEN.format(data=str(data)))
    measure("the same command again", *prepare, "--source", str(source), "--workers", options.workers)
    size = sum(path.stat().st_size for path in (source / ".imagesets" / "small").iterdir())
    print(f"the index has {size / options.images:.0f} bytes an image")


if __name__ == "__main__":
    main()
