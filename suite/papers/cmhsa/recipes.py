"""How "Can Vision Transformers Perform Convolution?" (Li et al.) trains on CIFAR-100: two phases, at each scale.

A convolution phase trains ``cmhsa_conv``; its most accurate run of the learning-rate search goes on as ``cmhsa`` in the
self-attention phase. What its suites share is made here, and so is trained once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from suite.base.frozen import Scalar
from suite.papers.shared.deit_recipes import DEIT, DEIT_LAPTOP, WITHOUT_AUGMENTATION
from suite.papers.shared.weight_scale import weight_std
from suite.spec.experiment import Experiment, Normalization
from suite.spec.recipe import Recipe

BIAS_STRENGTH = 10.0
"""M of the transferred position bias. The proof's M = 40 leaves attention no gradient that AdamW could see; with 10 it
learns, and takes 1 % of a weight elsewhere. Which M the authors trained with is not stated."""

CMHSA = DEIT.model_copy(name="cmhsa", epochs=200, batch_size=128, learning_rate=3e-4, mix_group=32)
"""A phase: Appendix B, and "all the data augmentation and regularization strategies" of DeiT, unmodified.

Mixup and cutmix are drawn for each 32 images, which one of the authors' four GPUs (Appendix B) holds.

Differs: as DeiT's recipe does. Its smallest learning rate of 1e-5 stays, so that a peak of 1e-5 is constant.
"""

DEIT_CIFAR100 = CMHSA.model_copy(name="deit_cifar100", epochs=400, learning_rate=1.25e-4)
"""DeiT's baselines: 400 epochs. Their learning rate is not stated; it is DeiT's, 5e-4 * batch / 512."""

VIT_CIFAR100 = DEIT_CIFAR100.model_copy(name="vit_cifar100", label_smoothing=0.0, drop_path=0.0, **WITHOUT_AUGMENTATION)
"""ViT's baseline: the same without DeiT's augmentation and regularization; random resized crop and flip stay."""

Phase = Literal["convolution", "attention"]
Size = Literal["base", "small"]
Candidates = tuple[Experiment, ...]


class PhaseSetting(NamedTuple):
    """A training's learning rate, warm-up (None: the scale's), and factor on the deviations of its first weights."""

    learning_rate: float
    warmup_epochs: float | None = None
    weight_factor: float = 1.0


@dataclass(frozen=True)
class Scale:
    """The paper's models at one size and length.

    Args:
        normalization: normalization of the images; DeiT's code takes ImageNet's for CIFAR-100 too.
        shortening: divides every length of the paper.
        warmup_epochs: warm-up of every run, at this scale.
        phase, deit, vit: recipes at the paper's lengths.
        schedule_unit: how often the learning rate changes; only that of whole epochs lags, as DeiT's.
        settings: settings that each training searches, by its own name, such as "two_phases_5/attention", or by its
            phase; a baseline without any has its recipe's.
        networks: model and options of each phase, and of each size of the baselines.
    """

    settings: Mapping[str, tuple[PhaseSetting, ...]]
    networks: Mapping[str, tuple[str, Mapping[str, Scalar]]]
    dataset: str = "cifar100"
    image_size: int = 224
    normalization: Normalization = "imagenet"
    shortening: float = 1.0
    warmup_epochs: float = 5.0
    phase: Recipe = CMHSA
    deit: Recipe = DEIT_CIFAR100
    vit: Recipe = VIT_CIFAR100
    schedule_unit: Literal["step", "epoch"] = "epoch"

    def baseline(self, size: Size, with_deits_recipe: bool = True) -> Candidates:
        """DeiT's network of that size, by DeiT's recipe or, as ViT, without its augmentation and regularization."""
        name, recipe = (f"deit_{size}", self.deit) if with_deits_recipe else (f"vit_{size}", self.vit)
        return self._train(name, size, recipe)

    def one_phase(self, phase: Phase, kernel_size: int | None = None) -> Candidates:
        """Only one of the phases, twice as long, from a random initialization: a run for each setting."""
        name, options = (f"{phase}_{kernel_size}", {"kernel_size": kernel_size}) if kernel_size else (phase, {})
        return self._train(name, phase, self.phase.with_epochs(2 * self.phase.epochs), **options)

    def random_attention(self, with_warmup: bool) -> Candidates:
        """The self-attention phase at its length from a random initialization (Fig. 2)."""
        return self._train("random_attention", "attention", self.phase, with_warmup)

    def two_phases(self, kernel_size: int, with_warmup: bool = True) -> Candidates:
        """The self-attention phases at each setting, that all start from the best convolution phase."""
        name = f"two_phases_{kernel_size}"
        parents = self._train(f"{name}/convolution", "convolution", self.phase, kernel_size=kernel_size)
        attention = self._train(f"{name}/attention", "attention", self.phase, with_warmup, bias_strength=BIAS_STRENGTH)
        return tuple(phase.model_copy(kind="transfer", parents=parents) for phase in attention)

    def _train(
        self, name: str, network: Phase | Size, recipe: Recipe, with_warmup: bool = True, /, **own_options: Scalar
    ) -> Candidates:
        """The training called ``name`` at each of its own settings, or of those of all trainings of its network."""
        name = name if with_warmup else f"{name}/no_warmup"
        settings = self.settings.get(name) or self.settings.get(network) or (PhaseSetting(recipe.learning_rate),)
        model, shape = self.networks[network]
        options = {**shape, **own_options}
        lag = recipe.schedule_lag_epochs if self.schedule_unit == "epoch" else 0
        candidates = []
        for rate, own_warmup, factor in settings:
            warmup = self.warmup_epochs if own_warmup is None else own_warmup
            shorter = recipe.with_epochs(recipe.epochs / self.shortening, warmup if with_warmup else 0.0)
            stds = {name: factor * float(options[name]) for name in ("weight_std", "query_key_std") if name in options}
            experiment = Experiment(
                model=model,
                dataset=self.dataset,
                image_size=self.image_size,
                normalization=self.normalization,
                recipe=shorter.model_copy(
                    learning_rate=rate, schedule_unit=self.schedule_unit, schedule_lag_epochs=lag
                ),
                model_options={**options, **stds},
            )
            candidates.append(experiment)
        return tuple(candidates)


PAPER_SCALE = Scale(
    settings={
        "convolution": tuple(map(PhaseSetting, (1e-4, 3e-4, 5e-4))),
        "attention": tuple(map(PhaseSetting, (1e-5, 3e-5, 5e-5, 7e-5))),
    },
    networks={
        "convolution": ("cmhsa_conv", {}),
        "attention": ("cmhsa", {}),
        "base": ("deit_b", {}),
        "small": ("deit_s", {}),
    },
)

GPU = replace(PAPER_SCALE, shortening=10, warmup_epochs=0.5, schedule_unit="step")
"""The paper's models and search on CIFAR-100 at 224 pixels, a tenth as long; the learning rate moves every step, and
without DeiT's lag."""

GPU_NOTE = "the paper's models, images and search, a tenth of its epochs: 20 a phase"

_LAPTOP_PHASE = DEIT_LAPTOP.model_copy(
    name="cmhsa_laptop",
    epochs=200,
    batch_size=32,
    test_crop=1.0,
    label_smoothing=0.1,
    flip_probability=0.5,
    random_erasing=0.25,
)
_LAPTOP_DEIT = _LAPTOP_PHASE.model_copy(name="deit_cmhsa_laptop", epochs=400, learning_rate=3e-3)


def small_scale(settings: Mapping[str, tuple[PhaseSetting, ...]]) -> Scale:
    """CIFAR-10 at 16 pixels in patches of 4, three layers of width 48 beside DeiT's six; a phase is 0.4 epochs.

    Left out of DeiT's recipe: RandAugment, colour jitter, mixup, cutmix, repeated augmentation, the crop and stochastic
    depth. ViT's row leaves out label smoothing and random erasing too. Changed: batches of 32; test images are shown
    whole, as training images are.

    Args:
        settings: settings of each training, by name; their factors come on top of the rule of ``weight_std``.
    """
    wide = weight_std(48, 768)
    size: dict[str, Scalar] = {"patch_size": 4, "weight_std": wide}
    small = {"dim": 24, "depth": 6, "num_heads": 2, "patch_size": 4, "weight_std": weight_std(24, 384)}
    return Scale(
        dataset="cifar10",
        image_size=16,
        normalization="own",
        shortening=500,
        warmup_epochs=0.04,
        schedule_unit="step",
        phase=_LAPTOP_PHASE,
        deit=_LAPTOP_DEIT,
        vit=_LAPTOP_DEIT.model_copy(name="vit_cmhsa_laptop", label_smoothing=0.0, random_erasing=0.0),
        settings=settings,
        networks={
            "convolution": ("cmhsa_conv_micro", size),
            "attention": ("cmhsa_micro", {**size, "query_key_std": wide}),
            "base": ("deit_micro", {**size, "dim": 48, "depth": 6, "num_heads": 4}),
            "small": ("deit_micro", small),
        },
    )


LAPTOP = small_scale(
    {
        "vit_base": (PhaseSetting(2e-3, 0.08),),
        "deit_small": (PhaseSetting(2e-3, 0.04, 2.0),),
        "deit_base": (PhaseSetting(2e-3, 0.08, 2.0),),
        "convolution_3": (PhaseSetting(6e-3, 0.08),),
        "convolution_5": (PhaseSetting(2e-3, 0.08),),
        "attention": (PhaseSetting(2e-3, 0.08, 2.0),),
        "two_phases_3/convolution": (PhaseSetting(6e-3, None, 2.0),),
        "two_phases_3/attention": (PhaseSetting(2e-3, None, 2.0),),
        "two_phases_5/convolution": (PhaseSetting(2e-3),),
        "two_phases_5/attention": (PhaseSetting(2e-3),),
        "two_phases_5/attention/no_warmup": (PhaseSetting(2e-3),),
        "random_attention": (PhaseSetting(3.5e-3, None, 2.0),),
        "random_attention/no_warmup": (PhaseSetting(7e-4),),
    }
)
"""Each training at the best setting of ``benchmarks/search.py``."""

NUM_TRIES = 12  # trainings that were tried for each of them
