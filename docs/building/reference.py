"""A page of the API for each part that a caller from Python meets: its modules, whose docstrings Sphinx reads.

What carries a grid out, draws a board or fills a batch is read in its source; CONTRIBUTING.md says where each line is.
"""

import importlib
import pkgutil

PAGES = {
    "running": (
        "suite.api",
        "suite.spec.experiment",
        "suite.spec.recipe",
        "suite.spec.resources",
        "suite.store.results",
        "suite.store.run_directory",
        "suite.store.run_store",
        "suite.store.run_status",
        "suite.store.custom_models",
        "suite.base.errors",
    ),
    "suites": (
        "suite.spec.suite",
        "suite.spec.profile",
        "suite.spec.figures",
        "suite.spec.custom_entries",
        "suite.plugins.find_plugin",
    ),
    "models": ("suite.models.*",),
    "images": ("imagesets.catalog", "imagesets.prepared", "imagesets.loader", "imagesets.randomness"),
    "boards": ("leaderboards.boards.board", "leaderboards.boards.cells", "leaderboards.significance.*"),
}


def list_modules() -> list[str]:
    """Every module that is documented."""
    return [module for parts in PAGES.values() for part in parts for module in _modules_of(part)]


def list_pages() -> dict[str, str]:
    """Each page's name, and its text in MyST Markdown."""
    return {name: _render(name, parts) for name, parts in PAGES.items()}


def _render(name: str, parts: tuple[str, ...]) -> str:
    modules = [module for part in parts for module in _modules_of(part)]
    sections = [f"## {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n```" for module in modules]
    return "\n\n".join([f"# {name.capitalize()}", *sections]) + "\n"


def _modules_of(part: str) -> list[str]:
    """The module itself, or of a package with a star all of its own."""
    package, star, _ = part.partition(".*")
    if not star:
        return [part]
    found = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    return [module.name for module in found if not (module.ispkg or module.name.endswith("__main__"))]
