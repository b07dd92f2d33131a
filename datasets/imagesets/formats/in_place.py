"""The format in place: an image set as it was found, with an index of where each image lies and no copy.

The index lies beside the images, in ``SOURCE/.imagesets/NAME``, where all who read them find it; where that cannot be
written, in the data folder.
"""

import itertools
import os
from pathlib import Path

import numpy as np

from imagesets.formats import Format
from imagesets.formats.sinks import Collected, Finished, Images, Output, Portion, Sink
from imagesets.formats.stored import StoredImages
from imagesets.manifest import MANIFEST, Index, Manifest, Split, StoredFile, describe_file
from imagesets.originals.samples import NUM_NEEDED, PLACE, Original, OriginalSamples
from suite.base.errors import DataError
from suite.base.far.remote import is_address
from suite.base.far.remote_path import common_folder, path_of

_FOLDER = ".imagesets"


def find_target(original: Original, dataset: str) -> Path | None:
    """The folder beside the images that their index is in or can be written to; None where it cannot."""
    if is_address(root := find_root(original)):
        return None
    target = Path(os.path.realpath(root), _FOLDER, dataset)
    parent = next(folder for folder in target.parents if folder.is_dir())
    return target if (target / MANIFEST).exists() or os.access(parent, os.W_OK) else None


def find_root(original: Original) -> str:
    """The folder that all images are in or below."""
    if (root := original.samples["train"].root) is not None:
        return str(root)
    return common_folder(path for samples in original.samples.values() for path in samples.files())


class InPlace(Sink):
    """Files that stay where they are, and are only noted. A portion lies in one of those that several images share."""

    wanted = "checked"

    def __init__(self, original: Original, output: Output) -> None:
        super().__init__(original, output)
        self._root = find_root(original)
        real = self._root if is_address(self._root) else os.path.realpath(self._root)
        self.root = "../.." if output.target.parent == Path(real, _FOLDER) else real
        for samples in original.samples.values():
            if samples.is_gzip:
                raise DataError(
                    f"{samples.shared_files[0]} is compressed: nothing in it can be read by its place. "
                    "Decompress it (gunzip), or convert it: --format webdataset"
                )

    def edges(self, samples: OriginalSamples, longest: int) -> list[int]:
        if samples.root is not None:
            return super().edges(samples, longest)
        runs = [0, *(np.flatnonzero(np.diff(samples.places[:, 0])) + 1).tolist(), len(samples)]
        edges = (range(start, stop, longest) for start, stop in itertools.pairwise(runs))
        return [*itertools.chain.from_iterable(edges), len(samples)]

    def write(self, portion: Portion, images: Images) -> Finished:
        num_bytes = [image.num_bytes for _, image in images]
        if self.original.samples[portion.split].root is not None:
            return Finished(places={"num_bytes": num_bytes})
        path = self.path(portion)
        return Finished(file=None if path is None else describe_file(path))

    def path(self, portion: Portion) -> Path | None:
        """The file that ends with this portion: its bytes have just been read, so that its digest takes no time."""
        samples = self.original.samples[portion.split]
        if samples.root is not None:
            return None
        shard = samples.places[portion.stop - 1, 0]
        is_last = portion.stop == len(samples) or samples.places[portion.stop, 0] != shard
        return samples.shared_files[shard] if is_last else None

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        for split, samples in self.original.samples.items():
            if samples.root is None:
                kept, places = splits[split].kept, splits[split].index.places
                for number, name in enumerate(PLACE):
                    if number < NUM_NEEDED or samples.places[:, number].any():
                        places[name] = samples.places[kept, number]
                digests = {self.path(portion): finished.file for portion, finished in splits[split].portions}
                found = {os.path.relpath(path, self._root): digests.get(path) for path in samples.shared_files}
                root = path_of(self._root)
                self.containers[split] = {name: file or describe_file(root / name) for name, file in found.items()}
        return {}


def _open(folder: Path, split: Split, index: Index, manifest: Manifest) -> StoredImages:
    base = manifest.base(folder)
    return StoredImages(index, base, [base / name for name in manifest.containers.get(split, ())])


FORMAT = Format(open=_open, make_sink=InPlace)
