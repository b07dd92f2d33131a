"""How "Structured Initialization for Attention in Vision Transformers" (arXiv:2404.01139) trains, at each scale.

Its suites make all their experiments here, so that a configuration that stands in several tables is trained once:
what equals a model's default is left out of the options, and so is never written in two ways.

The paper gives RandAugment, batch 512, AdamW at 1e-3, weight decay .01 and 200 epochs (Sec. 5.1); the rest is the
authors' command: cosine over whole epochs down to 1e-6, 10 epochs of warm-up, epsilon 1e-3, clipping at 3, no crop
(scale and ratio 1), no erasing, no mixup, and timm's defaults for what it does not name: label smoothing .1, flips,
warm-up from 1e-5. Neither states a seed or a number of runs.

Without ImageNet one GPU carries all of it: the profile ``gpu`` is the paper's own experiments, those on ImageNet left
out, and so has no note that says otherwise.
"""

from collections.abc import Iterable
from typing import NamedTuple

from suite.base.frozen import Scalar
from suite.papers.shared.weight_scale import weight_scale
from suite.papers.structured_init import PAPER
from suite.spec.experiment import Experiment
from suite.spec.model_options import changed_options
from suite.spec.profile import Entry, Profile, ProfileName
from suite.spec.recipe import Recipe
from suite.spec.suite import ChangeFrom

METHODS = {
    "Kaiming Uniform": "kaiming_uniform",
    "Trunc Normal": "trunc_normal",
    "Mimetic": "mimetic",
    "Imp.-3": "impulse_3",
    "Imp.-5": "impulse_5",
}
"""The five initializations as the tables name them, and as ``suite.models.structured_init.vit`` does."""

CIFAR = Recipe(
    name=PAPER.name,
    epochs=200,
    batch_size=512,
    learning_rate=1e-3,
    adam_epsilon=1e-3,
    weight_decay=0.01,
    clip_grad_norm=3.0,
    schedule="cosine",
    schedule_unit="epoch",
    warmup_epochs=10,
    warmup_learning_rate=1e-5,
    min_learning_rate=1e-6,
    label_smoothing=0.1,
    test_crop=1.0,
    flip_probability=0.5,
    rand_augment="rand-m9-mstd0.5-inc1",
    precision="bf16",
)
"""Sec. 5.1, for CIFAR-10, CIFAR-100 and SVHN.

Differs: bf16 autocast, where the authors' code used fp16. RandAugment's rotations and shears are bicubic, where timm's
default draws bilinear or bicubic for each.
"""

CIFAR_CONVMIXER = CIFAR.model_copy(name="structured_init_convmixer", learning_rate=0.01, epochs=100)
"""Sec. 5.5: as Sec. 5.1, except for the learning rate and the number of epochs."""

IMAGENET = Recipe(
    name="convmixer_imagenet",
    epochs=300,
    batch_size=640,
    learning_rate=0.01,
    adam_epsilon=1e-3,
    weight_decay=2e-5,
    clip_grad_norm=1.0,
    schedule="one_cycle",
    label_smoothing=0.1,
    crop="random_resized",
    train_interpolation="random",
    test_crop=0.9,
    flip_probability=0.5,
    rand_augment="rand-m9-mstd0.5-inc1",
    random_erasing=0.25,
    mixup=0.5,
    cutmix=0.5,
    mix_switch_probability=0.5,
    mix_group=64,  # 10 processes
    precision="bf16",
)
"""Sec. 5.2: "the training settings defined in ConvMixer", from that paper's (arXiv:2201.09792) command, 300 epochs.

Crop and interpolation are timm's defaults for ``vit_tiny_patch16_224``, as the authors' command names neither.

Differs: RandAugment's rotations and shears are bicubic, where timm's interpolation "random" draws it for each.
"""

IMAGENET_AS_THE_CODE = IMAGENET.model_copy(
    name="structured_init_imagenet_as_the_code",
    batch_size=4096,
    learning_rate=4e-3,
    adam_epsilon=1e-8,
    weight_decay=0.05,
    clip_grad_norm=0.0,
    schedule="cosine",
    schedule_unit="epoch",
    warmup_epochs=50,
    warmup_learning_rate=1e-5,
    mixup=1.0,
    cutmix=0.8,
    mix_group=512,  # 8 processes
)
"""The ImageNet command in the authors' repository, which is not ConvMixer's, for ``imagenet_vit``."""


class Setting(NamedTuple):
    """A small ViT's learning rate, warm-up and scale of weights, which a search chooses.

    ``scale`` multiplies the weights that the initialization draws, beside the rule of ``weight_scale``; ``warmup`` is a
    share of the training.
    """

    learning_rate: float = 2e-3
    warmup: float = 0.1
    scale: float = 1.0


LAPTOP = CIFAR.model_copy(
    name="structured_init_laptop",
    epochs=0.8,
    batch_size=64,
    learning_rate=2e-3,
    adam_epsilon=1e-8,
    schedule_unit="step",
    warmup_epochs=0.08,
    test_crop=0.875,  # without effect on images of the model's own size; keeps the finished runs' ids
    rand_augment="",
    precision="fp32",
)
"""``CIFAR`` for a minute on one core, of which a tenth is warm-up.

Left out: RandAugment. Changed: batch 64 at learning rate 2e-3; Adam's own epsilon, of 1e-8; the learning rate moves
every step; fp32, the faster one for small matrices on a CPU.
"""

TUNED = {
    "Kaiming Uniform": Setting(4e-3, 0.2),
    "Trunc Normal": Setting(4e-3, 0.1, scale=2.0),
    "Mimetic": Setting(2e-3, 0.2),
    "Imp.-3": Setting(2e-3, 0.2),
    "Imp.-5": Setting(2e-3, 0.1),
}
"""Each method's setting at the profile ``laptop``: the best of ``benchmarks/search.py``, at width 48 and 3 heads."""

NUM_TRIES = 12  # settings that were tried for each method

LAPTOP_CONVMIXER = LAPTOP.model_copy(
    name="structured_init_convmixer_laptop",
    epochs=1.5,
    warmup_epochs=0.15,
    batch_size=128,
    learning_rate=0.01,
)
"""``CIFAR_CONVMIXER`` in the same way, at its own learning rate."""

RECIPE_NOTE = (
    "Recipe, gpu and paper: bf16 autocast, where the authors' code used fp16; rotations and shears of RandAugment are "
    "bicubic, where timm draws bilinear or bicubic for each."
)

LAPTOP_NOTE = "CIFAR-10, 4x4 patches, width 48, three layers, 0.8 epochs"


def _experiment(model: str, recipe: Recipe, options: dict[str, Scalar], dataset: str = "cifar10") -> Experiment:
    changed = changed_options(model, options)
    return Experiment(model=model, dataset=dataset, image_size=32, recipe=recipe, model_options=changed)


def vit(method: str, *, model: str = "vit_t", dataset: str = "cifar10", **options: Scalar) -> Experiment:
    """The paper's ViT, "vit_t" or "vit_s", on a set of 32 x 32 images, from one of ``METHODS``.

    Options of the model that are at their default leave the experiment as it is.
    """
    return _experiment(model, CIFAR, {"initialization": METHODS[method], **options}, dataset)


def imagenet_vit(method: str, recipe: Recipe = IMAGENET) -> Experiment:
    """ViT-T on ImageNet-1K with patches of 16 x 16 pixels; mean and deviation are timm's default for it, .5."""
    experiment = _experiment("vit_t", recipe, {"initialization": METHODS[method], "patch_size": 16}, "imagenet")
    return experiment.model_copy(image_size=224, normalization="half")


def laptop_vit(
    method: str,
    *,
    dim: int = 48,
    depth: int = 3,
    paper_dim: int = 192,
    setting: Setting | None = None,
    **options: Scalar,
) -> Experiment:
    """A small ViT-T on CIFAR-10, with ViT-T's three heads unless ``num_heads`` says otherwise.

    Args:
        method: one of ``METHODS``.
        dim, depth: width and number of layers.
        paper_dim: width of the paper's network that it stands for.
        setting: setting to train by; None: the one that the search has chosen for this method.
        options: other options of the model.
    """
    chosen = setting or TUNED[method]
    of_rule = weight_scale(dim, paper_dim) if method == "Trunc Normal" else 1.0
    shape: dict[str, Scalar] = {"dim": dim, "depth": depth, "patch_size": 4, "weight_scale": chosen.scale * of_rule}
    warmup = round(LAPTOP.epochs * chosen.warmup, 9)
    recipe = LAPTOP.model_copy(learning_rate=chosen.learning_rate, warmup_epochs=warmup)
    return _experiment("vit_t", recipe, {"initialization": METHODS[method], **shape, **options})


def convmixer(kernel_size: int, dim: int, spatial: str) -> Experiment:
    """The experiment behind a cell of Table 4."""
    return _experiment("convmixer", CIFAR_CONVMIXER, {"kernel_size": kernel_size, "dim": dim, "spatial": spatial})


def laptop_convmixer(kernel_size: int, dim: int, spatial: str) -> Experiment:
    """The same with an eighth of its width, in three layers and 4 x 4 patches."""
    options: dict[str, Scalar] = {"kernel_size": kernel_size, "dim": dim // 8, "spatial": spatial}
    return _experiment("convmixer", LAPTOP_CONVMIXER, {**options, "depth": 3, "patch_size": 4})


def entry(row: tuple[str, ...], column: str, experiment: Experiment) -> Entry:
    """The experiment's final accuracy in one place: what every cell of this paper's tables is."""
    return Entry(row=row, columns={column: "top1_percent"}, experiment=experiment)


def changes(columns: Iterable[str]) -> tuple[ChangeFrom, ...]:
    """Make the columns that say, as Tables 2 and 3 do, by how many points each exceeds Trunc Normal."""
    return tuple(ChangeFrom(column=f"{column}_change", of=column, baseline=("Trunc Normal",)) for column in columns)


def profiles(
    laptop: Iterable[Entry], paper: Iterable[Entry], note: str = LAPTOP_NOTE, num_tries: int = NUM_TRIES
) -> dict[ProfileName, Profile]:
    """Make a suite's profiles, of which ``gpu`` is the paper's own experiments.

    Args:
        laptop, paper: entries of these profiles.
        note: how the laptop's scale compares with the paper's.
        num_tries: settings that were tried for each of the laptop's configurations.
    """
    own = Profile.paper(paper)
    laptop = [entry.model_copy(num_tries=num_tries) for entry in laptop]
    return {
        "laptop": Profile.laptop(laptop, note, num_evaluations=2),
        "gpu": Profile.gpu(own.entries, ""),
        "paper": own,
    }
