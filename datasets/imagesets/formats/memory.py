"""The memory format: ``train.npy`` and ``test.npy``, uint8 (N, S, S, 3), mapped from files that processes share."""

import io
from pathlib import Path

import numpy as np

from imagesets.formats import Format
from imagesets.formats.sinks import Collected, Finished, Images, Output, Portion, Sink, open_to_grow
from imagesets.formats.stored import StoredImages
from imagesets.manifest import Index, Manifest, Split, StoredFile, describe_file, stale
from imagesets.originals.samples import Original, place_rows
from suite.base.errors import DataError

_HEADER_BYTES = 128  # for any shape: numpy leaves room for the first axis to grow


class Rows(Sink):
    """A portion's rows after the other's. The header comes last, once the number of rows is known."""

    wanted = "square"

    def __init__(self, original: Original, output: Output) -> None:
        super().__init__(original, output)
        self._side, self._num_rows = 0, dict.fromkeys(original.samples, 0)

    def write(self, portion: Portion, images: Images) -> Finished:
        samples, num_rows = self.original.samples[portion.split], 0
        with open_to_grow(self._file(portion.split)) as file:
            file.seek(self._end(portion.split))
            for index, image in images:
                assert isinstance(image.data, np.ndarray)
                (height, width), name = image.data.shape[:2], samples.names[index]
                self._side = self._side or height
                if (height, width) != (self._side, self._side):
                    raise DataError(
                        f"{name} in {self.original.source} is {width} x {height} pixels, expected {self._side} x "
                        f"{self._side}: in memory all images are squares of one size. Have them resized: --max-side N."
                    )
                file.write(image.data.tobytes())
                num_rows += 1
        self._num_rows[portion.split] += num_rows
        return Finished(places={"side": [self._side] * num_rows})

    def has(self, portion: Portion, finished: Finished) -> bool:
        sides, path = finished.places["side"], self._file(portion.split)
        num_rows = self._num_rows[portion.split] + len(sides)
        self._side = [self._side, *sides][-1]
        is_there = path.exists() and path.stat().st_size >= _HEADER_BYTES + num_rows * self._side**2 * 3
        self._num_rows[portion.split] += len(sides) * is_there
        return is_there

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        for split, collected in splits.items():
            del collected.index.places["side"]
            header = io.BytesIO()
            shape = (self._num_rows[split], self._side, self._side, 3)
            np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
            assert len(header.getvalue()) == _HEADER_BYTES
            with open_to_grow(self._file(split)) as file:
                file.truncate(self._end(split))
                file.write(header.getvalue())
        return {path.name: describe_file(path) for path in map(self._file, splits)}

    def _file(self, split: Split) -> Path:
        return self.ready / f"{split}.npy"

    def _end(self, split: Split) -> int:
        """The byte that the next row starts at."""
        return _HEADER_BYTES + self._num_rows[split] * self._side**2 * 3


def _open(folder: Path, split: Split, index: Index, manifest: Manifest) -> StoredImages:
    path = folder / f"{split}.npy"
    try:
        pixels = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise stale(f"{path} is no array of images: {error}") from error
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or len(pixels) != len(index.labels) or pixels.shape[3] != 3:
        raise stale(f"{path} holds {pixels.dtype}{pixels.shape}, expected uint8 of {len(index.labels)} images")
    index.places |= place_rows(pixels)
    return StoredImages(index, folder, [path])


FORMAT = Format(open=_open, make_sink=Rows, has_jpegs=False)
