"""A suite at one scale: the experiments, and where each stands in the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from suite.base.frozen import Frozen
from suite.spec.experiment import Experiment, with_ancestors

Row = tuple[str, ...]
SAMPLE_TRAIN_IMAGES = 320
_SMOKE_SHARE = 0.4  # of those at least for a suite's largest share, so that the smaller ones stay apart

_LAPTOP: dict[str, Any] = {"device": "cpu", "sustained_flops": 15e9, "checkpoint_every_s": 5}
_GPU: dict[str, Any] = {"device": "gpu", "sustained_flops": 40e12}
_PAPER: dict[str, Any] = {"device": "gpu", "sustained_flops": 100e12}

ProfileName = Literal["laptop", "desktop", "gpu", "paper", "smoke"]


class Place(Frozen):
    """A cell of a table; ``table`` is "" for the suite's first one."""

    row: Row
    column: str
    table: str = ""


class Entry(Frozen):
    """Where an experiment stands: its row, and per column the metric shown there.

    ``table`` is "" for the suite's first one. ``alternatives`` are tried beside ``experiment``, such as other learning
    rates: for each seed the place shows the one that the other seeds chose, and says so. Before that
    ``num_tries`` settings were tried on held-out training images; 1: none was searched. Of a custom model,
    ``custom_model`` is its name, and ``beside`` names by its columns those of the row's model in whose place it stands.
    """

    row: Row
    columns: dict[str, str]
    experiment: Experiment
    alternatives: tuple[Experiment, ...] = ()
    table: str = ""
    num_tries: PositiveInt = 1
    custom_model: str = ""
    beside: dict[str, str] = Field(default_factory=dict)

    @property
    def candidates(self) -> tuple[Experiment, ...]:
        return (self.experiment, *self.alternatives)


class Profile(Frozen):
    """A suite at one scale.

    ``sustained_flops`` is the stated rate of one worker (a core or a GPU), for cost estimates;
    ``scale_note`` says how its numbers compare with the paper's ("" for the paper's own scale). ``other_dataset`` is
    the image set that all of it is trained on in place of the suite's own, so that no number of the paper's is beside.
    ``tuning_hours`` are those of the tries that chose its recipes.
    """

    entries: tuple[Entry, ...]
    scale_note: str
    device: Literal["cpu", "gpu"]
    sustained_flops: PositiveFloat
    checkpoint_every_s: PositiveFloat = 300.0
    num_evaluations: PositiveInt = 3
    other_dataset: str = ""
    tuning_hours: float = Field(0.0, ge=0)

    @classmethod
    def laptop(cls, entries: Iterable[Entry], scale_note: str, num_evaluations: int = 3) -> Profile:
        """Make a profile of at most ten minutes a seed on two cores, by the fastest of its runs."""
        return cls(entries=tuple(entries), scale_note=scale_note, num_evaluations=num_evaluations, **_LAPTOP)

    @classmethod
    def desktop(cls, entries: Iterable[Entry], scale_note: str, num_evaluations: int = 10) -> Profile:
        """Make a profile of the laptop's networks trained longer: up to seven hours on two cores for three seeds."""
        return cls.laptop(entries, scale_note, num_evaluations).model_copy(checkpoint_every_s=60.0)

    @classmethod
    def gpu(cls, entries: Iterable[Entry], scale_note: str, num_evaluations: int = 30) -> Profile:
        """Make a profile of the paper's models at their sizes on CIFAR, for one GPU."""
        return cls(entries=tuple(entries), scale_note=scale_note, num_evaluations=num_evaluations, **_GPU)

    @classmethod
    def paper(cls, entries: Iterable[Entry], num_evaluations: int = 100) -> Profile:
        """Make the profile of the paper's exact protocol."""
        return cls(entries=tuple(entries), scale_note="", num_evaluations=num_evaluations, **_PAPER)

    def experiments(self, seeds: Iterable[int] = (0,)) -> list[Experiment]:
        """List every distinct experiment, also those that others depend on: seeds outermost, so that a grid completes
        one seed before the next, and parents before those that need them."""
        candidates = [candidate for entry in self.entries for candidate in entry.candidates]
        return with_ancestors(e.with_seed(seed) for seed in seeds for e in candidates)

    def hours(self, flops: float) -> float:
        """Hours that one worker takes for so many operations, at the stated rate."""
        return flops / self.sustained_flops / 3600

    def map_experiments(self, change: Callable[[Experiment], Experiment]) -> Profile:
        """Fill the same places in the tables by changed experiments, whose parents are changed too."""

        def change_all(experiment: Experiment) -> Experiment:
            parents = tuple(change_all(parent) for parent in experiment.parents)
            return change(experiment).model_copy(parents=parents)

        entries = []
        for entry in self.entries:
            first, *others = (change_all(candidate) for candidate in entry.candidates)
            entries.append(entry.model_copy(experiment=first, alternatives=tuple(others)))
        return self.model_copy(entries=tuple(entries))

    def with_precision(self, precision: str) -> Profile:
        """Train the same profile in another precision: other experiments, with results of their own."""
        changed = self.map_experiments(lambda e: e.model_copy(recipe=e.recipe.model_copy(precision=precision)))
        note = f"{self.scale_note or 'the protocol of the paper'}; in {precision}"
        return changed.model_copy(scale_note=note)

    def with_dataset(self, name: str) -> Profile:
        """Train the same profile on another image set, resized to the sizes of this one."""
        changed = self.map_experiments(lambda experiment: experiment.model_copy(dataset=name))
        own = re.sub(r"CIFAR-100?", lambda _: name, self.scale_note)
        own = re.sub(r"([\d,]+) images of it", lambda few: f"{int(few[1].replace(',', '')) / 500:g} % of it", own)
        note = f"all of it on {name}, another image set than the suite's; {own or 'else as the paper'}"
        return changed.model_copy(scale_note=note, other_dataset=name)

    def smoke(self) -> Profile:
        """Shrink the entries to sixty steps on a few hundred packaged images, in 4x4 patches where the models are those
        made for the laptop: enough to prove that everything runs."""
        largest = max(experiment.train_fraction for experiment in self.experiments())
        growth = max(1.0, _SMOKE_SHARE / largest)

        def shrink(experiment: Experiment) -> Experiment:
            # an image of each class, also where some are held out for tries
            fraction = max(growth * experiment.train_fraction, 12 / SAMPLE_TRAIN_IMAGES)
            epochs = 60 * 32 / (SAMPLE_TRAIN_IMAGES * fraction)
            short = experiment.recipe.model_copy(
                batch_size=32, epochs=epochs, warmup_epochs=0.0, schedule_epochs=0.0, milestones=()
            )
            options = dict(experiment.model_options)
            if experiment.model.endswith("_micro") and "patch_size" in options:
                options["patch_size"] = experiment.image_size // 4
            data: dict[str, Any] = {"dataset": "cifar10_sample", "train_fraction": fraction}
            if experiment.shuffle_patch_size == experiment.model_options.get("patch_size"):
                data["shuffle_patch_size"] = options["patch_size"]
            return experiment.model_copy(**data, model_options=options, recipe=short)

        note = "smoke: sixty steps on a few hundred images; shows that everything runs, its numbers mean nothing"
        return self.map_experiments(shrink).model_copy(scale_note=note, checkpoint_every_s=0.2)
