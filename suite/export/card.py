"""A result -> the model card of its network: metadata that the Hugging Face hub reads, and a page for people.

``.eval_results/<image set>.yaml`` lists the model beside a benchmark there. The card names what a reader needs to find
the run again. No torch.
"""

import json
from pathlib import Path

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, ModelCard, ModelCardData, eval_result_entries_to_yaml

from imagesets.catalog import ImageSetInfo, statistics
from imagesets.prepared import find_info
from suite.papers import get_suite, list_suites
from suite.spec.experiment import Experiment
from suite.store.results import Result

EVAL_RESULTS = ".eval_results"  # the hub's name of the folder
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
    info = find_info(experiment.dataset)
    mean, std = statistics(info, experiment.normalization)
    options = ", ".join(f"{name} = {value}" for name, value in experiment.model_options.items())
    source = f", {experiment.model_source}" if experiment.model_source else ""
    card = ModelCard.from_template(
        _metadata(result, info),
        template_path=str(Path(__file__).with_name("card.md.j2")),
        result=result,
        experiment=experiment,
        info=info,
        mean=mean,
        std=std,
        model=experiment.model + source + (f" with {options}" if options else ""),
        suites=_find_suites(experiment),
        use=write_use("DIR", experiment, is_timms),
    )
    return f"{card.content}\n"


def render_eval_results(result: Result) -> str:
    """Write the top-1 accuracy as the hub's YAML; "" for images that the hub does not have, or that were changed."""
    experiment = result.experiment
    parquet = find_info(experiment.dataset).parquet
    if parquet is None or experiment.shuffle_patch_size:
        return ""
    entry = EvalResultEntry(
        dataset_id=parquet.hub_id,
        dataset_revision=parquet.revision,
        task_id="default",
        value=round(result.top1_percent, 4),
        date=result.finished_at,
        notes=f"top-1 accuracy in percent on {result.num_test_images:,} test images after training on "
        f"{result.num_train_images:,}, seed {experiment.seed}, protocol {result.protocol_version}",
    )
    return str(yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False))


def _metadata(result: Result, info: ImageSetInfo) -> ModelCardData:
    experiment = result.experiment
    hub_name = info.parquet.hub_id if info.parquet else info.name
    results = [
        EvalResult(
            task_type="image-classification",
            dataset_type=hub_name,
            dataset_name=info.title,
            dataset_revision=info.parquet.revision if info.parquet else None,
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
        datasets=[hub_name],
        metrics=["accuracy"],
        pipeline_tag="image-classification",
        library_name="timm",
        tags=["convolutional-prior", experiment.model],
    )


def _find_suites(experiment: Experiment) -> list[str]:
    """Name the suites that train this experiment, or others' as this custom model was trained, each with its scale and
    how that compares with the paper's."""
    of_custom = ("model", "model_source", "model_options") if experiment.model_source else ()
    mine = {name: getattr(experiment, name) for name in of_custom}
    found = []
    for suite in map(get_suite, list_suites()):
        for name in (*suite.profiles, "smoke"):
            profile = suite.profile(name)
            ids = (known.model_copy(**mine).configuration_id for known in profile.experiments())
            if experiment.configuration_id in ids:
                scale = profile.scale_note or "the paper's scale"
                found.append(f"{suite.name} ({suite.paper}, {suite.item}), profile {name}: {scale}")
    return found
