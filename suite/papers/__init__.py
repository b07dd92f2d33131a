"""One file = one question of one paper = one ``SUITE`` constant; ``get_suite`` finds it by name."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterable

from suite.base.errors import SpecError, check_name
from suite.plugins.entry_points import list_plugins, load_plugin
from suite.spec.experiment import Experiment
from suite.spec.suite import Suite


def list_suites() -> list[str]:
    """Names of all suites of ours, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get_suite(name: str) -> Suite:
    """The suite called ``name``: one of ours, a plug-in's, ``FILE.py:ATTRIBUTE`` or ``MODULE:ATTRIBUTE``.

    Raises:
        SpecError: if there is no such suite, or one that is none of ours breaks or has the name of another.
    """
    if name not in (ours := list_suites()):  # plug-ins are looked for in all that is installed, which takes a while
        if ":" in name or name.endswith(".py") or name in (plugins := list_plugins("suites")):
            return _load(name)
        check_name("suite", name, [*ours, *plugins])
    suite = importlib.import_module(f"suite.suites.{name}").SUITE
    assert isinstance(suite, Suite)
    assert suite.name == name
    return suite


def _load(name: str) -> Suite:
    suite = load_plugin("suites", name)
    if not isinstance(suite, Suite):
        raise SpecError(f"suite {name} is {type(suite).__name__}, expected a suite.tables.Suite, as in suite/suites/")
    if suite.name in list_suites():
        raise SpecError(f"suite {name} is called {suite.name!r}, as one of ours: give it a name of its own")
    return suite.model_copy(update={"source": name})


def are_shown_with_best(experiments: Iterable[Experiment]) -> bool:
    """Whether any suite shows the best accuracy of one of these on a GPU, for which it is evaluated after every epoch.

    Asked of all suites, since equal experiments have one run, whichever suite's grid trains it.
    """
    shown = _cells_shown_with_best()
    return any(experiment.arm_id in shown for experiment in experiments)


@functools.cache
def _cells_shown_with_best() -> frozenset[str]:
    profiles = [profile for name in list_suites() for profile in get_suite(name).profiles.values()]
    in_precisions = [
        profile.with_precision(precision)
        for profile in profiles
        if profile.device == "gpu"
        for precision in ("fp32", "bf16")
    ]
    return frozenset(
        candidate.arm_id
        for profile in in_precisions
        for entry in profile.entries
        if "best_top1_percent" in entry.columns.values()
        for candidate in entry.candidates
    )
