"""The settings of a conversion, and its outcome."""

from dataclasses import dataclass
from pathlib import Path

from imagesets.catalog import CATALOG
from imagesets.formats import find_format
from imagesets.manifest import Manifest, prepared_folder
from imagesets.originals.treatment import DEFAULT_QUALITY
from suite.base.errors import SpecError
from suite.base.far.remote import check_address, is_address
from suite.spec.resources import StorageFormat


@dataclass(frozen=True)
class PrepareSettings:
    """An image set to prepare, and how. SpecError for options that contradict each other."""

    dataset: str
    source: str | None  # a folder, a file in it or a pattern of shards; None where the set can be fetched
    storage_format: StorageFormat
    out: Path  # the data folder; the set lands in ``out/dataset/format``
    max_side: int | None = None  # of stored images, in pixels; see ``originals.treatment.Treatment``
    quality: int | None = None  # of all JPEGs, encoded again; None keeps their bytes
    num_workers: int = 1  # processes that decode and encode; no output depends on it
    skip_corrupt: bool = False
    samples_per_shard: int = 2500  # a kill loses the work on as many, at most
    shards_url: str | None = None  # that shards will be served from to readers that do not have them
    label_key: str | None = None  # of labels in the ``.json`` members of shards; None finds it

    def __post_init__(self) -> None:
        storage = find_format(self.storage_format)
        if self.storage_format == "in_place" and self.changes_images:
            raise SpecError("--in-place leaves all images as they are: leave --max-side and --quality out, or convert")
        if self.storage_format == "in_place" and (info := CATALOG.get(self.dataset)) and info.can_be_fetched:
            raise SpecError(f"{self.dataset} is kept as one array, made when it is first needed: leave --in-place out")
        if self.source is not None and is_address(self.source):
            check_address("--source", self.source)
        if self.quality is not None and not storage.has_jpegs:
            raise SpecError(f"--quality is about JPEGs, and format {self.storage_format} has none. Leave it out.")
        if self.shards_url is None:
            return
        if not storage.has_shards:
            raise SpecError(f"--shards-url is about shards, and format {self.storage_format} has none. Leave it out.")
        check_address("--shards-url", self.shards_url)

    @property
    def target(self) -> Path:
        return prepared_folder(self.out, self.dataset, self.storage_format)

    @property
    def changes_images(self) -> bool:
        """Whether more is asked for than the source's own bytes."""
        return self.max_side is not None or self.quality is not None

    @property
    def stored_quality(self) -> int | None:
        """Of the JPEGs that are encoded again, if any are."""
        shrinks_jpegs = self.max_side is not None and find_format(self.storage_format).has_jpegs
        return DEFAULT_QUALITY if self.quality is None and shrinks_jpegs else self.quality


@dataclass(frozen=True)
class Prepared:
    """A prepared image set."""

    folder: Path
    manifest: Manifest
    skipped: tuple[tuple[str, str], ...] = ()  # the name of each corrupt image that was left out, and the reason
    was_there: bool = False  # nothing had to be done
