"""Parquet files as Hugging Face's hub has them (``data/train-00000-of-00294.parquet``): encoded images and labels."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from imagesets.originals.containers import IMAGES, LABELS, Listed, find_column
from imagesets.originals.samples import CODECS
from suite.base.errors import DataError
from suite.base.files import open_file
from suite.base.parquet_pages import find_values, import_pyarrow


def list_file(path: Path) -> list[Listed]:
    """One file's images; raise DataError where it is broken or has other columns, or images or labels are missing."""
    pyarrow = import_pyarrow()
    try:
        with open_file(path) as file:
            return [_list(path, file, pyarrow.parquet.ParquetFile(file))]
    except (OSError, ValueError, LookupError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet with images ({error!s:.300}). Bring it again.") from error


def _list(path: Path, file: Any, parquet: Any) -> Listed:
    schema = parquet.schema_arrow
    image, label = (find_column(path, schema.names, expected) for expected in (IMAGES, LABELS))
    leaves = [parquet.schema.column(number).path for number in range(len(parquet.schema))]
    column = f"{image}.bytes" if f"{image}.bytes" in leaves else image
    kinds = [str(schema.field(name).type) for name in (image, label)]
    of_label, types = schema.field(label).type, import_pyarrow().types
    of_label = of_label.value_type if types.is_dictionary(of_label) else of_label
    if column not in leaves or "binary" not in kinds[0] or not types.is_integer(of_label):
        raise DataError(
            f"{path} has {image} of type {kinds[0]} and {label} of type {kinds[1]}, expected the bytes of encoded "
            "images (binary, or struct<bytes: binary, path: string>) and whole numbers. Convert it to class folders."
        )
    labels, places = [np.zeros(0, np.int64)], list[tuple[int, ...]]()
    for group in range(parquet.num_row_groups):
        # without threads: one that still reads as Python ends would abort it
        table = parquet.read_row_group(group, columns=[column, label], use_threads=False)
        images = table[image].combine_chunks()
        images = images.field("bytes") if column != image else images
        if images.null_count or table[label].null_count:
            raise DataError(f"{path} has rows without image or label in row group {group}, expected none. Drop them.")
        chunk = parquet.metadata.row_group(group).column(leaves.index(column))
        start, codec = min(chunk.data_page_offset, chunk.dictionary_page_offset or np.inf), chunk.compression
        file.seek(start)
        found = find_values(file.read(chunk.total_compressed_size), start, codec, images.to_pylist())
        places += [(offset, length, 0, 0, *page, CODECS.index(codec)) for offset, length, *page in found]
        labels.append(table[label].to_numpy().astype(np.int64))
    try:
        names = json.loads(schema.metadata[b"huggingface"])["info"]["features"][label]["names"]
    except (KeyError, TypeError, ValueError):
        names = []
    classes = tuple(map(str, names))
    return Listed(path, np.concatenate(labels), np.array(places, np.int64).reshape(-1, 7), (), classes)
