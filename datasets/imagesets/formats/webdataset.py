"""The WebDataset format: ``train-000000.tar`` and so on, of ``INDEX.jpg`` (or ``.png``) and ``INDEX.cls``.

Shards are written by webdataset's own writer, with nothing in them of when and by whom. Their samples are found by an
index of offsets, and read in any order.

A tar is read front to back by ``webdataset`` itself; one order for all formats needs any sample at any time. Nothing
of a shard but the bytes of its images is looked at here: ``prepare`` has checked its members.
"""

import os
import resource
import threading
import uuid
from pathlib import Path
from typing import ClassVar

import numpy as np

from imagesets.fetch import remote
from imagesets.formats import Format
from imagesets.formats.sinks import Collected, Images, Output, Portion, Sink, Written, replacing
from imagesets.formats.stored import StoredImages
from imagesets.manifest import Index, Manifest, Split, StoredFile, describe_file, stale
from imagesets.originals.samples import MemberSamples, Original, OriginalSamples
from imagesets.originals.tars import list_members
from imagesets.originals.treatment import Wanted
from suite.base.errors import DataError, SpecError

_PLACE = ("shard", "offset", "length")


class ShardImages(StoredImages):
    """Samples of ``folder``'s shards. Shards that lie elsewhere are fetched when first read, and checked."""

    def __init__(self, folder: Path, split: Split, index: Index, manifest: Manifest) -> None:
        super().__init__(index)
        self._folder, self._manifest = folder, manifest
        self._shards = manifest.shards(split)
        self._places = np.stack([index.places[name] for name in _PLACE], axis=1)
        self._descriptors: dict[int, int] = {}
        if self._places[:, 0].max(initial=-1) >= len(self._shards):
            raise stale(f"{folder} has {len(self._shards)} {split} shards by its manifest, its index names more")
        self._opening = threading.Lock()
        _allow_files(len(manifest.files))

    def name(self, index: int) -> str:
        return f"{self._folder / self._shards[self._places[index, 0]]}: {super().name(index)}"

    def read(self, index: int) -> bytes:
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
        self._check(index, data)
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
    """Copy ``url/NAME`` to ``path``.

    Raises:
        DataError: if it cannot be had, or is not what the manifest says.
    """
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")  # nodes, processes, threads may all fetch it
    source = f"{url.rstrip('/')}/{path.name}"
    try:
        with partial.open("wb") as file:
            file.writelines(remote.read_pieces(source))
        if describe_file(partial) != expected:
            raise ValueError("its bytes are not those that the manifest here describes")
        partial.replace(path)
    except (OSError, ValueError, DataError) as error:
        partial.unlink(missing_ok=True)
        raise DataError(f"shard {source} cannot be fetched: {error}") from error


class Shards(Sink):
    """A shard for each portion."""

    wanted: ClassVar[Wanted] = "encoded"

    def write(self, portion: Portion, images: Images) -> Written:
        from webdataset.writer import TarWriter  # imports torch

        path = self.path(portion)
        labels = self.original.samples[portion.split].labels.tolist()
        with replacing(path) as file, TarWriter(file, user="", group="", mtime=0, encoder=False) as tar:
            for index, image in images:
                sample = {image.extension: image.data, "cls": str(labels[index]).encode()}
                tar.write({"__key__": f"{index:09d}", **sample})
        members = [member for member in list_members(path) if not member.name.endswith(".cls")]
        places = [(portion.number, member.offset, member.length) for member in members]
        return Written(places=_by_name(places), file=describe_file(path))

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        finished = [pair for collected in splits.values() for pair in collected.portions]
        return {self.path(portion).name: done.file for portion, done in finished if done.file is not None}

    def path(self, portion: Portion) -> Path:
        return self.ready / f"{portion.stem}.tar"


class ShardsInPlace(Shards):
    """Shards made elsewhere, which stay where they are and are only noted; each is a portion."""

    wanted = "unchanged"
    in_place = True

    def portion_lengths(self, samples: OriginalSamples, longest: int) -> list[int]:
        assert isinstance(samples, MemberSamples)
        lengths: list[int] = np.bincount(samples.places[:, 0], minlength=len(samples.tars)).tolist()
        return lengths

    def write(self, portion: Portion, images: Images) -> Written:
        samples = self.original.samples[portion.split]
        assert isinstance(samples, MemberSamples)
        places = [samples.places[index].tolist() for index, _ in images]
        return Written(places=_by_name(places), file=describe_file(self.path(portion)))

    def path(self, portion: Portion) -> Path:
        samples = self.original.samples[portion.split]
        assert isinstance(samples, MemberSamples)
        return samples.tars[portion.number]


def _by_name(places: list[tuple[int, int, int]]) -> dict[str, list[int]]:
    return {name: [place[axis] for place in places] for axis, name in enumerate(_PLACE)}


def _make_sink(original: Original, output: Output) -> Shards:
    if Path(original.source).resolve() != output.target:
        return Shards(original, output)
    if output.changes_images:
        raise SpecError(f"{output.target} is source and target: its images cannot be changed. Choose another --out.")
    return ShardsInPlace(original, output)


FORMAT = Format(open=ShardImages, make_sink=_make_sink, has_shards=True, packages=("webdataset",))
