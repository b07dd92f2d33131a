"""The head of the data's path: what is to be trained or measured, as frozen data, and its identity.

Suite -> Profile -> Entry (a place in a table; these three in ``tables``) -> Experiment (with a Recipe).
An Experiment holds only what changes results; how and where it runs is in ``Resources``.
No torch here, so that planning starts at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from suite.base.errors import SpecError, check_name

Scalar = bool | int | float | str
ProfileName = Literal["laptop", "desktop", "gpu", "paper", "smoke"]
Kind = Literal["training", "transfer", "pruning", "distillation", "masking", "maps"]
StorageFormat = Literal["memory", "ffcv", "webdataset", "folder"]  # each a module of ``imagesets.formats``
TrackerName = Literal["tensorboard", "trackio", "wandb"]  # packages, and extras, of these names
Normalization = Literal["own", "imagenet", "half", "cordonnier"]  # values: ``imagesets.catalog.NORMALIZATIONS``


# Of a run's environment before torch is loaded, unless the user says otherwise. OpenMP's threads spin while they wait
# for each other, which is its default, and so keep each other from cores that others use too.
WAITING_THREADS = ("OMP_WAIT_POLICY", "PASSIVE")


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
        return self.model_copy(update={"epochs": epochs, "warmup_epochs": warmup, "schedule_epochs": laid_out})


class ModelSource(Frozen):
    """Where a model comes from that is none of ours, and in which version: part of the experiment's identity.

    ``name`` is timm's; ``MODULE:ATTRIBUTE``; an entry point's; or, of kind "file", an attribute of ``code``, which is
    the file's whole text: whoever has the experiment, on whatever node or later, builds exactly that model.
    ``version`` is a distribution's, as ``timm==1.0.31``, or ``sha256:`` with the hash of the source.
    """

    kind: Literal["timm", "file", "module", "entry_point"]
    name: str
    version: str
    code: str = ""

    @model_validator(mode="after")
    def _check_code(self) -> Self:
        if self.kind == "file" and self.version != (found := hash_source(self.code.encode())):
            raise SpecError(f"the code of model {self.name} was changed: found {found}, expected {self.version}")
        return self

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}@{self.version}"


def hash_source(source: bytes) -> str:
    """The version of a source that has no number."""
    return f"sha256:{hashlib.sha256(source).hexdigest()}"


_OPTIONS_OF_KIND: dict[str, tuple[str, ...]] = {
    "training": (),
    "transfer": (),
    "pruning": ("max_condition_number", "min_eigenvalue"),
    "distillation": ("teacher",),
    "masking": ("mask", "num_layers"),
    "maps": (),
}


class Experiment(Frozen):
    """One training or measurement to be done: everything that changes its result, and nothing else.

    ``kind`` says what is done with the finished runs of ``parents``, of which the most accurate one is taken (several
    are a search, such as for a learning rate):

    - ``training``: nothing, there are none; the model starts as initialized.
    - ``transfer``: a ``cmhsa`` starts from the function of a trained ``cmhsa_conv``.
    - ``pruning``: degenerate heads of a trained network are removed, and the rest is trained on.
    - ``distillation``: the parent is the teacher of a hard distillation; without one, ``kind_options["teacher"]``
      names a model of timm's, whose weights come from a file.
    - ``masking``: nothing is trained; the parent is evaluated with ``kind_options["mask"]`` switched off.
    - ``maps``: nothing is trained; the parent's attention maps are recorded, before and after its training; without a
      parent, those of the network as it is initialized.

    ``normalization`` names the mean and deviation that images are normalized by; "own" are those of the image set. A
    run that goes on with its parent's network, or measures it, has its parent's. A student has one of its own: its
    teacher is shown the same pictures, normalized as the teacher's were.

    ``model_source`` says where a model comes from that is none of ours, which ``model`` then only labels.

    ``arm_id`` is the identity of its arm: without the seed (runs that may be averaged share it); ``id`` adds the seed
    and is also the run's path inside the run store. A run takes over from parents of its own seed.
    """

    model: str
    dataset: str
    image_size: PositiveInt
    recipe: Recipe
    model_options: dict[str, Scalar] = {}
    model_source: ModelSource | None = None
    train_fraction: float = Field(1.0, gt=0, le=1)
    normalization: Normalization = "own"
    seed: int = Field(0, ge=0, lt=2**31)
    kind: Kind = "training"
    kind_options: dict[str, Scalar] = {}
    parents: tuple[Experiment, ...] = ()

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        needs_parent = self.kind != "training" and not (self.kind == "distillation" and "teacher" in self.kind_options)
        if needs_parent != bool(self.parents) and self.kind != "maps":
            expected = "at least one: the runs that it takes over, see Experiment.then" if needs_parent else "none"
            raise SpecError(f"an experiment of kind {self.kind!r} has {len(self.parents)} parents, expected {expected}")
        for key in self.kind_options:
            check_name(f"option of kind {self.kind}", key, _OPTIONS_OF_KIND[self.kind])
        if any(parent.seed != self.seed for parent in self.parents):
            raise SpecError(f"an experiment of seed {self.seed} has a parent of another seed; use with_seed")
        others = {parent.normalization for parent in self.parents} - {self.normalization}
        if others and self.kind != "distillation":
            raise SpecError(
                f"an experiment of kind {self.kind!r} has normalization {self.normalization!r} and a parent with "
                f"{sorted(others)[0]!r}; expected the same, as its network is the parent's"
            )
        return self

    @cached_property
    def arm_id(self) -> str:
        """First 16 hex digits of the SHA-256 over the sorted JSON of all fields that differ from their defaults;
        parents stand in it by their own ``arm_id``."""
        without: dict[str, Any] = {
            "seed": True,
            "recipe": {"name"},
            "parents": True,
            "model_source": {"code"},
        }  # whose version says it
        fields = self.model_dump(exclude_defaults=True, exclude=without)
        if self.parents:
            fields["parents"] = [parent.arm_id for parent in self.parents]
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def arm(self) -> str:
        """The arm's name, which its folder bears."""
        return f"{self.model}-{self.arm_id}"

    @property
    def id(self) -> str:
        return f"{self.arm}/seed-{self.seed}"

    @property
    def is_trained(self) -> bool:
        """Whether there is anything to train; else the experiment only measures."""
        return self.kind not in ("masking", "maps")

    def num_steps(self, num_train_images: int) -> int:
        """Count the steps of a whole run on so many images; 0 where it only measures."""
        return self.recipe.num_steps(num_train_images) if self.is_trained else 0

    @property
    def inherits_weights(self) -> bool:
        """Whether its training goes on from a parent's weights."""
        return self.kind in ("transfer", "pruning")

    @property
    def epochs_before(self) -> float:
        """Epochs of the trainings whose weights this one goes on from: 0 for one from its own initialization."""
        if not self.inherits_weights:
            return 0.0
        parent = self.parents[0]  # candidates of one search differ in their rates, not in their length
        return parent.epochs_before + parent.recipe.epochs

    def with_seed(self, seed: int) -> Experiment:
        """Give the experiment, and its parents, another seed."""
        parents = tuple(parent.with_seed(seed) for parent in self.parents)
        return self.model_copy(update={"seed": seed, "parents": parents})

    def then(self, kind: Kind, **kind_options: Scalar) -> Experiment:
        """Make the experiment that does ``kind`` with this one's finished run, with the same recipe and model."""
        return self.model_copy(update={"kind": kind, "kind_options": kind_options, "parents": (self,)})


def with_ancestors(experiments: Iterable[Experiment]) -> list[Experiment]:
    """List these experiments and all that they depend on, each once, parents first."""
    found: dict[str, Experiment] = {}
    for experiment in experiments:
        found |= {ancestor.id: ancestor for ancestor in with_ancestors(experiment.parents)}
        found[experiment.id] = experiment
    return list(found.values())


class Resources(Frozen):
    """How a run is carried out. Never part of its identity."""

    device: Literal["cpu", "gpu"] = "cpu"
    num_ranks: PositiveInt = 1
    threads_per_rank: PositiveInt = 1
    micro_batch_size: PositiveInt | None = None  # images a rank holds at once; None = its whole share
    zero_stage: int = Field(0, ge=0, le=3)
    compiled: bool = False  # training steps by torch.compile, and a fused optimizer
    checkpoint_every_s: NonNegativeFloat = 300.0  # or less often, where that takes over 1 % of the time
    num_evaluations: PositiveInt = 3  # of the whole test split, evenly spaced; the last one is the result
    evaluate_every_epoch: bool = False  # beside these, for an accuracy that is the best of all epochs
    data_dir: str | None = None
    loader: StorageFormat = "memory"
    num_workers: int = Field(0, ge=0)  # threads a rank decodes images with; 0 = as many as it computes with
    skip_corrupt: bool = False  # go on without images that cannot be decoded, and count them
    teacher_weights: str | None = None  # file of a timm teacher's weights, for distillation
    track: tuple[TrackerName, ...] = ()  # what also shows its metrics

    def split_batch(self, batch_size: int) -> tuple[int, int]:
        """Share a batch among all ranks: (images that a rank holds at once, accumulation steps).

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


def experiment_fields(experiment: Experiment) -> dict[str, Any]:
    """List what ``--only KEY=VALUE`` can name: the experiment's own fields, without the recipe's."""
    fields = experiment.model_dump(exclude={"recipe", "model_options", "model_source", "kind_options", "parents"})
    return {**fields, "recipe": experiment.recipe.name}


def flat_fields(experiment: Experiment, of_parents: str) -> dict[str, Any]:
    """List all that identifies an experiment but its seed, flat: options and the recipe's fields by their bare names.

    Args:
        of_parents: stands before the names of its parents' fields.
    """
    nested = {"recipe", "model_options", "model_source", "kind_options", "parents", "seed"}
    fields = experiment.model_dump(exclude=nested) | experiment.recipe.model_dump(exclude={"name"})
    fields |= {"model_source": str(experiment.model_source)} if experiment.model_source else {}
    fields |= experiment.model_options | experiment.kind_options
    for parent in experiment.parents:
        fields |= {of_parents + name: value for name, value in flat_fields(parent, of_parents).items()}
    return fields
