"""The head of the data's path: what is to be trained, as frozen data, and its identity.

Suite -> Profile -> Entry (a place in the paper's table) -> Experiment (with a Recipe).
An Experiment holds only what changes results; how and where it runs is in ``Resources``.
No torch here, so that planning starts at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from suite.errors import SpecError, unknown_name

Scalar = bool | int | float | str
ProfileName = Literal["laptop", "gpu", "paper", "smoke"]
StorageFormat = Literal["memory", "ffcv", "webdataset", "folder"]


class Frozen(BaseModel):
    """Immutable data whose misspelt fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values, validated like new ones: pydantic's own would keep an int where a float belongs,
        which is another identity, and carry cached properties over."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**fields, **(update or {})})


class Recipe(Frozen):
    """How a model is trained. Every optional part defaults to "off", so a new field keeps old ids.

    Lengths are in epochs of the (sub-sampled) training set, ``batch_size`` counts all ranks, and
    ``learning_rate`` is the peak value at that batch size. ``name`` is a label, no part of the identity.
    """

    name: str
    epochs: PositiveFloat
    batch_size: PositiveInt
    learning_rate: PositiveFloat
    optimizer: Literal["adamw", "sgd"] = "adamw"
    adam_epsilon: PositiveFloat = 1e-8
    momentum: NonNegativeFloat = 0.0
    weight_decay: NonNegativeFloat = 0.0
    clip_grad_norm: NonNegativeFloat = 0.0  # 0 = no clipping
    schedule: Literal["constant", "cosine"] = "constant"
    schedule_unit: Literal["step", "epoch"] = "step"  # how often the learning rate changes
    warmup_epochs: NonNegativeFloat = 0.0
    warmup_learning_rate: NonNegativeFloat = 0.0
    min_learning_rate: NonNegativeFloat = 0.0
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    drop_path: float = Field(0.0, ge=0, lt=1)
    crop: Literal["none", "pad", "random_resized"] = "none"
    crop_padding: int = Field(0, ge=0)  # pixels, for crop="pad"
    flip_probability: float = Field(0.0, ge=0, le=1)
    rand_augment: str = ""  # timm's notation, "" = off
    color_jitter: NonNegativeFloat = 0.0
    random_erasing: float = Field(0.0, ge=0, le=1)
    mixup: NonNegativeFloat = 0.0
    cutmix: NonNegativeFloat = 0.0
    mix_switch_probability: float = Field(0.0, ge=0, le=1)
    repeated_augmentation: PositiveInt = 1
    precision: Literal["fp32", "bf16"] = "fp32"  # bf16: autocast, weights and optimizer stay fp32

    def with_epochs(self, epochs: float, warmup_epochs: float | None = None) -> Recipe:
        """The same recipe at another length; warm-up keeps its number of epochs unless given."""
        warmup = self.warmup_epochs if warmup_epochs is None else warmup_epochs
        return self.model_copy(update={"epochs": epochs, "warmup_epochs": warmup})


class Experiment(Frozen):
    """One training to be done: everything that changes its result, and nothing else.

    ``cell_id`` is the identity without the seed (runs that may be averaged share it); ``id`` adds the seed
    and is also the run's path inside the run store.
    """

    model: str
    dataset: str
    image_size: PositiveInt
    recipe: Recipe
    model_options: dict[str, Scalar] = {}
    train_fraction: float = Field(1.0, gt=0, le=1)
    seed: int = Field(0, ge=0, lt=2**31)

    @cached_property
    def cell_id(self) -> str:
        """First 16 hex digits of the SHA-256 over the sorted JSON of all fields that differ from their defaults."""
        fields = self.model_dump(exclude_defaults=True, exclude={"seed": True, "recipe": {"name"}})
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def id(self) -> str:
        return f"{self.model}-{self.cell_id}/seed-{self.seed}"

    def with_seed(self, seed: int) -> Experiment:
        return self.model_copy(update={"seed": seed})


class Resources(Frozen):
    """How a run is carried out. Never part of its identity."""

    device: Literal["cpu", "gpu"] = "cpu"
    num_ranks: PositiveInt = 1
    threads_per_rank: PositiveInt = 1
    micro_batch_size: PositiveInt | None = None  # images a rank holds at once; None = its whole share
    zero_stage: int = Field(0, ge=0, le=3)
    checkpoint_every_s: NonNegativeFloat = 300.0
    num_evaluations: PositiveInt = 3  # of the whole test split, evenly spaced; the last one is the result
    data_dir: str | None = None
    loader: StorageFormat = "memory"
    num_workers: int = Field(0, ge=0)  # threads a rank decodes images with; 0 = as many as it computes with
    skip_corrupt: bool = False  # go on without images that cannot be decoded, and count them

    def split_batch(self, batch_size: int) -> tuple[int, int]:
        """(images a rank holds at once, accumulation steps) for a batch over all ranks.

        Raises:
            SpecError: if they do not divide it.
        """
        share, rest = divmod(batch_size, self.num_ranks)
        if rest:
            raise SpecError(f"a batch of {batch_size} cannot be shared by {self.num_ranks} ranks; choose a divisor")
        micro = min(self.micro_batch_size or share, share)
        if share % micro:
            raise SpecError(f"micro-batches of {micro} do not divide a rank's share of {share} images")
        return micro, share // micro


class Entry(Frozen):
    """Where an experiment stands in the paper's table: its row, and per column the metric shown there."""

    row: tuple[str, ...]
    columns: dict[str, str]
    experiment: Experiment


class Profile(Frozen):
    """A suite at one scale.

    ``sustained_flops`` is the stated rate of one worker (a core or a GPU), for cost estimates;
    ``scale_note`` says how its numbers compare with the paper's ("" for the paper's own scale).
    """

    entries: tuple[Entry, ...]
    scale_note: str
    device: Literal["cpu", "gpu"]
    sustained_flops: PositiveFloat
    checkpoint_every_s: PositiveFloat = 300.0
    num_evaluations: PositiveInt = 3

    def experiments(self, num_seeds: int = 1) -> list[Experiment]:
        """Every distinct experiment, seeds outermost, so that a grid completes one seed before the next."""
        found = {e.id: e for s in range(num_seeds) for e in (entry.experiment.with_seed(s) for entry in self.entries)}
        return list(found.values())

    def map_experiments(self, change: Callable[[Experiment], Experiment]) -> Profile:
        """The same places in the table, filled by changed experiments."""
        entries = tuple(e.model_copy(update={"experiment": change(e.experiment)}) for e in self.entries)
        return self.model_copy(update={"entries": entries})

    def with_precision(self, precision: str) -> Profile:
        """The same profile trained in another precision: other experiments, with results of their own."""

        def change(experiment: Experiment) -> Experiment:
            recipe = experiment.recipe.model_copy(update={"precision": precision})
            return experiment.model_copy(update={"recipe": recipe})

        return self.map_experiments(change)

    def smoke(self) -> Profile:
        """The same entries on a few hundred packaged images for sixty steps: proves that everything runs."""

        def shrink(experiment: Experiment) -> Experiment:
            epochs = 60 * 32 / (SAMPLE_TRAIN_IMAGES * experiment.train_fraction)
            recipe = experiment.recipe.model_copy(update={"batch_size": 32, "epochs": epochs, "warmup_epochs": 0.0})
            return experiment.model_copy(update={"dataset": "cifar10_sample", "recipe": recipe})

        note = "smoke: sixty steps on a few hundred images; shows that everything runs, its numbers mean nothing"
        return self.map_experiments(shrink).model_copy(update={"scale_note": note, "checkpoint_every_s": 0.2})


SAMPLE_TRAIN_IMAGES = 320


class RelativeGain(Frozen):
    """A derived column: 100 * (better - baseline) / baseline, in percent."""

    column: str
    better: str
    baseline: str


class LineFigure(Frozen):
    """A figure of the paper: metric columns against a numeric row key, with an optional relative gain."""

    x_key: str
    x_label: str
    y_label: str
    lines: dict[str, str]  # legend label -> column
    gain_column: str | None = None
    gain_label: str = ""
    log_x: bool = False


class Suite(Frozen):
    """One table of one paper: the question, its experiments at each scale, and the layout of the answer.

    ``table`` names the CSV in ``leaderboards/papers`` whose header, rows and rounding the leaderboard copies;
    ``row_keys`` are its leading columns that name a row.
    """

    name: str
    paper: str
    item: str
    question: str
    table: str
    row_keys: tuple[str, ...]
    profiles: dict[ProfileName, Profile]
    derived: tuple[RelativeGain, ...] = ()
    figure: LineFigure | None = None
    footnotes: tuple[str, ...] = ()

    def profile(self, name: str) -> Profile:
        """The profile called ``name``: one of ``profiles``, ``smoke`` (from ``laptop``), or one of these in another
        precision, such as ``laptop-bf16``.

        Raises:
            SpecError: if there is no such profile.
        """
        base, _, precision = name.partition("-")
        if precision in ("fp32", "bf16"):
            return self.profile(base).with_precision(precision)
        if name == "smoke":
            return self.profiles["laptop"].smoke()
        for known, profile in self.profiles.items():
            if known == name:
                return profile
        raise unknown_name("profile", name, [*self.profiles, "smoke"])


def experiment_fields(experiment: Experiment) -> dict[str, Any]:
    """What ``--only KEY=VALUE`` can name: the experiment's own fields, without the recipe's."""
    return {**experiment.model_dump(exclude={"recipe", "model_options"}), "recipe": experiment.recipe.name}
