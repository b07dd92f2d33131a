"""Unpacked records -> what is wrong with them, part by part. Nothing is trained, and no model's code is run."""

import ast
import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from leaderboards.schemas.verification import CheckedPart
from suite.base.errors import RecordError, check_name
from suite.base.files import read_file, sha256_of
from suite.base.reading import describe, read_json, read_model
from suite.spec.custom_model import CustomModel
from suite.spec.experiment import with_ancestors
from suite.spec.model_options import read_options
from suite.spec.tuning import Tuning
from suite.store.custom_models import FOLDER as CUSTOM_MODELS
from suite.store.frozen_plan import FOLDER as PLANS
from suite.store.frozen_plan import plan_path, read_plan_file
from suite.store.predictions import FIRST_WITH_PREDICTIONS, NOT_COUNTED, read_predictions
from suite.store.results import Result, why_void
from suite.store.run_directory import RunDirectory
from suite.store.run_store import list_runs
from suite.store.tuning import FOLDER as TUNINGS

PARTS = {
    "result": "each result has its digest, a known form, and numbers that fit each other",
    "protocol": "each result is of this protocol",
    "identity": "each folder's id is that of its experiment and of its result",
    "model": "each model of ours is known with its options, and each custom model has its source",
    "environment": "each run's machine, commit and versions are those of its result",
    "log": "each accuracy, loss and mean over heads is the last one in the run's log, and the best is the log's",
    "predictions": "each file of predictions has its digest, and gives the accuracy",
    "maps": "each file of maps can be read, and has its digest",
    "tuning": "each file of tries has a known form",
    "plan": "each frozen plan has its digest, and each run that names a plan names one of the records",
}
_FOLDERS = {"plan": PLANS, "model": CUSTOM_MODELS, "tuning": TUNINGS}  # with files of a whole store
_MEANS = {"mean_nonlocality": "nonlocality", "mean_gate": "gates"}  # over layers and heads -> what is logged of each
_LOGGED = ("top1_percent", "best_top1_percent", "top5_percent", "test_loss", *_MEANS)
_ROUNDING = 1e-9
_NAME_OF_MODEL = re.compile(r"\w[\w.-]*", re.ASCII)  # which is part of a folder's name


def check_records(store: Path, oldest_form: int = 1) -> list[CheckedPart]:
    """Check all runs, plans and custom models of a store that packed records were unpacked to; results of forms before
    the oldest that is taken are a problem."""
    plans: set[str] = set()  # digests of those that can be read
    by_weights: dict[str, str] = {}  # the first run that has them
    found: dict[str, list[str]] = {part: [] for part in PARTS}  # all that was checked, "" where it is as it should be

    def check(part: str, name: str, find: Callable[..., str | None], *given: object) -> None:
        try:
            problem = find(*given)
        except (OSError, RecordError, ValueError) as error:
            problem = describe(error)
        if problem is not None:
            found[part].append(problem and f"{name}: {problem}".replace(f"{store}/", ""))

    for part, folder in _FOLDERS.items():
        for path in sorted((store / folder).glob("*.json")):
            check(part, path.name, _find_other_form, path, plans)
    for run in list_runs(store):
        check("result", run.id, _find_no_result, run, oldest_form)
        if not found["result"][-1]:
            result = run.read_result()
            assert result is not None
            for part, find in _FINDERS.items():
                check(part, run.id, find, run, result)
            check("plan", run.id, _find_missing_plan, result, plans)
            if (first := by_weights.setdefault(result.weights_sha256 or run.id, run.id)) != run.id:
                found["identity"][-1] = found["identity"][-1] or f"{run.id}: its weights are those of {first}"
    return [CheckedPart(part=part, num_checked=len(of), problems=tuple(filter(None, of))) for part, of in found.items()]


def _find_no_result(run: RunDirectory, oldest_form: int) -> str:
    if (result := run.read_result()) is None:
        return "it has no result.json"
    older = f"it is of form {result.format_version}, expected {oldest_form} or newer"
    return older if result.format_version < oldest_form else ""


def _find_other_form(path: Path, plans: set[str]) -> str:
    """Read a file of a whole store; the digest of a plan is added to those of the others."""
    if path.parent.name == PLANS:
        plan = read_plan_file(path)
        plans.add(plan.sha256)
        is_named = path == plan_path(path.parents[1], plan.suite, plan.profile)
        return "" if is_named else f"it is the plan of {plan.suite} in {plan.profile}"
    read_model(Tuning if path.parent.name == TUNINGS else CustomModel, read_file(path))
    return ""


def _find_other_identity(run: RunDirectory, result: Result) -> str:
    experiment = run.read_experiment()
    for one in with_ancestors([experiment]):
        if not _NAME_OF_MODEL.fullmatch(one.model):
            return f"its model is called {one.model[:40]!r}, expected letters, digits, '_', '.' and '-'"
    if run.id not in (experiment.id, experiment.old_id):
        return f"experiment.json is that of {experiment.id}"
    if result.experiment != experiment:
        return "result.json and experiment.json hold different experiments"
    if result.parent and result.parent not in {parent.id for parent in experiment.parents}:
        return f"it took over {result.parent}, which is none of its experiment's"
    return ""


def _find_unknown_model(_: RunDirectory, result: Result) -> str:
    ours = read_options()
    for one in with_ancestors([result.experiment]):
        if one.model_source is None:
            check_name("model", one.model, ours)
            for option in one.model_options:
                check_name(f"option of {one.model}", option, ours[one.model].defaults)
        elif one.model_source.kind == "file":
            try:
                ast.parse(one.model_source.code)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                return f"its source is no Python: {describe(error)}"
            if one.model_source.name not in one.model_source.code:
                return f"its source defines no {one.model_source.name}"
    return ""


def read_environment(run: RunDirectory) -> dict[str, str]:
    """Read a run's device, commit, version of torch and, where all of it was trained on one kind, kind of processor;
    ValueError where they are not recorded."""
    try:
        found = read_json(read_file(run.environment_path))
        named = {"device": found["device"], "commit": found["commit"], "torch": found["packages"]["torch"]}
        named["processor"] = "" if found.get("also_on") else found.get("processor", "")
    except (OSError, KeyError, TypeError) as error:
        raise ValueError(f"environment.json is missing or names no {error}") from error
    return {name: str(value) for name, value in named.items()}


def _find_other_environment(run: RunDirectory, result: Result) -> str:
    found = read_environment(run)
    other = [name for name in ("device", "commit") if found[name] != getattr(result, name)]
    return "; ".join(f"environment.json has {of} {found[of]}, result.json has {getattr(result, of)}" for of in other)


def _find_other_log(run: RunDirectory, result: Result) -> str | None:
    lines = run.read_metrics()
    evaluations = [line for line in lines if "top1_percent" in line]
    if not evaluations:
        return "its log holds no evaluation" if result.experiment.is_trained else None
    logged = {**evaluations[-1], "best_top1_percent": max(line["top1_percent"] for line in evaluations)}
    of_heads = {mean: list(chain(*line[name])) for mean, name in _MEANS.items() for line in lines if name in line}
    logged |= {name: fmean(values) for name, values in of_heads.items() if values}
    pairs = {name: (logged.get(name), getattr(result, name)) for name in _LOGGED if name in logged or name in _MEANS}
    other = [
        f"{name} {'nothing' if a is None else f'{a:g}'}, result.json has {'nothing' if b is None else f'{b:g}'}"
        for name, (a, b) in pairs.items()
        if a != b and (a is None or b is None or abs(a - b) > _ROUNDING)
    ]
    return f"logged are {'; '.join(other)}" if other else ""


def _find_other_predictions(run: RunDirectory, result: Result) -> str | None:
    found = read_predictions(run)
    if found is None:
        is_needed = result.format_version >= FIRST_WITH_PREDICTIONS or run.predictions_path.exists()
        return "result.json names no predictions" if is_needed else None
    if not len(found.predicted) == len(found.labels) == result.num_test_images:
        return f"{len(found.predicted)} predictions, expected {result.num_test_images}"
    if (num_skipped := int((found.predicted == NOT_COUNTED).sum())) > result.num_corrupt_images:
        return f"{num_skipped} images without one, result.json has {result.num_corrupt_images} that cannot be decoded"
    return ""


def _find_other_maps(run: RunDirectory, result: Result) -> str | None:
    if not run.maps_path.exists():
        return "maps.safetensors is missing" if result.maps_sha256 else None
    load_maps(run)
    is_same = sha256_of(run.maps_path) == result.maps_sha256
    return "" if is_same else "maps.safetensors has another SHA-256 than result.json"


def load_maps(run: RunDirectory) -> dict[str, NDArray[Any]]:
    """Load the tensors that a run has recorded; {} where it has none; RecordError where they cannot be read."""
    try:
        return load_file(run.maps_path) if run.maps_path.exists() else {}
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise RecordError(f"maps.safetensors cannot be read: {describe(error)}") from error


def _find_missing_plan(result: Result, plans: set[str]) -> str | None:
    if not (named := result.plan_sha256):
        return None
    return "" if named in plans else f"plan_sha256 is {named[:16]}..., which is no plan of the records"


_FINDERS: dict[str, Callable[[RunDirectory, Result], str | None]] = {  # None: a run that has nothing of the part
    "protocol": lambda _, result: why_void(result.protocol_version),
    "identity": _find_other_identity,
    "model": _find_unknown_model,
    "environment": _find_other_environment,
    "log": _find_other_log,
    "predictions": _find_other_predictions,
    "maps": _find_other_maps,
}
