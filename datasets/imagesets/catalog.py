"""The image sets that an experiment can name: their facts, and where their bytes come from, read from ``catalog.toml``.

Before ``fetch`` on the data's path. No torch and no numpy here, so that planning starts at once.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from suite.base.errors import SpecError, check_name
from suite.plugins.find_plugin import list_plugins, load_plugin
from suite.spec.experiment import Normalization

RGB = tuple[float, float, float]
_CHECKED = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_CHECKED)
class Archive:
    """An original ``.tar.gz`` of pickled batches. Members are read in the order given here.

    ``mirrors`` are other addresses of the same file. ``train_md5`` and ``test_md5`` map a member's file name to its
    MD5, so that an extracted folder can be told from a broken or foreign one before anything in it is unpickled.
    """

    url: str
    md5: str
    folder: str
    train_md5: Mapping[str, str]
    test_md5: Mapping[str, str]
    label_key: bytes
    mirrors: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True, config=_CHECKED)
class MatFiles:
    """Original ``.mat`` files, one a split: ``X`` of shape (32, 32, 3, N), ``y`` of 1..10, where 10 is the digit 0.
    ``url`` is the folder that they are in; ``train_md5`` and ``test_md5`` map a file's name to its MD5."""

    url: str
    train_md5: Mapping[str, str]
    test_md5: Mapping[str, str]


@dataclass(frozen=True, config=_CHECKED)
class ParquetFiles:
    """Hugging Face's parquet files in the folder ``url``: a column ``img`` of PNGs, and one of labels. ``sha256`` maps
    a split to its file's digest; None where the digests of the set's arrays decide."""

    url: str
    label: str
    sha256: Mapping[str, str] | None = None

    @property
    def hub_id(self) -> str:
        """The set's name on the hub, such as ``uoft-cs/cifar10``."""
        return self.url.partition("/datasets/")[2].partition("/resolve/")[0]

    @property
    def revision(self) -> str:
        """The commit of the set's repository there."""
        return self.url.partition("/resolve/")[2].partition("/")[0]


@dataclass(frozen=True, config=_CHECKED)
class ImageSetInfo:
    """The facts of one image set.

    ``sha256`` maps each stored array to the digest of its bytes as uint8, in C order; None where no copy was at hand to
    compute it from. ``classes_sha256`` are digests of the names of the classes, a line each, where they are too many to
    write here: WordNet ids, or the words that Hugging Face's hub has for them.
    """

    name: str
    title: str
    num_classes: int
    image_size: int
    num_train: int
    num_test: int
    mean: RGB  # as ``std``, over the train images scaled to [0, 1]
    std: RGB
    archive: Archive | None = None
    npm_package: str | None = None  # name@version
    sha256: Mapping[str, str] | None = None
    packaged: bool = False  # shipped inside this package
    mat_files: MatFiles | None = None
    parquet: ParquetFiles | None = None
    subset_of: str | None = None  # the set whose first classes, by sorted name, are this one
    class_names: tuple[str, ...] = ()  # in the order of the labels; empty where the set's own folders give them
    classes_sha256: tuple[str, ...] = ()

    @property
    def can_be_fetched(self) -> bool:
        return self.archive is not None or self.mat_files is not None


_FACTS = tomllib.loads(Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8"))
CATALOG = {name: ImageSetInfo(name=name, **facts) for name, facts in _FACTS.items()}

NORMALIZATIONS: dict[Normalization, tuple[RGB, RGB]] = {
    "imagenet": (CATALOG["imagenet"].mean, CATALOG["imagenet"].std),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "cordonnier": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
}
"""Mean and deviation that papers normalize by instead of the image set's own.

"imagenet" is what DeiT's code takes for every set, "half" timm's default for many ViTs, "cordonnier" what the code of
arXiv:1911.03584 has for CIFAR-10: its mean, but deviations that are smaller than the set's.
"""


def statistics(info: ImageSetInfo, normalization: Normalization) -> tuple[RGB, RGB]:
    """Mean and deviation per RGB channel of [0, 1]; "own" are the set's."""
    return NORMALIZATIONS.get(normalization, (info.mean, info.std))


def get_info(name: str) -> ImageSetInfo:
    """The catalog's entry for ``name``, or that of an installed plug-in. SpecError if there is none; the message has
    the nearest valid name."""
    if name in CATALOG:
        return CATALOG[name]
    check_name("dataset", name, [*CATALOG, *list_plugins("image_sets")])
    info = load_plugin("image_sets", name)
    if not isinstance(info, ImageSetInfo) or info.name != name:
        raise SpecError(f"image set {name}: its plug-in is {info!r:.80}, expected an ImageSetInfo called {name!r}")
    return info
