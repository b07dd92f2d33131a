"""A result -> the model card of its network: metadata that the Hugging Face hub reads, and a page for people.

The card names what a reader needs to find the run again. No torch.
"""

import json

from huggingface_hub import EvalResult, ModelCardData

from imagesets.catalog import statistics
from imagesets.prepared import find_info
from suite.papers import get_suite, list_suites
from suite.spec.experiment import Experiment
from suite.store.results import Result

_METRICS = {"top1_percent": "top-1 accuracy, %", "top5_percent": "top-5 accuracy, %"}


def write_use(folder: str, experiment: Experiment, is_timms: bool) -> str:
    """Write the Python lines that load an exported folder's network; for a custom model, that its code is trusted."""
    if is_timms:
        place = json.dumps(f"local-dir:{folder}", ensure_ascii=False)
        return f"import timm\n\nmodel = timm.create_model({place}, pretrained=True).eval()"
    trusted = ", trust_code=True" if experiment.model_source else ""
    load = f"load_folder(Path({json.dumps(folder, ensure_ascii=False)}){trusted})"
    return f"from pathlib import Path\n\nfrom suite.export.folder import load_folder\n\nmodel = {load}"


def render_card(result: Result, is_timms: bool) -> str:
    """Write the card as Markdown behind YAML with a ``model-index``; ``is_timms``: timm reads the folder by itself."""
    experiment = result.experiment
    rows = "\n".join(f"| {name} | {value} |" for name, value in _facts(result).items())
    return (
        f"---\n{_metadata(result).to_yaml()}\n---\n\n# {experiment.id}\n\nOne run of the benchmark suite *What does a "
        "convolutional prior do for attention?*, not tuned for use: its numbers stand for one seed.\n\n"
        f"```python\n{write_use('DIR', experiment, is_timms)}\n```\n\n| | |\n|---|---|\n{rows}\n\nThe recipe:\n\n"
        f"```json\n{experiment.recipe.model_dump_json(indent=1)}\n```\n"
    )


def _metadata(result: Result) -> ModelCardData:
    experiment = result.experiment
    info = find_info(experiment.dataset)
    results = [
        EvalResult(
            task_type="image-classification",
            dataset_type=info.name,
            dataset_name=info.title,
            dataset_split="test",
            metric_type="accuracy",
            metric_name=name,
            metric_value=round(getattr(result, metric), 4),
        )
        for metric, name in _METRICS.items()
    ]
    return ModelCardData(
        model_name=experiment.id,
        eval_results=results,
        datasets=[info.name],
        metrics=["accuracy"],
        pipeline_tag="image-classification",
        library_name="timm",
        tags=["convolutional-prior", experiment.model],
    )


def _facts(result: Result) -> dict[str, str]:
    """Name what was trained, on what, by which code, and what came of it."""
    experiment = result.experiment
    info = find_info(experiment.dataset)
    mean, std = statistics(info, experiment.normalization)
    options = ", ".join(f"{name} = {value}" for name, value in experiment.model_options.items())
    size = experiment.shuffle_patch_size
    shuffled = f", shuffled: {experiment.shuffle} of {size}x{size} pixels" if size else ""
    source = f", {experiment.model_source}" if experiment.model_source else ""
    return {
        "suite": "; ".join(_find_suites(experiment)) or "none of the built-in ones",
        "model": experiment.model + source + (f" with {options}" if options else ""),
        "parameters": f"{result.num_parameters:,}",
        "kind": experiment.kind + (f", from {result.parent}" if result.parent else ""),
        "data": f"{info.title}, {experiment.train_fraction:.3g} of it: {result.num_train_images:,} images of "
        f"{experiment.image_size} pixels, less {mean} by {std}{shuffled}",
        "seed": str(experiment.seed),
        "steps, images seen": f"{result.num_steps:,}, {result.images_seen:,}",
        "top-1, top-5 accuracy": f"{result.top1_percent:.2f} %, {result.top5_percent:.2f} % of "
        f"{result.num_test_images:,} test images, by the last weights",
        "test loss": f"{result.test_loss:.4f}",
        "trained on": f"{result.num_ranks} x {result.device}, {result.images_per_s:,.0f} images/s",
        "protocol": str(result.protocol_version),
        "commit": result.commit,
        "finished": result.finished_at,
    }


def _find_suites(experiment: Experiment) -> list[str]:
    """Name the suites that train this experiment, each with its scale and how that compares with the paper's."""
    found = []
    for suite in map(get_suite, list_suites()):
        for name in (*suite.profiles, "smoke"):
            profile = suite.profile(name)
            if any(_trains(known, experiment) for known in profile.experiments()):
                scale = profile.scale_note or "the paper's scale"
                found.append(f"{suite.name} ({suite.paper}, {suite.item}), profile {name}: {scale}")
    return found


def _trains(known: Experiment, experiment: Experiment) -> bool:
    """Whether a suite's experiment is this one, or this one is a custom model that was trained as it is."""
    if experiment.model_source is not None:
        mine = {name: getattr(experiment, name) for name in ("model", "model_source", "model_options")}
        known = known.model_copy(update=mine)
    return known.configuration_id == experiment.configuration_id
