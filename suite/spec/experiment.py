"""The head of the data's path: what is to be trained or measured, as frozen data, and its identity.

    Suite -> Profile -> Entry (a place in a table) -> Experiment (with a Recipe) -> run, by ``Resources``

An Experiment holds only what changes results; how and where it runs is in ``resources``. No torch, so that planning
starts at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from suite.base.errors import SpecError, check_name
from suite.base.frozen import Frozen, Scalar
from suite.spec.custom_model import ModelSource
from suite.spec.recipe import Recipe

Kind = Literal["training", "transfer", "pruning", "distillation", "masking", "maps"]
Shuffled = Literal["none", "patches", "within_patches"]
Normalization = Literal["own", "imagenet", "half", "cordonnier"]  # values: ``imagesets.catalog.NORMALIZATIONS``
SEED_LIMIT = 2**31


_OPTIONS_OF_KIND: dict[str, tuple[str, ...]] = {  # of the other kinds none
    "pruning": ("max_condition_number", "min_eigenvalue"),
    "distillation": ("teacher",),
    "masking": ("mask", "num_layers"),
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

    ``evaluated_on`` is the test split or, for a search, "held_out": the last tenth of each class of training images,
    which it then does not train on.

    ``normalization`` names the mean and deviation that images are normalized by; "own" are those of the image set. A
    run that goes on with its parent's network, or measures it, has its parent's. A student has one of its own: its
    teacher is shown the same pictures, normalized as the teacher's were.

    ``shuffle`` permutes what the network sees of an image, in training and test, after all augmentation: its patches of
    ``shuffle_patch_size`` pixels a side, or the pixels within each patch. The permutation is one for all images, seeds
    and models, and for all patches.

    ``images_drawn_by_seed`` says which images of each class the share ``train_fraction`` keeps: the first ones of the
    data set, as in ConViT's code, or, where it is true, some that the seed draws: the same for every model, and smaller
    shares within larger ones. An interval over seeds then holds for other draws of the images too.

    ``model_source`` says where a model comes from that is none of ours. ``model`` is then a label of it, which is no
    part of the identity, and neither are options that the source's text sets by default.

    ``configuration_id`` is the identity of its configuration, which is all but the seed: runs that share it may be
    averaged. ``id`` adds the seed and is also the run's path inside the run store. A run starts from parents of its
    own seed.
    """

    model: str
    dataset: str
    image_size: PositiveInt
    recipe: Recipe
    model_options: dict[str, Scalar] = {}  # noqa: RUF012 - pydantic copies it
    model_source: ModelSource | None = None
    train_fraction: float = Field(1.0, gt=0, le=1)
    evaluated_on: Literal["test", "held_out"] = "test"
    images_drawn_by_seed: bool = False
    normalization: Normalization = "own"
    shuffle: Shuffled = "none"
    shuffle_patch_size: int = Field(0, ge=0)
    seed: int = Field(0, ge=0, lt=SEED_LIMIT)
    kind: Kind = "training"
    kind_options: dict[str, Scalar] = {}  # noqa: RUF012
    parents: tuple[Experiment, ...] = ()

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        needs_parent = self.kind != "training" and not (self.kind == "distillation" and "teacher" in self.kind_options)
        if needs_parent != bool(self.parents) and self.kind != "maps":
            expected = "at least one: the runs that it takes over, see Experiment.then" if needs_parent else "none"
            raise SpecError(f"an experiment of kind {self.kind!r} has {len(self.parents)} parents, expected {expected}")
        for key in self.kind_options:
            check_name(f"option of kind {self.kind}", key, _OPTIONS_OF_KIND.get(self.kind, ()))
        if any(parent.seed != self.seed for parent in self.parents):
            raise SpecError(f"an experiment of seed {self.seed} has a parent of another seed; use with_seed")
        others = {parent.normalization for parent in self.parents} - {self.normalization}
        if others and self.kind != "distillation":
            raise SpecError(
                f"an experiment of kind {self.kind!r} has normalization {self.normalization!r} and a parent with "
                f"{sorted(others)[0]!r}; expected the same, as its network is the parent's"
            )
        return self

    @model_validator(mode="after")
    def _check_shuffle(self) -> Self:
        size = self.shuffle_patch_size
        if self.shuffle == "none" and size:
            raise SpecError(f"shuffle_patch_size is {size} and shuffle 'none'; expected 0, or what is to be shuffled")
        if self.shuffle != "none" and (not size or self.image_size % size):
            raise SpecError(
                f"shuffle is {self.shuffle!r} and shuffle_patch_size {size}; expected pixels that divide "
                f"image_size {self.image_size}"
            )
        return self

    @cached_property
    def configuration_id(self) -> str:
        """First 16 hex digits of the SHA-256 over the sorted JSON of all fields that differ from their defaults;
        parents stand in it by their own ``configuration_id``."""
        fields = self._fields()
        if self.model_source:
            del fields["model"]
            fields["model_options"] = self.model_source.changed_options(self.model_options)
        if self.parents:
            fields["parents"] = [parent.configuration_id for parent in self.parents]
        return _digest(fields)

    def _fields(self) -> dict[str, Any]:
        without: dict[str, Any] = {"seed": True, "recipe": {"name"}, "parents": True, "model_source": True}
        fields: dict[str, Any] = self.model_dump(exclude_defaults=True, exclude=without)
        return fields | ({"model_source": self.model_source.identity} if self.model_source else {})

    @property
    def configuration(self) -> str:
        """The configuration's name, which its folder bears."""
        return f"{self.model_source.folder_name if self.model_source else self.model}-{self.configuration_id}"

    @cached_property
    def old_configuration(self) -> str:
        """The configuration's name while a custom model's label and all of its given options were in its identity."""
        fields = self._fields()
        if self.parents:
            fields["parents"] = [parent.old_configuration.rpartition("-")[2] for parent in self.parents]
        return f"{self.model}-{_digest(fields)}"

    @property
    def id(self) -> str:
        return f"{self.configuration}/seed-{self.seed}"

    @property
    def old_id(self) -> str:
        """The id that ``old_configuration`` has made."""
        return f"{self.old_configuration}/seed-{self.seed}"

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
        return self.model_copy(seed=seed, parents=parents)

    def then(self, kind: Kind, **kind_options: Scalar) -> Experiment:
        """Make the experiment that does ``kind`` with this one's finished run, with the same recipe and model."""
        return self.model_copy(kind=kind, kind_options=kind_options, parents=(self,))


def _digest(fields: dict[str, Any]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def with_ancestors(experiments: Iterable[Experiment]) -> list[Experiment]:
    """List these experiments and all that they depend on, each once, parents first."""
    found: dict[str, Experiment] = {}
    for experiment in experiments:
        found |= {ancestor.id: ancestor for ancestor in with_ancestors(experiment.parents)}
        found[experiment.id] = experiment
    return list(found.values())


def experiment_fields(experiment: Experiment) -> dict[str, Any]:
    """List what ``--only KEY=VALUE`` can name: the experiment's own fields, without the recipe's."""
    fields = experiment.model_dump(exclude={"recipe", "model_options", "model_source", "kind_options", "parents"})
    return {**fields, "recipe": experiment.recipe.name.partition(", tuned")[0]}  # by the name that its suite gives it


def flat_fields(experiment: Experiment, of_parents: str) -> dict[str, Any]:
    """List all that identifies an experiment but its seed, flat: options and the recipe's fields by their bare names.

    Before the names of its parents' fields stands ``of_parents``.
    """
    nested = {"recipe", "model_options", "model_source", "kind_options", "parents", "seed"}
    fields = experiment.model_dump(exclude=nested) | experiment.recipe.model_dump(exclude={"name"})
    fields |= {"model_source": str(experiment.model_source)} if experiment.model_source else {}
    fields |= experiment.model_options | experiment.kind_options
    for parent in experiment.parents:
        fields |= {of_parents + name: value for name, value in flat_fields(parent, of_parents).items()}
    return fields
