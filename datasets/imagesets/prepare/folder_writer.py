"""The folder format: files that stay where they are, or files made of images that came in another form."""

from __future__ import annotations

import zlib

from imagesets.prepare.portions import Portion
from imagesets.prepare.sinks import Images, Sink, Written, naming_disk_errors


class FilesInPlace(Sink):
    """Only noted, with what they have to be."""

    result = "unchanged"

    def write(self, portion: Portion, images: Images) -> Written:
        sums = [(image.num_bytes, image.crc32) for _, image in images]
        return Written({"num_bytes": [num_bytes for num_bytes, _ in sums], "crc32": [crc32 for _, crc32 in sums]})


class Files(Sink):
    """``SPLIT/CLASS/INDEX.png`` or ``.jpg``: the index keeps the data set's order."""

    result = "encoded"

    def write(self, portion: Portion, images: Images) -> Written:
        names: list[str] = []
        num_bytes: list[int] = []
        crc32s: list[int] = []
        labels = self.original.samples[portion.split].labels
        for index, image in images:
            assert isinstance(image.data, bytes)
            names.append(f"{portion.split}/{self.original.classes[labels[index]]}/{index:07d}.{image.extension}")
            path = self.ready / names[-1]
            with naming_disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(image.data)
            num_bytes.append(len(image.data))
            crc32s.append(zlib.crc32(image.data))
        return Written({"num_bytes": num_bytes, "crc32": crc32s}, names)
