"""``grid.py --show``: a profile as it is resolved, every field of its experiments and recipes, beside the paper's."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from launchers.core.run_names import describe
from leaderboards.schemas.answers import Shown, ShownRun
from suite.spec.experiment import Experiment
from suite.spec.profile import Profile
from suite.spec.suite import Suite

Fields = dict[str, Any]


def print_resolved(console: Console, suite: Suite, profile_name: str, experiments: Sequence[Experiment]) -> Shown:
    """Print the chosen experiments with their ids, then a table for each model and each recipe; returns all fields.

    These list all values that a field takes, ours and those of the paper's experiments in the same places.

    Args:
        profile_name: profile from which the experiments were chosen.
    """
    names = describe(experiments)
    console.print(f"{suite.name}, profile {profile_name}: {len(experiments)} runs", style="bold")
    for experiment in experiments:
        console.print(f"  {experiment.id}  {names[experiment.id]}", soft_wrap=True)
    of_paper = _match_the_paper(suite, suite.profile(profile_name))
    for name in dict.fromkeys(experiment.model for experiment in experiments):
        ours = [experiment for experiment in experiments if experiment.model == name]
        console.print(_table(f"model {name}", ours, of_paper, _model_fields))
    for name in dict.fromkeys(experiment.recipe.name for experiment in experiments):
        ours = [experiment for experiment in experiments if experiment.recipe.name == name]
        console.print(_table(f"recipe {name}", ours, of_paper, lambda e: e.recipe.model_dump(exclude={"name"})))
    papers = {name: paper.model_dump(mode="json") for name, paper in of_paper.items()}
    shown = ((e.id, names[e.id], e.model_dump(mode="json"), papers.get(e.id)) for e in experiments)
    runs = [ShownRun(id=key, name=name, experiment=ours, paper=paper) for key, name, ours, paper in shown]
    return Shown(suite=suite.name, profile=profile_name, runs=runs)


def _table(
    title: str, ours: Sequence[Experiment], of_paper: dict[str, Experiment], fields_of: Callable[[Experiment], Fields]
) -> Table:
    theirs = [of_paper[experiment.id] for experiment in ours if experiment.id in of_paper]
    columns = [_values(map(fields_of, ours)), _values(map(fields_of, theirs))]
    names = (Column(name, overflow="fold") for name in ("field", "here", "in the paper's profile"))
    table = Table(*names, box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for field in dict.fromkeys(name for column in columns for name in column):
        here, paper = (", ".join(column.get(field, ["-"])) for column in columns)
        differs = bool(theirs) and here != paper
        table.add_row(field, Text(here, "bold" if differs else ""), Text(paper, "yellow") if differs else "")
    return table


def _values(found: Iterable[Fields]) -> dict[str, list[str]]:
    """Every value of each field, in order of first appearance."""
    values: dict[str, dict[str, None]] = {}
    for fields in found:
        for name, value in fields.items():
            values.setdefault(name, {})[f"{value:g}" if isinstance(value, float) else str(value)] = None
    return {name: list(texts) for name, texts in values.items()}


def _model_fields(experiment: Experiment) -> Fields:
    nested = {"recipe", "model_options", "model_source", "kind_options", "parents", "seed"}
    parents = [parent.configuration_id for parent in experiment.parents]
    options = {**experiment.model_options, **experiment.kind_options}
    options |= {"model_source": str(experiment.model_source)} if experiment.model_source else {}
    return {**experiment.model_dump(exclude=nested), **options, **({"parents": parents} if parents else {})}


def _match_the_paper(suite: Suite, profile: Profile) -> dict[str, Experiment]:
    """By the id of ours, the experiment that fills the same place at the paper's scale, and so for what both need."""
    entries = suite.profiles["paper"].entries
    papers = {(entry.table, entry.row, column): entry for entry in entries for column in entry.columns}
    found: dict[str, Experiment] = {}
    for entry in profile.entries:
        for column in entry.columns:
            paper = papers.get((entry.table, entry.row, column))
            for ours, theirs in zip(entry.candidates, paper.candidates if paper else (), strict=False):
                found |= _pairs(ours, theirs)
    return found


def _pairs(ours: Experiment, theirs: Experiment) -> dict[str, Experiment]:
    """The two, and of what they depend on the first of each kind of model with the first of the same."""
    found = {ours.id: theirs}
    for parent in ours.parents:
        family = parent.model.partition("_")[0]  # a laptop's models are called ``..._micro``
        alike = [e for e in theirs.parents if e.kind == parent.kind and e.model.partition("_")[0] == family]
        for other in alike[:1]:
            found |= _pairs(parent, other)
    return found
