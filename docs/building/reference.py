"""A page of the API for each part that a caller from Python meets: its modules, whose docstrings Sphinx reads.

What carries a grid out, draws a board or fills a batch is read in its source; CONTRIBUTING.md says where each line is.
"""

import importlib
import pkgutil

PAGES = {  # name -> what it is for, and its modules
    "running": (
        "From a recipe to a finished run, and from a store of runs to tables of them. Begin with `suite.api`.",
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
        "What a suite is made of, for one of your own. Begin with `Suite`, and with `examples/my_suite.py`.",
        "suite.spec.suite",
        "suite.spec.profile",
        "suite.spec.figures",
        "suite.spec.custom_entries",
        "suite.plugins.find_plugin",
    ),
    "models": (
        "The papers' networks as modules of PyTorch. Each class names its equation, its shapes, and where it differs.",
        "suite.models.*",
    ),
    "images": (
        "Image sets: which there are, where they lie once prepared, and the batches that training sees.",
        "imagesets.catalog",
        "imagesets.prepared",
        "imagesets.loader",
        "imagesets.randomness",
    ),
    "boards": (
        "From finished runs to a board: its cells, intervals, ranks and verdicts. Begin with `make_leaderboard`.",
        "leaderboards.boards.board",
        "leaderboards.boards.cells",
        "leaderboards.significance.*",
    ),
}


def list_modules() -> list[str]:
    """Every module that is documented."""
    return [module for _, *parts in PAGES.values() for part in parts for module in _modules_of(part)]


def list_pages() -> dict[str, str]:
    """Each page's name, and its text in MyST Markdown."""
    pages = {}
    for name, (about, *parts) in PAGES.items():
        modules = [module for part in parts for module in _modules_of(part)]
        sections = [f"## {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n```" for module in modules]
        pages[name] = "\n\n".join([f"# {name.capitalize()}", about, *sections]) + "\n"
    return pages


def _modules_of(part: str) -> list[str]:
    """The module itself, or of a package with a star all of its own."""
    package, star, _ = part.partition(".*")
    if not star:
        return [part]
    found = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    return [module.name for module in found if not (module.ispkg or module.name.endswith("__main__"))]
