"""The one reader of stored images: a line of the index -> the image's bytes, or its pixels.

Shards, class folders, .betons and sets in place are all read here: their index says in which file an image lies, from
which byte on and how long.
"""

import os
import resource
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from imagesets.fetch.remote import is_address
from imagesets.formats.stored import CHANGED, Pixels, StoredImages
from imagesets.manifest import Index, stale
from imagesets.originals.samples import CODECS, ByteRange, Page
from imagesets.originals.treatment import decodable
from suite.base.errors import DataError

SHARD_PLACE = ("shard", "offset", "length")
PLACE = (*SHARD_PLACE, "height", "width", "page_offset", "page_length", "codec")  # the last five if not all are 0


class IndexedImages(StoredImages):
    """Images of one split, in ``files`` that many share, or else each in a file of its name below ``root``.

    Args:
        files: names that the index's ``shard`` counts in; () where each image has a file of its own.
        root: the folder that the files are in.
        fetch: called with the path of a file that is not there, to bring it.
    """

    def __init__(
        self, index: Index, root: Path, files: Sequence[str] = (), fetch: Callable[[Path], None] | None = None
    ) -> None:
        super().__init__(index)
        self._root, self._files, self._fetch = str(root), files, fetch
        if files:
            absent = np.zeros(len(index.labels), np.int64)
            columns = [index.places[name] for name in SHARD_PLACE]
            columns += [index.places.get(name, absent) for name in PLACE[len(SHARD_PLACE) :]]
        else:
            columns = [index.places["num_bytes"]]
        self._places = np.stack(columns, axis=1)
        if files and self._places[:, 0].max(initial=-1) >= len(files):
            raise stale(f"{root} has {len(files)} files of this split by its manifest, its index names more")
        self._descriptors: dict[int, int] = {}
        self._opening = threading.Lock()
        _allow_files(len(files))
        self._is_far = is_address(self._root)
        self._windows = self._find_windows() if len(files) == 1 and not self._is_far else None

    def name(self, index: int) -> str:
        own = self._index.name(index)
        return f"{self._path(self._places[index, 0])}: {own}" if self._files else f"{self._root}/{own}"

    def read(self, index: int) -> bytes | Pixels:
        if self._files:
            shard, offset, length, height, width, start, num_bytes, codec = self._places[index].tolist()
            shape = (height, width, 3) if height else None
            page = Page(start, num_bytes, CODECS[codec]) if num_bytes else None
            image = ByteRange(self._path(shard), offset, length, shape, page)
            data = image.read(self._open(shard))
        else:
            data = ByteRange(self.name(index)).read()
            if len(data) != self._places[index, 0]:
                raise self._corrupt(index, ValueError(CHANGED))
        self._check(index, data)
        return decodable(data)

    def gather(self, indices: NDArray[np.int64]) -> Pixels | None:
        if self._windows is None:
            return None
        images = self._windows[self._places[indices, 1]].reshape(-1, *self._places[0, 3:5].tolist(), 3)
        return images if self._are_whole(indices.tolist(), images) else None

    def _find_windows(self) -> NDArray[np.uint8] | None:
        """The only file, mapped, as images that start at any byte; None where not all are pixels of one size."""
        sides = self._places[:, 3:5]
        if not sides.all() or (sides != sides[:1]).any() or self._places[:, 6].any():
            return None
        return sliding_window_view(np.asarray(np.memmap(self._path(0), np.uint8, "r")), int(self._places[0, 2]))

    def _path(self, shard: int) -> str:
        return f"{self._root}/{self._files[shard]}"

    def _open(self, shard: int) -> int | None:
        """The descriptor of a file, which stays open; None of one behind an address."""
        if self._is_far:
            return None
        if (descriptor := self._descriptors.get(shard)) is not None:
            return descriptor
        with self._opening:
            if shard not in self._descriptors:
                path = Path(self._path(shard))
                if self._fetch is not None and not path.exists():
                    self._fetch(path)
                try:
                    self._descriptors[shard] = os.open(path, os.O_RDONLY)
                except OSError as error:
                    raise DataError(f"{path} cannot be opened: {error.strerror}") from error
            return self._descriptors[shard]

    def __del__(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)


def _allow_files(number: int) -> None:
    """Let this process keep so many more files open, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = soft + number if hard == resource.RLIM_INFINITY else min(soft + number, hard)
    if soft not in (wanted, resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
