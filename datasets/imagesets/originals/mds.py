"""MosaicML's MDS: ``train/index.json`` and the shards that it names. A shard is a table of offsets, then its samples.

shard   count: u4, offsets: u4 of count + 1, its settings as JSON, samples
sample  the lengths of its columns of no fixed length: u4 each, then the columns, sorted by name
pil     width, height, length of the mode: u4 each, the mode, pixels
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from imagesets.originals.containers import IMAGES, LABELS, Files, Listed, Options, find_column, find_files, open_listed
from imagesets.originals.samples import Original
from suite.base.errors import DataError
from suite.base.files import read_file

_ENCODED = ("jpeg", "png", "bytes")
_RGB = bytes([3, 0, 0, 0]) + b"RGB"


def find(folder: Path, source: Path, chosen: list[Path] | None) -> Files:
    """The index of each split."""
    return find_files(folder, chosen, "index.json")


def open_files(folder: Path, files: Files, options: Options) -> Original:
    """The samples of the shards that each index names; see ``containers.open_listed``."""
    return open_listed(folder, files, list_shards, options)


def list_shards(index: Path) -> list[Listed]:
    """The images of an index's shards; raise DataError where one is missing, compressed, broken or of other columns."""
    try:
        shards = json.loads(read_file(index))["shards"]
        return [_list_shard(index.parent, shard) for shard in shards]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise DataError(f"{index} cannot be read as an index of MDS shards: {error!r:.300}. Bring it again.") from error


def _list_shard(folder: Path, shard: dict[str, Any]) -> Listed:
    if (shard["format"], shard["version"]) != ("mds", 2):
        raise ValueError(f"its shards are {shard['format']} {shard['version']}, expected mds 2")
    path = folder / Path(shard["raw_data"]["basename"]).name
    if shard["compression"] and not path.exists():
        packed = folder / shard["zip_data"]["basename"]
        raise DataError(
            f"{packed} is compressed ({shard['compression']}), so that no image can be read by itself. Decompress it "
            f"beside itself, as {path.name} (zstd -d {packed} -o {path}), or write the set without compression."
        )
    data = np.memmap(path, np.uint8, "r")
    if len(data) != shard["raw_data"]["bytes"]:
        raise DataError(
            f"{path} has {len(data):,} bytes, its index says {shard['raw_data']['bytes']:,}. Bring it again."
        )
    names, sizes = shard["column_names"], shard["column_sizes"]
    image, label = (names.index(find_column(path, names, expected)) for expected in (IMAGES, LABELS))
    kinds = [shard["column_encodings"][column].partition(":")[0] for column in (image, label)]
    if kinds[0] not in (*_ENCODED, "pil") or "int" not in kinds[1] or not sizes[label]:
        raise DataError(
            f"{path} has {names[image]} as {kinds[0]} and {names[label]} as {kinds[1]}; "
            f"expected {', '.join(_ENCODED)} or pil, and int. Write the set anew."
        )
    offsets = np.frombuffer(data[4 : 8 + 4 * shard["samples"]], "<u4").astype(np.int64)
    if offsets[-1] != len(data):
        raise ValueError(f"{path.name} has another number of samples")
    free = [column for column, size in enumerate(sizes) if not size]
    heads = data[offsets[:-1, None] + np.arange(4 * len(free))].view("<u4").astype(np.int64)
    lengths = np.column_stack(
        [heads[:, free.index(c)] if c in free else np.full(len(heads), sizes[c]) for c in range(len(names))]
    )
    if not np.array_equal(4 * len(free) + lengths.sum(1), np.diff(offsets)):
        raise ValueError(f"{path.name} has samples of another length")
    starts = offsets[:-1, None] + 4 * len(free) + np.cumsum(lengths, 1) - lengths
    labels = data[starts[:, label, None] + np.arange(sizes[label])].view(_dtype(kinds[1]))[:, 0].astype(np.int64)
    places = np.zeros((len(labels), 6), np.int64)
    places[:, 0], places[:, 1] = starts[:, image], lengths[:, image]
    if kinds[0] == "pil":
        _find_pixels(path, data, places)
    return Listed(path, labels, places)


def _dtype(kind: str) -> np.dtype[Any]:
    return np.dtype("int64" if kind == "int" else kind).newbyteorder("<")


def _find_pixels(path: Path, data: Any, places: Any) -> None:
    """Make places of raw images those of their pixels, with their heights and widths."""
    heads = data[places[:, :1] + np.arange(15)]
    sizes = heads[:, :8].copy().view("<u4").astype(np.int64)
    for number, head in enumerate(heads[:, 8:]):
        if head.tobytes() != _RGB or sizes[number].prod() * 3 != places[number, 1] - 15:
            raise DataError(
                f"{path}: image {number} is raw in mode {head[4:].tobytes()!r}, expected b'RGB' and three bytes a "
                "pixel. Write the set anew, as jpeg or png, or in one mode."
            )
    places[:, 0] += 15
    places[:, 1] -= 15
    places[:, 2], places[:, 3] = sizes[:, 1], sizes[:, 0]
