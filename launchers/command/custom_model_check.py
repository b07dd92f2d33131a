"""Try custom models before they are trained; ``grid.py --check NAME=MODEL`` also shows the cost beside the papers'."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from imagesets.prepared import find_info
from launchers.command.custom_model_words import parse_custom_model
from launchers.command.options import GridOptions
from launchers.core.plan_cost import count_flops
from suite.base.errors import SpecError
from suite.base.exit_codes import Exit
from suite.cost.costs import options_to_count
from suite.papers import get_suite
from suite.spec.custom_entries import with_custom_models
from suite.spec.experiment import Experiment
from suite.spec.profile import Profile

_SUITE = "sample_efficiency"  # where none is named
_MB = 1e6
_LEGEND = """\
MFLOP: of one image's forward pass. MB: weights, gradients and AdamW's moments,
in fp32; with a batch of the recipe's size also what its backward pass needs."""


def check(options: GridOptions, console: Console) -> int:
    """Try the custom model at every size of a suite; exit status 0 where it could be trained, else 1.

    Raises:
        SpecError: a model that cannot be found, or a suite or profile that there is not.
    """
    from suite.training.trial import try_experiment  # imports torch

    custom_model = parse_custom_model(options.check)
    suite = with_custom_models(get_suite(options.suite or _SUITE), [custom_model], options.profile_name)
    profile = suite.profile(options.profile_name)
    console.print(f"{custom_model.describe()}: {suite.name}, profile {options.profile_name}", soft_wrap=True)
    is_sound = True
    for experiment in _networks(profile, of_custom_model=True):
        for finding in try_experiment(experiment, _count_classes(experiment, options)):
            said = f"no: {finding.problem}. To do: {finding.cure}" if finding.problem else "yes"
            console.print(f"  {finding.question}: {said}", soft_wrap=True, style="red" if finding.problem else "")
            is_sound = is_sound and not finding.problem
        if is_sound:
            _print_drop_path(experiment, console)
    if not is_sound:
        return Exit.FAILED
    console.print(_costs(profile, options))
    console.print(_LEGEND)
    return Exit.DONE


def _networks(profile: Profile, of_custom_model: bool) -> list[Experiment]:
    """One experiment of each network that is trained, the custom model's or the papers'."""
    chosen = (e for entry in profile.entries if bool(entry.beside) == of_custom_model for e in entry.candidates)
    return _distinct_networks(experiment for experiment in chosen if experiment.is_trained)


def _print_drop_path(experiment: Experiment, console: Console) -> None:
    from suite.models.custom import takes_drop_path

    rate, source = experiment.recipe.drop_path, experiment.model_source
    if rate and source is not None and not takes_drop_path(source):
        console.print(f"  the recipe's drop_path of {rate} has no effect: the model takes no such option")


def _costs(profile: Profile, options: GridOptions) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", overflow="fold", min_width=12)  # a name is broken, never cut
    for title in ("pixels", "classes", "parameters", "MFLOP", "MB", "batch", "MB\nwith it"):
        table.add_column(title, justify="right", no_wrap=True)
    experiments = [*_networks(profile, of_custom_model=True), *_networks(profile, of_custom_model=False)]
    for line in _lines(experiments, options):
        table.add_row(*line)
    return table


def _lines(experiments: Iterable[Experiment], options: GridOptions) -> Iterator[tuple[str, ...]]:
    """Sizes of each network; ours live on the meta device, where nothing is computed."""
    from suite.training.start import fresh_network
    from suite.training.trial import measure_size

    for experiment in experiments:
        num_classes, side = _count_classes(experiment, options), experiment.image_size
        flops = count_flops(experiment.model, num_classes=num_classes, image_size=side, **options_to_count(experiment))
        device = "meta" if experiment.model_source is None else "cpu"
        size = measure_size(functools.partial(fresh_network, experiment, num_classes), side, device)
        batch_size = experiment.recipe.batch_size
        yield (
            experiment.model,
            str(side),
            str(num_classes),
            f"{size.num_parameters:,}",
            f"{flops.total / 1e6:,.1f}",
            f"{size.bytes_of_model / _MB:,.1f}",
            str(batch_size),
            f"{size.bytes_of_batch(batch_size) / _MB:,.1f}",
        )


def _distinct_networks(experiments: Iterable[Experiment]) -> list[Experiment]:
    """The first experiment of each network: of a model in its version, with its options, at its sizes."""
    found: dict[tuple[object, ...], Experiment] = {}
    for e in experiments:
        found.setdefault((e.model, str(e.model_source), repr(e.model_options), e.image_size, e.dataset), e)
    return list(found.values())


def _count_classes(experiment: Experiment, options: GridOptions) -> int:
    """Count the classes of its image set."""
    return find_info(experiment.dataset, options.data_dir, options.loader).num_classes


def refuse_broken(experiments: Iterable[Experiment], options: GridOptions) -> None:
    """Try each custom model once, before anything is trained.

    Raises:
        SpecError: A model cannot be trained; the message has the cure.
    """
    for experiment in _distinct_networks(e for e in experiments if e.model_source is not None):
        from suite.training.trial import try_experiment  # imports torch

        *_, last = try_experiment(experiment, _count_classes(experiment, options))
        if last.problem:
            raise SpecError(f"{experiment.model}: not so: {last.question}: {last.problem}. To do: {last.cure}.")
