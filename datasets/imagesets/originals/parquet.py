"""Parquet files as the hub of Hugging Face has them: a column of encoded images and one of labels.

``ILSVRC/imagenet-1k`` has ``data/train-00000-of-00294.parquet``, ``uoft-cs/cifar100`` has ``cifar100/train-….parquet``.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from imagesets.originals.containers import IMAGES, LABELS, Files, Listed, Options, find_column, find_files, open_listed
from imagesets.originals.pages import find_values, import_pyarrow
from imagesets.originals.samples import Original
from suite.base.errors import DataError
from suite.base.files import open_file


def find(folder: Path, source: Path, chosen: list[Path] | None) -> Files:
    """The files of each split."""
    return find_files(folder, chosen, ".parquet")


def open_files(folder: Path, files: Files, options: Options) -> Original:
    """The samples of Parquet files; see ``containers.open_listed``."""
    return open_listed(folder, files, list_file, options)


def list_file(path: Path) -> list[Listed]:
    """One file's images; raise DataError where it is broken or has other columns, or images or labels are missing."""
    pyarrow = import_pyarrow()
    try:
        with open_file(path) as file:
            return [_list(path, file, pyarrow.parquet.ParquetFile(file))]
    except (OSError, ValueError, LookupError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet with images: {error!s:.300}. Bring it again.") from error


def _list(path: Path, file: Any, parquet: Any) -> Listed:
    schema = parquet.schema_arrow
    image, label = find_column(path, schema.names, IMAGES), find_column(path, schema.names, LABELS)
    leaves = {parquet.schema.column(number).path: number for number in range(len(parquet.schema))}
    column = f"{image}.bytes" if f"{image}.bytes" in leaves else image
    kinds = [str(schema.field(name).type) for name in (image, label)]
    if (
        column not in leaves
        or parquet.schema.column(leaves[column]).physical_type != "BYTE_ARRAY"
        or "int" not in kinds[1]
    ):
        raise DataError(
            f"{path} has {image} of type {kinds[0]} and {label} of type {kinds[1]}, expected the bytes of encoded "
            "images (binary, or struct<bytes: binary, path: string>) and whole numbers. Convert it to class folders."
        )
    labels, places, codec = [np.zeros(0, np.int64)], list[tuple[int, ...]](), ""
    for group in range(parquet.num_row_groups):
        chunk = parquet.metadata.row_group(group).column(leaves[column])
        table = parquet.read_row_group(group, columns=[column, label])
        images = table[image].combine_chunks()
        images = images.field("bytes") if column != image else images
        if images.null_count or table[label].null_count:
            raise DataError(f"{path} has rows without image or label in row group {group}, expected none. Drop them.")
        start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
        file.seek(start)
        found = find_values(file.read(chunk.total_compressed_size), start, chunk.compression, images.to_pylist())
        places += [(offset, length, 0, 0, *page) for offset, length, *page in found]
        labels.append(table[label].to_numpy().astype(np.int64))
        codec = chunk.compression
    table_of_places = np.array(places, np.int64).reshape(-1, 6)
    return Listed(path, np.concatenate(labels), table_of_places, (), _read_classes(schema.metadata, label), codec)


def _read_classes(metadata: dict[bytes, bytes] | None, label: str) -> tuple[str, ...]:
    """The names of the classes in the hub's own note, if it is there."""
    try:
        names = json.loads((metadata or {})[b"huggingface"])["info"]["features"][label]["names"]
        return tuple(map(str, names))
    except (KeyError, TypeError, ValueError):
        return ()
