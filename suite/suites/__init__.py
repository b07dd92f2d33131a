"""One file = one question of one paper = one ``SUITE`` constant; ``get_suite`` finds it by name."""

from __future__ import annotations

import importlib
import pkgutil

from suite.errors import check_name
from suite.tables import Suite


def list_suites() -> list[str]:
    """Names of all suites, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get_suite(name: str) -> Suite:
    """The suite called ``name``.

    Raises:
        SpecError: if there is no such suite.
    """
    check_name("suite", name, list_suites())
    suite = importlib.import_module(f"suite.suites.{name}").SUITE
    assert isinstance(suite, Suite)
    assert suite.name == name
    return suite
