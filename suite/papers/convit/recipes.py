"""ConViT's experiments at each scale (arXiv:2103.10697): where all of its suites take theirs from.

Suites that ask for the same family, size, fraction and switches get the same experiment, and so share its finished run.
"""

from typing import Any, Literal, NamedTuple, Protocol

from suite.base.frozen import Scalar
from suite.papers.shared.deit_recipes import DEIT, DEIT_CIFAR, DEIT_SCARCE, DEIT_SMALL_IMAGES
from suite.papers.shared.weight_scale import weight_std
from suite.spec.experiment import Experiment
from suite.spec.figures import ClassFigure, Pair, PairFigure, TwoModels
from suite.spec.model_options import changed_options
from suite.spec.profile import Place, Row
from suite.spec.recipe import Recipe
from suite.spec.suite import RelativeGain

Family = Literal["deit", "convit"]
TITLES: dict[Family, str] = {"deit": "DeiT", "convit": "ConViT"}

SIZES = ("Ti", "Ti+", "S", "S+", "B", "B+")
PLUS_SIZES = ("Ti+", "S+", "B+")
SHAPES: dict[tuple[str, Family], tuple[int, int]] = {
    ("Ti", "deit"): (3, 192), ("Ti", "convit"): (4, 192),
    ("Ti+", "deit"): (4, 256), ("Ti+", "convit"): (4, 256),
    ("S", "deit"): (6, 384), ("S", "convit"): (9, 432),
    ("S+", "deit"): (9, 576), ("S+", "convit"): (9, 576),
    ("B", "deit"): (12, 768), ("B", "convit"): (16, 768),
    ("B+", "deit"): (16, 1024), ("B+", "convit"): (16, 1024),
}  # fmt: skip
"""Heads and embedding dimension of Table 1's twelve models, in its order."""


def row_of_table1(size: str, family: Family) -> Row:
    """The key of a model's row: its size, name, heads and width."""
    num_heads, dim = SHAPES[size, family]
    return (size, TITLES[family], str(num_heads), str(dim))


BEST_GAIN = RelativeGain(column="gain_percent", better="convit_best_top1", baseline="deit_best_top1")
"""Fig. 11's gains: between the best accuracies."""


def gain_pair(row: Row, table: str = "") -> Pair:
    """Both families' accuracies in a row, and their gain in the same row of ``table``."""
    baseline, better = (Place(row=row, column=f"{family}_top1") for family in TITLES)
    return Pair(baseline=baseline, better=better, gain=Place(row=row, column="gain_percent", table=table))


def gain_figure(
    letter: str, pairs: dict[str, Pair], pairs_label: str = "Size", over_whole_sets: bool = False
) -> PairFigure:
    """One of Fig. 11's three: accuracies of both families over the epochs, and the gains of ConViT.

    Args:
        letter: "a" to "c".
        pairs: runs and gains by their labels.
    """
    return PairFigure(
        name=f"figure11{letter}",
        item=f"Fig. 11{letter}",
        gain_label="Relative gain of the best accuracy (%)",
        pairs=pairs,
        pairs_label=pairs_label,
        baseline="DeiT",
        better="ConViT",
        over_whole_sets=over_whole_sets,
    )


def class_figure(rows: dict[str, Row]) -> ClassFigure:
    """A figure of ours: the classes and images on which ConViT helps and hurts, in some rows by their titles."""
    return ClassFigure(
        name="classes",
        item="classes and images, a figure of ours",
        pairs={
            title: TwoModels(baseline=Place(row=row, column="deit_top1"), better=Place(row=row, column="convit_top1"))
            for title, row in rows.items()
        },
        baseline="DeiT",
        better="ConViT",
    )


class Length(NamedTuple):
    """How long the small models of CPUs train: ``share`` of CIFAR-10 is called all images, which ``epochs`` go through.

    A fraction of them is seen as many times more often.
    """

    share: float
    epochs: float

    @property
    def images(self) -> str:
        """Spell it for a note on the scale."""
        amount = "all of it" if self.share == 1 else f"{self.share * 50_000:,.0f} images of it the full set,"
        return f"CIFAR-10 at 32 pixels, {amount} seen for {self.epochs:g} epochs"


LAPTOP_LENGTH = Length(share=0.4, epochs=1.2)  # 24,000 images seen
LAPTOP_MICRO_LENGTH = Length(share=0.2, epochs=1.8)  # 18,000, by networks twice as wide; 5 % are 500
DESKTOP_LENGTH = Length(share=1.0, epochs=2.5)
DESKTOP_MICRO_SEEN = 600_000  # images, by the networks of LAPTOP_MICRO_LENGTH

SIXTEENTH = "five-layer models of a sixteenth of the width"
EIGHTH = "five-layer models of an eighth of the width"
LAPTOP_NOTE = f"{LAPTOP_LENGTH.images}; {SIXTEENTH}"
DESKTOP_NOTE = f"{DESKTOP_LENGTH.images}; {SIXTEENTH}"
LAPTOP_LAYERS = {"3": 1, "5": 2, "6": 2, "9": 3, "10": 3}
"""The paper's numbers of GPSA layers -> those among the laptop's five layers, three of them GPSA."""

PROBED_FRACTION = 0.1
"""The share of its images that the laptop trains on where a figure follows attention from epoch to epoch."""

_SWITCHES = ("attention", "locality_strength", "conv_init", "train_gates", "train_gpsa")


class Scale(Protocol):
    """One of ``laptop``, ``desktop``, ``gpu`` and ``paper``: makes the experiment of a family at one of ``SIZES``.

    Each class's images are a ``fraction`` of all, which are seen as many times more often. ``options`` of the model,
    such as Table 3's switches, that are at their default leave the experiment as it is.
    """

    def __call__(self, family: Family, size: str, *, fraction: float = 1.0, **options: Scalar) -> Experiment: ...


def paper(family: Family, size: str, *, fraction: float = 1.0, **options: Scalar) -> Experiment:
    """The exact protocol: ImageNet at 224 pixels, 300 epochs of the full set."""
    return _full(DEIT, family, size, fraction, options, dataset="imagenet", image_size=224)


def gpu(family: Family, size: str, *, fraction: float = 1.0, **options: Scalar) -> Experiment:
    """The paper's models with 4x4 patches on CIFAR-10 at 32 pixels, 300 epochs of the full set."""
    return _full(DEIT_CIFAR, family, size, fraction, {"patch_size": 4, **options}, dataset="cifar10", image_size=32)


def _full(
    recipe: Recipe, family: Family, size: str, fraction: float, options: dict[str, Scalar], **images: Any
) -> Experiment:
    model = f"{family}_{size.lower().replace('+', '_plus')}"
    return Experiment(
        model=model,
        model_options=changed_options(model, options, among=_SWITCHES),
        train_fraction=fraction,
        recipe=_of_size(recipe, size).with_epochs(recipe.epochs / fraction),
        **images,
    )


def laptop(family: Family, size: str, *, fraction: float = 1.0, **options: Scalar) -> Experiment:
    """CIFAR-10 at 32 pixels on an 8x8 grid of patches, each run on 24,000 images, of which a tenth warms up.

    A sixteenth of the paper's width with its heads, in five layers, the last two of them plain as in the paper; all
    sizes by one recipe.
    """
    return _scarce(family, SHAPES[size, family], 16, LAPTOP_LENGTH, fraction, **options)


def desktop(family: Family, size: str, *, fraction: float = 1.0, **options: Scalar) -> Experiment:
    """The laptop's models on all 50,000 images, each run on 125,000."""
    return _scarce(family, SHAPES[size, family], 16, DESKTOP_LENGTH, fraction, **options)


def probed_laptop(family: Family, size: str) -> Experiment:
    """``laptop`` on so few images that there are epochs, after each of which attention is looked at."""
    return laptop(family, size, fraction=PROBED_FRACTION)


def micro(family: Family, *, fraction: float = 1.0) -> Experiment:
    """The S of ``sample_efficiency`` on a laptop: ConViT-S's heads and an eighth of its width for both families.

    All of it was chosen on other seeds and on held-out images, by ``benchmarks/laptop_profile.py``: also the weights'
    deviation, which is 1.4 times that of the rule.
    """
    return _scarce(family, SHAPES["S", "convit"], 8, LAPTOP_MICRO_LENGTH, fraction, weight_std=0.08)


def micro_by_ratios(family: Family, *, fraction: float = 1.0) -> Experiment:
    """``micro`` in the paper's regime: as many images a parameter, of which each seed draws its own; a quarter of the
    images seen a parameter; DeiT's whole augmentation; weights that start by the rule."""
    few = _scarce(family, SHAPES["S", "convit"], 8, LAPTOP_MICRO_LENGTH, fraction)
    epochs = round(DESKTOP_MICRO_SEEN / (50_000 * few.train_fraction), 9)
    return few.model_copy(images_drawn_by_seed=True, recipe=_short(DEIT_SMALL_IMAGES, epochs))


def laptop_teacher() -> Experiment:
    """A sixteenth as wide, on as few images as its students, whose recipe it follows for twice as long."""
    return Experiment(
        model="resnet18_cifar",
        model_options={"width": 4},
        dataset="cifar10",
        image_size=32,
        train_fraction=round(LAPTOP_LENGTH.share * PROBED_FRACTION, 9),
        recipe=_short(DEIT_SCARCE, round(2 * LAPTOP_LENGTH.epochs / PROBED_FRACTION, 9)),
    )


def _scarce(
    family: Family, shape_of_paper: tuple[int, int], narrowing: int, length: Length, fraction: float, **options: Scalar
) -> Experiment:
    """Make a CPU's experiment, with the heads and a part of the width, which sees as many images of any fraction.

    By the rule of ``weight_std``, at a sixteenth of the paper's width, linear weights start with four times DeiT's
    deviation.
    """
    num_heads, paper_dim = shape_of_paper
    dim = paper_dim // narrowing
    shape: dict[str, Scalar] = {"patch_size": 4, "dim": dim, "num_heads": num_heads, "depth": 5}
    shape["weight_std"] = options.pop("weight_std", weight_std(dim, paper_dim))
    if family == "convit":
        shape["num_gpsa_layers"] = 3
    model = f"{family}_micro"
    return Experiment(
        model=model,
        model_options={**shape, **changed_options(model, options, among=_SWITCHES)},
        dataset="cifar10",
        image_size=32,
        train_fraction=round(length.share * fraction, 9),
        recipe=_short(DEIT_SCARCE, round(length.epochs / fraction, 9)),
    )


def _of_size(recipe: Recipe, size: str) -> Recipe:
    """Adapt the recipe of Ti and S to a size.

    Sec. 3: "+" models train with half the batch (512) at a learning rate of 4e-4, which was 1e-3. Each of the authors'
    processes draws mixup and cutmix for its own images. Their README has four processes of 256 for Ti, which are taken
    for S too, and 16 of 64 for B; the paper's eight GPUs hold 64 each of a "+" model's batch.
    """
    mix_group = recipe.mix_group and (recipe.mix_group if size in ("Ti", "S") else 64)
    if not size.endswith("+"):
        return recipe.model_copy(mix_group=mix_group)
    return recipe.model_copy(
        name=f"{recipe.name}_plus",
        batch_size=recipe.batch_size // 2,
        learning_rate=0.4 * recipe.learning_rate,
        mix_group=mix_group,
    )


def _short(recipe: Recipe, epochs: float) -> Recipe:
    """Of little more than an epoch's images, where five epochs of warm-up would be all of it."""
    return recipe.with_epochs(epochs, warmup_epochs=epochs / 10)
