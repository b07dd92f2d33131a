"""The folder format: image files, found by an index of their names.

Files that stay where they are, or files made of images that came in another form.
"""

from imagesets.fetch.storage import naming_disk_errors
from imagesets.formats import Format, in_place
from imagesets.formats.sinks import Finished, Images, Output, Portion, Sink
from imagesets.originals.samples import Original


class Files(Sink):
    """``SPLIT/CLASS/INDEX.png`` or ``.jpg``: the index keeps the data set's order."""

    wanted = "encoded"

    def write(self, portion: Portion, images: Images) -> Finished:
        names: list[str] = []
        num_bytes: list[int] = []
        labels = self.original.samples[portion.split].labels
        for index, image in images:
            assert isinstance(image.data, bytes)
            names.append(f"{portion.split}/{self.original.classes[labels[index]]}/{index:07d}.{image.extension}")
            path = self.ready / names[-1]
            with naming_disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(image.data)
            num_bytes.append(len(image.data))
        return Finished(places={"num_bytes": num_bytes}, names=names)

    def has(self, portion: Portion, finished: Finished) -> bool:
        paths = [self.ready / name for name in finished.names or ()]
        return [path.stat().st_size if path.exists() else -1 for path in paths] == finished.places["num_bytes"]


def _make_sink(original: Original, output: Output) -> Sink:
    are_files = original.samples["train"].root is not None
    return (in_place.InPlace if are_files and not output.changes_images else Files)(original, output)


FORMAT = Format(open=in_place.FORMAT.open, make_sink=_make_sink)
