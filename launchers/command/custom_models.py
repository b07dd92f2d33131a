"""Custom models as ``--challenger`` and ``--check`` name them: NAME=MODEL [OPTION=VALUE ...].

They are tried before they are trained; ``--check`` also shows the cost beside the papers' models.
"""

import contextlib
import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Column, Table

from imagesets.prepared import find_info
from launchers.command.options import GridOptions
from launchers.core.cost_estimate import count_flops
from leaderboards.schemas.answers import Checked, CheckFinding, ModelCost
from suite.base.errors import SpecError, check_name
from suite.base.frozen import Scalar
from suite.cost.costs import options_to_count
from suite.papers import get_suite
from suite.plugins.find_plugin import find_model, read_defaults
from suite.spec.custom_entries import with_custom_models
from suite.spec.custom_model import NAME, CustomModel
from suite.spec.experiment import Experiment
from suite.spec.model_options import read_options, without_defaults
from suite.spec.recipe import Recipe

_SUITE = "sample_efficiency"  # where none is named
_LEGEND = """\
MFLOP: of one image's forward pass. MB: weights, gradients and AdamW's moments,
in fp32; with a batch of the recipe's size also what its backward pass needs."""
_RECIPE = "recipe."
_OF_RECIPE = tuple(name for name in Recipe.model_fields if name != "name")
_NOT_OPTIONS = {
    "drop_path": "it is the recipe's: recipe.drop_path=...",
    "num_classes": "the image set says it",
    "image_size": "the suite says it",
}


def parse_custom_model(words: Sequence[str]) -> CustomModel:
    """Read one custom model, and find which version of its model is there; the model itself is not imported.

    Raises:
        SpecError: A word has none of these forms, a name cannot be a column's, or a model is not there.
    """
    name, separator, model = words[0].partition("=")
    if not separator or not model:
        raise SpecError(f"--challenger {words[0]!r}: expected NAME=MODEL first, such as mine=my_vit.py:MyViT")
    if not re.fullmatch(NAME, name):
        raise SpecError(f"custom model {name!r}: expected letters, digits and _, as columns are called by the name")
    options: dict[str, Scalar] = {}
    recipe: dict[str, Scalar] = {}
    for word in words[1:]:
        key, separator, value = word.partition("=")
        if not separator or not key:
            raise SpecError(f"custom model {name}: found {word!r}, expected OPTION=VALUE or recipe.FIELD=VALUE")
        if key.startswith(_RECIPE):
            check_name("field of the recipe", key.removeprefix(_RECIPE), _OF_RECIPE)
            recipe[key.removeprefix(_RECIPE)] = _scalar(value)
        elif key in _NOT_OPTIONS:
            raise SpecError(f"custom model {name}: {key} is no option of a model here: {_NOT_OPTIONS[key]}")
        else:
            options[key] = _scalar(value)
    source = None if model in read_options() else find_model(model)
    options = without_defaults(options, read_defaults(source) if source else read_options()[model].defaults)
    return CustomModel(name=name, words=model, source=source, options=options, recipe=recipe)


def _scalar(text: str) -> Scalar:
    """``true``, ``false``, an integer, a number, or else the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def check(options: GridOptions, console: Console) -> Checked:
    """Try the custom model at every size of a suite, and print what it costs where it could be trained."""
    from suite.models.custom import takes_drop_path
    from suite.training.trial import try_experiment  # imports torch

    custom_model = parse_custom_model(options.check)
    suite = with_custom_models(get_suite(options.suite or _SUITE), [custom_model], options.profile_name)
    profile = suite.profile(options.profile_name)
    console.print(f"{custom_model.describe()}: {suite.name}, profile {options.profile_name}", soft_wrap=True)
    is_sound, findings, costs = True, list[CheckFinding](), list[ModelCost]()
    own, papers = (
        _distinct_networks(e for entry in profile.entries if bool(entry.beside) == is_own for e in entry.candidates)
        for is_own in (True, False)
    )
    for experiment in own:
        for finding in try_experiment(experiment, _count_classes(experiment, options)):
            said = f"no: {finding.problem}. To do: {finding.cure}" if finding.problem else "yes"
            console.print(f"  {finding.question}: {said}", soft_wrap=True, style="red" if finding.problem else "")
            is_sound = is_sound and not finding.problem
            findings.append(CheckFinding(experiment=experiment.id, **asdict(finding)))
        if is_sound:
            rate, source = experiment.recipe.drop_path, experiment.model_source
            if rate and source is not None and not takes_drop_path(source):
                console.print(f"  the recipe's drop_path of {rate} has no effect: the model takes no such option")
    if is_sound:
        costs = [_cost(experiment, options) for experiment in (*own, *papers)]
        console.print(_table(costs))
        console.print(_LEGEND)
    return Checked(
        suite=suite.name, profile=options.profile_name, model=custom_model.describe(), is_sound=is_sound,
        findings=findings, costs=costs,
    )  # fmt: skip


def _cost(experiment: Experiment, options: GridOptions) -> ModelCost:
    from suite.training.start import fresh_network
    from suite.training.trial import measure_size

    num_classes, side, batch = _count_classes(experiment, options), experiment.image_size, experiment.recipe.batch_size
    flops = count_flops(experiment.model, num_classes=num_classes, image_size=side, **options_to_count(experiment))
    device = "meta" if experiment.model_source is None else "cpu"  # ours: nothing is computed there
    size = measure_size(functools.partial(fresh_network, experiment, num_classes), side, device)
    return ModelCost(
        model=experiment.model,
        pixels=side,
        classes=num_classes,
        parameters=size.num_parameters,
        flops=flops.total,
        bytes_of_model=size.bytes_of_model,
        batch=batch,
        bytes_with_batch=size.bytes_of_batch(batch),
    )


def _table(costs: Sequence[ModelCost]) -> Table:
    model = Column("model", overflow="fold", min_width=12)  # a name is broken, never cut
    titles = ("pixels", "classes", "parameters", "MFLOP", "MB", "batch", "MB\nwith it")
    numbers = (Column(title, justify="right", no_wrap=True) for title in titles)
    table = Table(model, *numbers, box=box.SIMPLE_HEAD, pad_edge=False)
    for cost in costs:
        sizes = (cost.flops, cost.bytes_of_model, cost.bytes_with_batch)
        mflop, alone, with_batch = (f"{size / 1e6:,.1f}" for size in sizes)
        counts = (str(cost.pixels), str(cost.classes), f"{cost.parameters:,}")
        table.add_row(cost.model, *counts, mflop, alone, str(cost.batch), with_batch)
    return table


def _distinct_networks(experiments: Iterable[Experiment]) -> list[Experiment]:
    """The first experiment that trains each network: a model in its version, with its options, at its sizes."""
    found: dict[tuple[object, ...], Experiment] = {}
    for e in experiments:
        if e.is_trained:
            found.setdefault((e.model, str(e.model_source), repr(e.model_options), e.image_size, e.dataset), e)
    return list(found.values())


def _count_classes(experiment: Experiment, options: GridOptions) -> int:
    """Count the classes of its image set."""
    return find_info(experiment.dataset, options.data_dir, options.loader).num_classes


def refuse_broken(experiments: Iterable[Experiment], options: GridOptions) -> None:
    """Try each custom model once, before anything is trained; a SpecError, with the cure, where one cannot be."""
    for experiment in _distinct_networks(e for e in experiments if e.model_source is not None):
        from suite.training.trial import try_experiment  # imports torch

        *_, last = try_experiment(experiment, _count_classes(experiment, options))
        if last.problem:
            raise SpecError(f"{experiment.model}: not so: {last.question}: {last.problem}. To do: {last.cure}.")
