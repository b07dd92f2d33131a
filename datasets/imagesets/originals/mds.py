"""MosaicML's MDS: ``train/index.json`` and the shards that it names, which are tables of offsets with samples behind.

shard   count: u4, offsets: u4 of count + 1, settings as JSON, samples
sample  the lengths of its columns of no fixed length: u4 each, then the columns
pil     width, height, length of the mode: u4 each, the mode, pixels
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imagesets.originals.containers import IMAGES, LABELS, Listed, find_column
from suite.base.errors import DataError
from suite.base.files import read_file

_ENCODED = ("jpeg", "png", "bytes")
_PIL_BYTES, _RGB = 15, bytes([3, 0, 0, 0]) + b"RGB"


def list_shards(index: Path) -> list[Listed]:
    """The images of an index's shards; raise DataError where one is missing, compressed, broken or of other columns."""
    try:
        return [_list_shard(index.parent, shard) for shard in json.loads(read_file(index))["shards"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        shown = f"{type(error).__name__} {error!s:.300}"
        raise DataError(f"{index} cannot be read as an index of MDS shards: {shown}. Bring it again.") from error


def _list_shard(folder: Path, shard: dict[str, Any]) -> Listed:
    if (shard["format"], shard["version"]) != ("mds", 2):
        raise ValueError(f"its shards are {shard['format']} {shard['version']}, expected mds 2")
    path = folder / Path(shard["raw_data"]["basename"]).name
    if shard["compression"] and not path.exists():
        packed = folder / shard["zip_data"]["basename"]
        raise DataError(
            f"{packed} is compressed ({shard['compression']}), so that no image can be read by itself. Decompress it: "
            f"zstd -d {packed} -o {path}"
        )
    is_near = isinstance(path, Path)  # and not behind an address
    data = np.memmap(path, np.uint8, "r") if is_near else np.frombuffer(read_file(path), np.uint8)
    names, sizes = shard["column_names"], shard["column_sizes"]
    if len(data) != shard["raw_data"]["bytes"]:
        raise DataError(f"{path} has {len(data):,} bytes, expected {shard['raw_data']['bytes']:,}. Bring it again.")
    image, label = (names.index(find_column(path, names, expected)) for expected in (IMAGES, LABELS))
    kinds = [shard["column_encodings"][column].partition(":")[0] for column in (image, label)]
    if kinds[0] not in (*_ENCODED, "pil") or "int" not in kinds[1] or not sizes[label]:
        raise DataError(
            f"{path} has {names[image]} as {kinds[0]} and {names[label]} as {kinds[1]}; expected "
            f"{', '.join(_ENCODED)} or pil, and int. Write the set anew."
        )
    offsets = np.frombuffer(data[4 : 8 + 4 * shard["samples"]], "<u4").astype(np.int64)
    free = [column for column, size in enumerate(sizes) if not size]
    lengths = np.tile(np.array([size or 0 for size in sizes]), (len(offsets) - 1, 1))
    lengths[:, free] = _gather(data, offsets[:-1], 4 * len(free)).view("<u4")
    starts = offsets[:-1, None] + 4 * len(free) + np.cumsum(lengths, 1) - lengths
    if offsets[-1] != len(data) or not np.array_equal(starts[:, -1] + lengths[:, -1], offsets[1:]):
        raise ValueError(f"{path.name} has samples of other lengths than its offsets say")
    kind = np.dtype("int64" if kinds[1] == "int" else kinds[1]).newbyteorder("<")
    labels = _gather(data, starts[:, label], sizes[label]).view(kind)[:, 0].astype(np.int64)
    places = np.stack([starts[:, image], lengths[:, image], *np.zeros((2, len(labels)), np.int64)], 1)
    if kinds[0] == "pil":
        _find_pixels(path, data, places)
    return Listed(path, labels, places)


def _gather(data: NDArray[np.uint8], starts: NDArray[np.int64], length: int) -> NDArray[np.uint8]:
    return np.asarray(data[starts[:, None] + np.arange(length)])


def _find_pixels(path: Path, data: NDArray[np.uint8], places: NDArray[np.int64]) -> None:
    """Make the places of raw images those of their pixels, with heights and widths."""
    heads = _gather(data, places[:, 0], _PIL_BYTES)
    sizes = np.ascontiguousarray(heads[:, :8]).view("<u4").astype(np.int64)
    for number, head in enumerate(heads[:, 8:]):
        if head.tobytes() != _RGB or sizes[number].prod() * 3 != places[number, 1] - _PIL_BYTES:
            raise DataError(
                f"{path}: image {number} is raw in mode {head[4:].tobytes()!r}, expected b'RGB' and three bytes a "
                "pixel. Write the set anew, as jpeg or png, or in one mode."
            )
    places[:, :2] += (_PIL_BYTES, -_PIL_BYTES)
    places[:, 2:4] = sizes[:, ::-1]
