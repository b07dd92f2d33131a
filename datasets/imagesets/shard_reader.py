"""The WebDataset format: tar shards, whose samples are found by an index of offsets and read in any order.

A tar is read front to back by ``webdataset`` itself; one order for all formats needs any sample at any time. Nothing
of a shard but the bytes of its images is looked at here: ``prepare`` has checked its members.
"""

from __future__ import annotations

import os
import resource
import threading
import uuid
from pathlib import Path

import numpy as np

from imagesets.manifest import Index, Manifest, Split, StoredFile, describe_file
from imagesets.stored import EncodedImages
from suite.errors import DataError


class ShardImages(EncodedImages):
    """Samples of ``folder``'s shards. Shards that lie elsewhere are fetched when first read, and checked."""

    def __init__(self, folder: Path, split: Split, index: Index, manifest: Manifest) -> None:
        super().__init__(index)
        self._folder, self._manifest = folder, manifest
        self._shards = manifest.shards(split)
        self._places = np.stack([index.places[name] for name in ("shard", "offset", "length")], axis=1)
        self._descriptors: dict[int, int] = {}
        if self._places[:, 0].max(initial=-1) >= len(self._shards):
            raise DataError(
                f"{folder} has {len(self._shards)} {split} shards by its manifest, its index names more. "
                "Prepare the image set again."
            )
        self._opening = threading.Lock()
        _allow_files(len(manifest.files))

    def name(self, index: int) -> str:
        return f"{self._folder / self._shards[self._places[index, 0]]}: {super().name(index)}"

    def encoded(self, index: int) -> bytes:
        shard, offset, length = self._places[index].tolist()
        descriptor = self._descriptors.get(shard)
        if descriptor is None:
            descriptor = self._open(shard)
        try:
            data = os.pread(descriptor, length, offset)
        except OSError as error:
            raise DataError(f"{self.name(index)} cannot be read: {error.strerror}") from error
        if len(data) != length:
            raise DataError(f"{self.name(index)} ends after {len(data)} of {length} bytes: the shard was cut short")
        return data

    def _open(self, shard: int) -> int:
        with self._opening:
            if shard not in self._descriptors:
                path = self._folder / self._shards[shard]
                if not path.exists() and self._manifest.shards_url is not None:
                    fetch_shard(self._manifest.shards_url, path, self._manifest.files[path.name])
                try:
                    self._descriptors[shard] = os.open(path, os.O_RDONLY)
                except OSError as error:
                    raise DataError(f"shard {path} cannot be opened: {error.strerror}") from error
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


def fetch_shard(url: str, path: Path, expected: StoredFile) -> None:
    """Copy ``url/NAME`` to ``path`` by webdataset's own openers, those that run a shell command excepted.

    Raises:
        DataError: if it cannot be had, or is not what the manifest says.
    """
    import webdataset

    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")  # nodes, processes, threads may all fetch it
    source = f"{url.rstrip('/')}/{path.name}"
    try:
        with webdataset.gopen(source) as stream, partial.open("wb") as file:
            while chunk := stream.read(1 << 20):
                file.write(chunk)
        if describe_file(partial) != expected:
            raise ValueError("its bytes are not those that the manifest here describes")
        partial.replace(path)
    except (OSError, ValueError) as error:
        partial.unlink(missing_ok=True)
        raise DataError(f"shard {source} cannot be fetched: {error}") from error
