"""A page of the API for each package: its modules, whose docstrings Sphinx reads."""

from __future__ import annotations

import importlib
import pkgutil

PACKAGES = ("suite", "imagesets", "leaderboards", "launchers")


def list_packages() -> list[str]:
    """Names of the packages and of those within, with a page each; the suites have pages of their own."""
    found = []
    for name in PACKAGES:
        package = importlib.import_module(name)
        inner = [m.name for m in pkgutil.walk_packages(package.__path__, f"{name}.") if m.ispkg]
        found += [name, *(each for each in inner if each != "suite.suites")]
    return found


def render_package(name: str) -> str:
    """MyST Markdown: the package's own docstring, then a section a module."""
    package = importlib.import_module(name)
    modules = [m.name for m in pkgutil.iter_modules(package.__path__, f"{name}.") if not m.ispkg]
    shown = [module for module in modules if not module.endswith("__main__")]
    sections = [f"# {name}", _automodule(name), *(f"## {module}\n\n{_automodule(module)}" for module in shown)]
    return "\n\n".join(sections) + "\n"


def _automodule(name: str) -> str:
    return f"```{{eval-rst}}\n.. automodule:: {name}\n```"
