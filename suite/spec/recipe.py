"""How a model is trained, as data: part of an experiment's identity. No torch, so that planning starts at once."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from suite.base.errors import SpecError
from suite.base.frozen import Frozen


class Recipe(Frozen):
    """How a model is trained. Every optional part defaults to "off", so a new field keeps old ids.

    Lengths are in epochs of the (sub-sampled) training set, ``batch_size`` counts all ranks, and
    ``learning_rate`` is the peak value at that batch size. ``name`` is a label, no part of the identity.

    Of the G = ``batch_size / mix_group`` groups, the image at position p of the batch belongs to group p mod G, and so
    to what process p mod G of G held where a paper's code draws in each process.
    """

    name: str
    epochs: PositiveFloat
    batch_size: PositiveInt
    learning_rate: PositiveFloat
    optimizer: Literal["adamw", "sgd"] = "adamw"
    adam_epsilon: PositiveFloat = 1e-8
    momentum: NonNegativeFloat = 0.0
    weight_decay: NonNegativeFloat = 0.0
    decay_biases: bool = False  # decay every parameter that the model does not exempt, also biases and norms
    clip_grad_norm: NonNegativeFloat = 0.0  # 0 = no clipping
    schedule: Literal["constant", "cosine", "multistep", "one_cycle"] = "constant"
    schedule_unit: Literal["step", "epoch"] = "step"  # how often the learning rate changes
    schedule_epochs: NonNegativeFloat = 0.0  # that the schedule is laid out for; 0 = ``epochs``
    schedule_lag_epochs: NonNegativeInt = 0  # by which the schedule is late: its start holds for so many epochs more
    milestones: tuple[PositiveFloat, ...] = ()  # epochs after which "multistep" divides it by ten
    warmup_epochs: NonNegativeFloat = 0.0
    cosine_after_warmup: bool = False  # the cosine begins when the warm-up ends, not with the training
    warmup_learning_rate: NonNegativeFloat = 0.0
    min_learning_rate: NonNegativeFloat = 0.0
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    drop_path: float = Field(0.0, ge=0, lt=1)
    crop: Literal["none", "pad", "random_resized"] = "none"
    crop_padding: int = Field(0, ge=0)  # pixels, for crop="pad"
    train_interpolation: Literal["bicubic", "random"] = "bicubic"  # random: bilinear or bicubic, drawn for each image
    test_crop: float = Field(0.875, gt=0, le=1)  # share of the resized test image's shorter side that is kept
    flip_probability: float = Field(0.0, ge=0, le=1)
    rand_augment: str = ""  # timm's notation, "" = off
    color_jitter: NonNegativeFloat = 0.0
    random_erasing: float = Field(0.0, ge=0, le=1)
    mixup: NonNegativeFloat = 0.0
    cutmix: NonNegativeFloat = 0.0
    mix_switch_probability: float = Field(0.0, ge=0, le=1)
    mix_group: NonNegativeInt = 0  # images of a batch that share one draw of mixup or cutmix; 0 = all
    repeated_augmentation: PositiveInt = 1
    precision: Literal["fp32", "bf16"] = "fp32"  # bf16: autocast, weights and optimizer stay fp32

    @model_validator(mode="after")
    def _check_mix_group(self) -> Self:
        if self.mix_group and (self.batch_size % self.mix_group or self.mix_group % 2):
            raise SpecError(
                f"recipe {self.name!r} has a mix_group of {self.mix_group} for a batch of {self.batch_size}; expected "
                "an even divisor of it, as images are mixed in pairs, or 0 for the whole batch"
            )
        return self

    @property
    def num_mix_groups(self) -> int:
        return self.batch_size // self.mix_group if self.mix_group else 1

    def num_steps(self, num_train_images: int) -> int:
        """Count the batches in a whole training: floor(epochs * images / batch), at least one."""
        return max(1, int(self.epochs * num_train_images / self.batch_size + 1e-6))

    def with_epochs(self, epochs: float, warmup_epochs: float | None = None) -> Recipe:
        """Change the recipe's length; warm-up keeps its number of epochs unless given."""
        warmup = self.warmup_epochs if warmup_epochs is None else warmup_epochs
        laid_out = self.schedule_epochs * epochs / self.epochs
        return self.model_copy(epochs=epochs, warmup_epochs=warmup, schedule_epochs=laid_out)
