"""The WebDataset format: ``train-000000.tar`` and so on, of ``INDEX.jpg`` (or ``.png``) and ``INDEX.cls``.

Shards are written by webdataset's own writer, with nothing in them of when and by whom. ``webdataset`` reads a tar from
front to back; here samples are found by an index of offsets, since one order for all formats needs any at any time.
"""

from pathlib import Path

from imagesets.formats import Format
from imagesets.formats.sinks import Collected, Finished, Images, Portion, Sink, replacing
from imagesets.formats.stored import StoredImages
from imagesets.manifest import Index, Manifest, Split, StoredFile, describe_file
from suite.base.archives import list_tar_members


class Shards(Sink):
    """A shard for each portion."""

    wanted = "encoded"

    def write(self, portion: Portion, images: Images) -> Finished:
        from webdataset.writer import TarWriter  # imports torch

        path = self.path(portion)
        labels = self.original.samples[portion.split].labels.tolist()
        with replacing(path) as file, TarWriter(file, user="", group="", mtime=0, encoder=False) as tar:
            for index, image in images:
                sample = {image.extension: image.data, "cls": str(labels[index]).encode()}
                tar.write({"__key__": f"{index:09d}", **sample})
        members = [member for member in list_tar_members(path) if not member.name.endswith(".cls")]
        places = {"offset": [member.offset for member in members], "length": [member.length for member in members]}
        return Finished(places={"shard": [portion.number] * len(members), **places}, file=describe_file(path))

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        finished = [pair for collected in splits.values() for pair in collected.portions]
        return {self.path(portion).name: done.file for portion, done in finished if done.file is not None}

    def path(self, portion: Portion) -> Path:
        return self.ready / f"{portion.stem}.tar"


def _open(folder: Path, split: Split, index: Index, manifest: Manifest) -> StoredImages:
    places = [folder / name for name in manifest.shards(split)]
    url = manifest.shards_url and manifest.shards_url.rstrip("/")
    files = [f"{url}/{path.name}" if url and not path.exists() else path for path in places]
    return StoredImages(index, folder, files)


FORMAT = Format(open=_open, make_sink=Shards, has_shards=True, packages=("webdataset",))
