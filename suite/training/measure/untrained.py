"""Runs that train nothing: a finished run is evaluated with a part of it masked, or attention maps are recorded."""

import contextlib
import math
from typing import Any

from imagesets.loader import ImageLoader
from suite.base.errors import RunError
from suite.models.convit.masking import masked
from suite.models.registry import count_parameters
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.results import Result
from suite.store.run_directory import RunDirectory
from suite.training.distributed import Ranks
from suite.training.measure.evaluate import evaluate
from suite.training.measure.maps import record_maps
from suite.training.measure.outcome import make_result
from suite.training.measure.usage import Usage
from suite.training.start import choose_parent, start_network, trained_network


def measure(run: RunDirectory, experiment: Experiment, resources: Resources, ranks: Ranks) -> Result | None:
    """Carry an experiment of kind "masking" or "maps" out; the first rank returns the result, the others None.

    Args:
        run: run directory, which gets the maps.
        resources: loader and data folder.

    Raises:
        RunError: a parent that is not finished, or whose weights are gone; a measured loss that is not finite.
        SpecError: there is nothing of that kind to mask.
    """
    parent, usage = choose_parent(run, experiment), Usage(run, ranks)
    images = ImageLoader(experiment, resources)
    source = (run, experiment) if parent is None else (parent.run, parent.experiment)
    make_network = start_network if parent is None else trained_network
    network = make_network(*source, images.info.num_classes).to(ranks.device)
    mask: dict[str, Any] = dict(experiment.kind_options)
    with masked(network, **mask) if experiment.kind == "masking" else contextlib.nullcontext():
        accuracy = evaluate(network, images, ranks, experiment.recipe.precision)
    if not math.isfinite(accuracy.loss):
        raise RunError(
            f"the test loss is {accuracy.loss}, expected a finite number: the network of {source[1].id} overflows in "
            f"{experiment.recipe.precision}. Look at its metrics; its recipe may need a lower learning rate"
        )
    usage.record()
    corrupt = ranks.union(images.corrupt)  # of all test images: each rank has read its share
    if not ranks.is_first:
        return None
    maps_sha256 = ""
    if experiment.kind == "maps":
        before = {"before": start_network(*source, images.info.num_classes).to(ranks.device)}
        networks = before if parent is None else before | {"after": network}
        maps_sha256 = record_maps(networks, images, run.maps_path)
    return make_result(
        run=run,
        experiment=experiment,
        resources=resources,
        ranks=ranks,
        images=images,
        network=network,
        num_parameters=count_parameters(network),
        accuracy=accuracy,
        parent=parent,
        num_evaluations=1,
        num_corrupt_images=len(corrupt),
        maps_sha256=maps_sha256,
    )
