"""The cost of a run: floating-point operations, from those of one image in its model. No torch.

Building a large model takes a second, reading its count none: who counts, ``suite.models.flops``, keeps the count on
disk, and ``grid.py --list`` and the leaderboards find it here. Files that cannot be read or written count as not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from imagesets.catalog import ImageSetInfo
from suite.errors import RunError
from suite.files import cache_folder, write_atomically
from suite.model_options import digest_of_sources, read_options
from suite.spec import Experiment, Resources

TRAINING = 3  # forward passes that one image costs, the backward one included


@dataclass(frozen=True)
class Flops:
    """Of one image's forward pass, 2 per multiply-add, matrix products and convolutions only.

    ``linear`` leaves out attention maps and their products with the values: the convention that fits the papers.
    """

    total: int
    linear: int


class Counter(Protocol):
    """Tells the FLOPs of a model by its name, as ``find_flops`` and ``suite.models.flops.count_flops`` do."""

    def __call__(self, model: str, *, num_classes: int, image_size: int, **options: Any) -> Flops | None: ...


# -- a run


def run_flops(experiment: Experiment, resources: Resources, counter: Counter) -> float | None:
    """Add up a whole run: every training image seen, without evaluations; of one that only measures, its evaluation.

    Args:
        resources: say where its image set lies, if it is one of the user's own; in which format does not matter.
        counter: of models, see ``Counter``.

    Returns:
        None where the model, or its teacher, is not known to the ``counter``.

    Raises:
        SpecError: if the image set is not known.
    """
    info = _find_info(experiment, resources)
    network, teacher = _count(experiment, info, counter), _count_teacher(experiment, info, counter)
    if network is None or teacher is None:
        return None
    if not experiment.is_trained:
        return float(network.total * info.num_test)
    return (TRAINING * network.total + teacher.total) * images_seen(experiment, resources)


def images_seen(experiment: Experiment, resources: Resources) -> float:
    """Count the training images of a whole run, with repetitions; 0 where nothing is trained."""
    if not experiment.is_trained:
        return 0.0
    return experiment.recipe.epochs * experiment.train_fraction * _find_info(experiment, resources).num_train


def models_to_count(experiments: Iterable[Experiment], resources: Resources) -> list[Experiment]:
    """Find one experiment of each model that was never counted, which takes up to a second each."""
    models = {
        (e.model, e.image_size, e.dataset, _options_that_matter(e.model, options_to_count(e))): e for e in experiments
    }
    return [e for e in models.values() if run_flops(e, resources, find_flops) is None]


def _count(experiment: Experiment, info: ImageSetInfo, counter: Counter) -> Flops | None:
    sizes = {"num_classes": info.num_classes, "image_size": experiment.image_size}
    return counter(experiment.model, **sizes, **options_to_count(experiment))


def options_to_count(experiment: Experiment) -> dict[str, Any]:
    """List the keyword arguments by which a ``Counter`` builds an experiment's model."""
    source = experiment.model_source
    return {**experiment.model_options, **({} if source is None else {"model_source": source})}


def _count_teacher(experiment: Experiment, info: ImageSetInfo, counter: Counter) -> Flops | None:
    """A teacher answers every training image, and is not trained; of several candidates the first stands for all."""
    if experiment.kind != "distillation":
        return Flops(total=0, linear=0)
    if experiment.parents:
        return _count(experiment.parents[0], info, counter)
    teacher = f"timm/{experiment.kind_options['teacher']}"
    return counter(teacher, num_classes=info.num_classes, image_size=experiment.image_size)


def _find_info(experiment: Experiment, resources: Resources) -> ImageSetInfo:
    from imagesets.prepared import find_info  # takes a moment

    return find_info(experiment.dataset, Path(resources.data_dir) if resources.data_dir else None)


# -- counts that are kept


def find_flops(model: str, *, num_classes: int, image_size: int, **options: Any) -> Flops | None:
    """Find the count of a model; None if it is not known.

    Args:
        model: its name.
        num_classes: of its classifier.
        image_size: side of its images, in pixels.
        options: its keyword arguments.
    """
    try:
        return _read(_path(model, num_classes, image_size, options))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def keep_flops(flops: Flops, model: str, *, num_classes: int, image_size: int, **options: Any) -> None:
    """Remember a count, where there is a place to write.

    Args:
        flops: of one image's forward pass.
        model, num_classes, image_size, options: as for ``find_flops``.
    """
    path = _path(model, num_classes, image_size, options)
    with contextlib.suppress(OSError, RunError):  # nowhere to write: it is counted again
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"model": model, **asdict(flops)}).encode())


@lru_cache
def _read(path: Path) -> Flops:
    kept = json.loads(path.read_bytes())
    found = Flops(total=kept["total"], linear=kept["linear"])
    if not all(isinstance(number, int) and number > 0 for number in asdict(found).values()):
        raise ValueError(f"{path} holds {found}")
    return found


def _path(model: str, num_classes: int, image_size: int, options: Mapping[str, Any]) -> Path:
    known = [model, num_classes, image_size, _options_that_matter(model, options), _versions()]
    text = json.dumps(known, default=str)  # a model that is none of ours counts by its source
    return cache_folder("suite-flops") / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _options_that_matter(model: str, options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Sort the options and leave out those without effect on the count."""
    known = read_options().get(model)  # timm's have none
    without_effect = known.without_effect_on_flops if known is not None else ()
    return tuple(sorted((name, value) for name, value in options.items() if name not in without_effect))


@lru_cache
def _versions() -> tuple[str, ...]:
    """List what else a count depends on: the libraries, and the models' own source."""
    return version("torch"), version("timm"), digest_of_sources()
