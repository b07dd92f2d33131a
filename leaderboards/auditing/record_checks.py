"""Unpacked records -> what is wrong with them, part by part. Nothing is trained, and no model's code is run."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from leaderboards.schemas.verification import CheckedPart
from suite.base.errors import RecordError, SpecError, check_name
from suite.base.files import read_file, sha256_of
from suite.base.reading import describe, read_json
from suite.spec.experiment import Experiment, with_ancestors
from suite.spec.model_options import read_options
from suite.store.custom_models import read_custom_models
from suite.store.frozen_plan import FOLDER as PLANS
from suite.store.frozen_plan import FrozenPlan, plan_path, read_plan_file
from suite.store.predictions import FIRST_WITH_PREDICTIONS, read_predictions
from suite.store.results import Result, why_void
from suite.store.run_directory import RunDirectory
from suite.store.run_store import list_runs

PARTS = {
    "result": "each result has its digest, a known form, and numbers that fit each other",
    "protocol": "each result is of this protocol",
    "identity": "each folder's id is that of its experiment and of its result",
    "model": "each model of ours is known with its options, and each custom model has its source",
    "environment": "each run's machine, commit and versions are those of its result",
    "log": "each accuracy and loss is the last one in the run's log, and the best is the log's",
    "predictions": "each file of predictions has its digest, and gives the accuracy",
    "maps": "each file of maps has its digest",
    "plan": "each frozen plan has its digest, and planned runs that name a plan name one of the records",
}
_LOGGED = ("top1_percent", "best_top1_percent", "top5_percent", "test_loss")
_ROUNDING = 1e-9
_NAME_OF_MODEL = re.compile(r"\w[\w.-]*", re.ASCII)  # which is part of a folder's name


def check_records(store: Path) -> list[CheckedPart]:
    """Check all runs, plans and custom models of a store that packed records were unpacked to."""
    found: dict[str, list[str]] = {part: [] for part in PARTS}  # all that was checked, "" where it is as it should be
    for name, part, problem in _check_all(store):
        found[part].append(problem and f"{name}: {problem}".replace(f"{store}/", ""))
    return [CheckedPart(part=part, num_checked=len(of), problems=tuple(filter(None, of))) for part, of in found.items()]


def _check_all(store: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the name of what was checked, the part, and its problem or ""."""
    plans: dict[str, FrozenPlan] = {}
    for path in sorted((store / PLANS).glob("*.json")):
        try:
            plan = read_plan_file(path)
            plans[plan.sha256] = plan
            is_named = path == plan_path(store, plan.suite, plan.profile)
            yield path.name, "plan", "" if is_named else f"it is the plan of {plan.suite} in {plan.profile}"
        except RecordError as error:
            yield path.name, "plan", str(error)
    try:
        yield from ((model.name, "model", "") for model in read_custom_models(store))
    except RecordError as error:
        yield "custom models", "model", str(error)
    for run in list_runs(store):
        yield from ((run.id, part, problem) for part, problem in _check_run(run, plans))


def _check_run(run: RunDirectory, plans: Mapping[str, FrozenPlan]) -> Iterator[tuple[str, str]]:
    """Yield each part that was checked, with its problem or ""."""
    try:
        experiment = run.read_experiment()
        result = run.read_result()
    except RecordError as error:
        yield "result", str(error)
        return
    if result is None:
        yield "result", "it has no result.json"
        return
    yield "result", ""
    yield "protocol", why_void(result.protocol_version)
    yield "identity", _find_other_identity(run, experiment, result)
    yield "model", _find_unknown_model(experiment)
    yield "environment", _find_other_environment(run, result)
    yield from _check_log(run, result)
    is_new = result.format_version >= FIRST_WITH_PREDICTIONS
    if is_new or result.predictions_sha256 or run.predictions_path.exists():
        yield "predictions", _find_other_predictions(run, result)
    if result.maps_sha256 or run.maps_path.exists():
        is_there = run.maps_path.exists()
        right = is_there and sha256_of(run.maps_path) == result.maps_sha256
        wrong = "it has another SHA-256 than in result.json" if is_there else "it is missing"
        yield "maps", "" if right else f"maps.safetensors: {wrong}"
    # runs that suites share may be under the plan of another one, which is not here
    if result.plan_sha256 and any(_covers(plan, experiment) for plan in plans.values()):
        unknown = f"plan_sha256 is {result.plan_sha256[:16]}..., which is no plan of the records"
        yield "plan", "" if result.plan_sha256 in plans else unknown


def _covers(plan: FrozenPlan, experiment: Experiment) -> bool:
    is_within = experiment.seed in plan.seeds or plan.until is not None
    return is_within and experiment.configuration in plan.configurations


def _find_other_identity(run: RunDirectory, experiment: Experiment, result: Result) -> str:
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


def _find_unknown_model(experiment: Experiment) -> str:
    ours = read_options()
    try:
        for one in with_ancestors([experiment]):
            if one.model_source is None:
                check_name("model", one.model, ours)
                for option in one.model_options:
                    check_name(f"option of {one.model}", option, ours[one.model].defaults)
            elif one.model_source.kind == "file":
                ast.parse(one.model_source.code)
                if one.model_source.name not in one.model_source.code:
                    return f"its source defines no {one.model_source.name}"
    except SpecError as error:
        return str(error)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"its source is no Python: {describe(error)}"
    return ""


def read_environment(run: RunDirectory) -> dict[str, str]:
    """Read a run's device, commit and version of torch; ValueError where they are not recorded."""
    try:
        found = read_json(read_file(run.environment_path))
        named = {"device": found["device"], "commit": found["commit"], "torch": found["packages"]["torch"]}
    except (OSError, KeyError, TypeError) as error:
        raise ValueError(f"environment.json is missing or names no {error}") from error
    return {name: str(value) for name, value in named.items()}


def _find_other_environment(run: RunDirectory, result: Result) -> str:
    try:
        found = read_environment(run)
    except ValueError as error:
        return str(error)
    for name in ("device", "commit"):
        if found[name] != (expected := getattr(result, name)):
            return f"environment.json has {name} {found[name]}, result.json has {expected}"
    return ""


def _check_log(run: RunDirectory, result: Result) -> Iterator[tuple[str, str]]:
    try:
        evaluations = [line for line in run.read_metrics() if "top1_percent" in line]
    except RecordError as error:
        yield "log", str(error)
        return
    if not evaluations:
        if result.experiment.is_trained:
            yield "log", "its log holds no evaluation"
        return
    logged = {**evaluations[-1], "best_top1_percent": max(line["top1_percent"] for line in evaluations)}
    pairs = {name: (logged[name], getattr(result, name)) for name in _LOGGED if name in logged}
    other = [f"{name} {a:g}, result.json has {b:g}" for name, (a, b) in pairs.items() if abs(a - b) > _ROUNDING]
    yield "log", f"logged are {'; '.join(other)}" if other else ""


def _find_other_predictions(run: RunDirectory, result: Result) -> str:
    try:
        found = read_predictions(run)
    except RecordError as error:
        return str(error)
    if found is None:
        return "result.json names no predictions"
    if not len(found.predicted) == len(found.labels) == result.num_test_images:
        return f"{len(found.predicted)} predictions, expected {result.num_test_images}"
    return ""
