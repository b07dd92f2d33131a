"""A finished run -> a folder in timm's layout, and the network from such a folder.

    run directory -> config.json, model.safetensors, README.md, .eval_results/<image set>.yaml

Where timm has the network, ``timm.create_model("local-dir:DIR", pretrained=True)`` reads the folder; ``load_folder``
reads it wherever it comes from this suite. The weights never pass through pickle.
"""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import nn

from imagesets.catalog import statistics
from imagesets.prepared import find_info
from suite.base.errors import RecordError, RunError, SpecError
from suite.base.files import write_atomically
from suite.base.reading import read_json
from suite.export.card import EVAL_RESULTS, render_card, render_eval_results
from suite.export.timm_layout import TimmLayout, find_layout, lay_out_own
from suite.export.timm_results import INTERPOLATION, evaluation_crop
from suite.models.cordonnier.head_pruning import pruned_options
from suite.models.registry import build_model
from suite.spec.custom_model import ModelSource
from suite.spec.experiment import Experiment
from suite.store.results import Result
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status
from suite.training.start import trained_network

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
_VERSION = 1  # of our part of config.json
_PART = "convolutional_prior"  # its key


def export(run: RunDirectory, folder: Path) -> bool:
    """Write a finished run's network into ``folder``, which is made if it is not there.

    Returns:
        Whether timm reads the folder by itself; else ``load_folder`` does.

    Raises:
        SpecError: the run trains nothing, so that it has no weights of its own.
        RunError: it is not finished, no longer holds, or has lost its weights; or the folder cannot be written.
    """
    result = finished_result(run)
    experiment = result.experiment
    network = trained_network(run, experiment, find_info(experiment.dataset).num_classes).eval()
    source = experiment.model_source
    layout = lay_out_own(experiment, network) if source and source.kind == "timm" else find_layout(network)
    weights = network.state_dict() if layout is None else layout.weights
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make the folder {folder}: {error.strerror}. Choose another with --to.") from error
    write_atomically(folder / WEIGHTS, save({name: tensor.contiguous() for name, tensor in weights.items()}))
    write_atomically(folder / CONFIG, json.dumps(_describe(experiment, network, layout), indent=1).encode())
    write_atomically(folder / CARD, render_card(result, is_timms=layout is not None).encode())
    if scores := render_eval_results(result):
        (folder / EVAL_RESULTS).mkdir(exist_ok=True)
        write_atomically(folder / EVAL_RESULTS / f"{experiment.dataset}.yaml", scores.encode())
    return layout is not None


def finished_result(run: RunDirectory) -> Result:
    """Return the result of a finished run that holds and has left weights.

    SpecError where it trains nothing, so that it has none; RunError where it is not there, not finished, or no longer
    holds.
    """
    try:
        status = find_run_status(run, run.read_experiment())
    except RecordError as error:
        raise RunError(
            f"{run.path} is no run ({error}) Expected a folder such as RUNS/experiments/MODEL-ID/seed-0, or its two "
            "last parts and the run store in --runs"
        ) from error
    result = status.result
    if status.state != "done" or result is None:
        reason = f": {status.reason}" if status.reason else ""
        raise RunError(f"{run.path} is {status.state}{reason}; expected a finished run, so train it first")
    experiment = result.experiment
    if not experiment.is_trained:
        names = ", ".join(parent.id for parent in experiment.parents) or "a run that trains"
        raise SpecError(f"{experiment.id} is of kind {experiment.kind!r} and has no weights of its own; take {names}")
    return result


def load_folder(folder: Path, *, trust_code: bool = False) -> nn.Module:
    """Build the network of an exported folder, with its weights, ready for inference on the CPU.

    Args:
        folder: folder that ``export`` has written.
        trust_code: true to run the Python code of a custom model, which lies in the folder.

    Raises:
        RecordError: the folder is not one of this suite's, is of a newer version, or its files do not fit each other.
        SpecError: it holds a custom model whose code is not trusted or not installed.
    """
    try:
        config = read_json((folder / CONFIG).read_bytes())
        ours = config.get(_PART)
        if not isinstance(ours, dict):
            raise RecordError(f"{folder / CONFIG} has no part {_PART!r}: it was not exported by this suite; use timm")
        if (version := ours["version"]) > _VERSION:
            raise RecordError(f"{folder / CONFIG} is of version {version}, expected {_VERSION}: update the suite")
        if ours["is_timms"]:
            import timm  # after suite.models, which makes torchvision importable

            return timm.create_model(f"local-dir:{folder}", pretrained=True).eval()  # type: ignore[no-any-return]
        sizes = {"num_classes": config["num_classes"], "image_size": ours["image_size"]}
        source = ours.get("model_source") and ModelSource.model_validate(ours["model_source"])
        if source and not trust_code:
            raise SpecError(
                f"{folder} holds the model {source.name}, which is none of the suite's: loading it runs its code. Read "
                f"model_source in {folder / CONFIG}, then load with trust_code=True."
            )
        network = build_model(ours["model"], **sizes, model_source=source or None, **ours["options"])
        network.load_state_dict(load_file(folder / WEIGHTS))
    except SpecError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise RecordError(f"cannot load {folder}: {str(error).splitlines()[0]}. Export the run again.") from error
    return network.eval()


def _describe(experiment: Experiment, network: nn.Module, layout: TimmLayout | None) -> dict[str, Any]:
    """The content of config.json: timm's fields, and in a part of our own how the suite builds the network."""
    info = find_info(experiment.dataset)
    mean, std = statistics(info, experiment.normalization)
    images: dict[str, Any] = {
        "num_classes": info.num_classes,
        "input_size": [3, experiment.image_size, experiment.image_size],
        "fixed_input_size": True,
        "interpolation": INTERPOLATION,
        "crop_pct": evaluation_crop(experiment),
        "crop_mode": "center",
        "mean": list(mean),
        "std": list(std),
    }
    labels = {"label_names": list(info.class_names)} if info.class_names else {}
    return {
        "architecture": layout.architecture if layout else experiment.model,
        "num_classes": info.num_classes,
        "model_args": layout.arguments if layout else {},
        "pretrained_cfg": images | labels | (layout.layers if layout else {}),
        _PART: {
            "version": _VERSION,
            "is_timms": layout is not None,
            "model": experiment.model,
            "image_size": experiment.image_size,
            "options": experiment.model_options | pruned_options(network),
            "model_source": experiment.model_source and experiment.model_source.model_dump(),
            "run": experiment.id,
        },
    }
