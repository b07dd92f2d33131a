"""The papers: a package each, and here the one place that finds what is in them.

    <paper>/__init__.py           PAPER, a ``suite.spec.suite.Paper``, whose entry in BibTeX is in citation.bib
    <paper>/recipes.py            how it trains, at each scale
    <paper>/claims.py             CLAIMS, what it says of numbers
    <paper>/<suite>.py            SUITE, one of its questions
    <paper>/printed_tables/*.csv  its tables, with the numbers that it prints
    <paper>/not_judged.csv        what it says of numbers that no cell can decide, and why
    <paper>/coverage.csv          each of its tables, figures and numbers, with the suite that makes it or why none does

A paper from elsewhere is such a package in an installed distribution, named by an entry point in the group
``convolutional_prior.papers``. ``shared`` holds what two papers train by. No torch.
"""

import csv
import functools
import importlib
import pkgutil
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from suite.base.errors import SpecError, check_name, unknown_name
from suite.plugins.find_plugin import list_plugins, load_plugin
from suite.spec.claims import NotJudged, PaperClaims
from suite.spec.experiment import Experiment
from suite.spec.suite import Paper, Suite

_NO_SUITES = ("recipes", "claims")  # modules of a paper's package


@functools.cache
def _packages() -> dict[str, ModuleType]:
    """Each paper's package by its name, in the order in which the papers appeared."""
    ours = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    packages = [package for package in ours if hasattr(package, "PAPER")]
    for name in list_plugins("papers"):
        package = load_plugin("papers", name)
        if not isinstance(getattr(package, "PAPER", None), Paper) or not hasattr(package, "__path__"):
            raise SpecError(f"paper {name} is {package!r:.80}; expected a package with PAPER, as in suite/papers/")
        packages.append(package)
    found: dict[str, ModuleType] = {}
    for package in sorted(packages, key=lambda package: str(package.PAPER.appeared)):
        if found.setdefault(package.PAPER.name, package) is not package:
            raise SpecError(f"two papers are called {package.PAPER.name!r}; give each a name of its own")
    return found


def list_papers() -> list[Paper]:
    """All papers, in the order in which they appeared."""
    return [package.PAPER for package in _packages().values()]


def list_claims() -> list[PaperClaims]:
    """Each paper's claims of numbers, judged or not; a paper without claims is left out."""
    return [_claims(name) for name, package in _packages().items() if "claims" in _modules_of(package)]


@functools.cache
def _claims(name: str) -> PaperClaims:
    """One paper's claims, always the same object: a verdict belongs to the paper that it is asked for."""
    claims: PaperClaims = importlib.import_module(f"{_packages()[name].__name__}.claims").CLAIMS
    lines = _read_csv(name, "not_judged.csv", ("section", "statement", "reason"))
    not_judged = (*claims.not_judged, *(NotJudged.model_validate(line) for line in lines))
    return claims.model_copy(not_judged=not_judged)


def _modules_of(package: ModuleType) -> list[str]:
    return [module.name for module in pkgutil.iter_modules(package.__path__)]


def find_table(name: str) -> Path:
    """The CSV of a paper's printed table.

    Raises:
        SpecError: if no paper has such a table.
    """
    if name not in (tables := _tables()):
        raise unknown_name("paper table", name, tables)
    return tables[name]


@functools.cache
def _tables() -> dict[str, Path]:
    folders = [folder for package in _packages().values() for folder in package.__path__]
    return {path.stem: path for folder in folders for path in Path(folder, "printed_tables").glob("*.csv")}


def read_coverage(name: str) -> list[dict[str, str]]:
    """The lines of a paper's ``coverage.csv``: kind (item or text), where, shows, here; none without such a file."""
    return _read_csv(name, "coverage.csv", ("kind", "where", "shows", "here"))


def _read_csv(name: str, file: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """The lines of a file in a paper's folder; none without such a file.

    Raises:
        SpecError: if its columns are others than these.
    """
    lines: list[dict[str, str]] = []
    for folder in _packages()[name].__path__:
        if (path := Path(folder, file)).is_file():
            reader = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
            if tuple(reader.fieldnames or ()) != columns:
                raise SpecError(f"{path} has the columns {reader.fieldnames}, expected {list(columns)}")
            lines += reader
    return lines


@functools.cache
def _homes() -> dict[str, str]:
    """The module of each suite of a paper, by the suite's name, sorted."""
    homes = {
        name: f"{package.__name__}.{name}"
        for package in _packages().values()
        for name in _modules_of(package)
        if name not in _NO_SUITES
    }
    return dict(sorted(homes.items()))


def list_suites() -> list[str]:
    """Names of all papers' suites, sorted."""
    return list(_homes())


def suite_module(name: str) -> ModuleType:
    """The module whose ``SUITE`` is the suite ``name`` of a paper; its docstring says what was decided."""
    check_name("suite", name, _homes())
    return importlib.import_module(_homes()[name])


def get_suite(name: str) -> Suite:
    """The suite called ``name``: a paper's, a plug-in's, ``FILE.py:ATTRIBUTE`` or ``MODULE:ATTRIBUTE``.

    Raises:
        SpecError: if there is no such suite, or one that is none of ours breaks or has the name of another.
    """
    if name not in (ours := list_suites()):  # plug-ins are looked for in all that is installed, which takes a while
        if ":" in name or name.endswith(".py") or name in (plugins := list_plugins("suites")):
            return _load(name)
        check_name("suite", name, [*ours, *plugins])
    suite = suite_module(name).SUITE
    assert isinstance(suite, Suite)
    assert suite.name == name
    return suite


def _load(name: str) -> Suite:
    suite = load_plugin("suites", name)
    if not isinstance(suite, Suite):
        raise SpecError(f"suite {name} is {type(suite).__name__}, expected a suite.spec.suite.Suite: see suite/papers/")
    if suite.name in list_suites():
        raise SpecError(f"suite {name} is called {suite.name!r}, as one of ours: give it a name of its own")
    return suite.model_copy(source=name)


def are_shown_with_best(experiments: Iterable[Experiment]) -> bool:
    """Whether any suite shows the best accuracy of one of these on a GPU, for which it is evaluated after every epoch.

    Asked of all suites, since equal experiments have one run, whichever suite's grid trains it.
    """
    shown = _cells_shown_with_best()
    return any(experiment.configuration_id in shown for experiment in experiments)


@functools.cache
def _cells_shown_with_best() -> frozenset[str]:
    profiles = [profile for name in list_suites() for profile in get_suite(name).profiles.values()]
    return frozenset(
        candidate.configuration_id
        for profile in profiles
        if profile.device == "gpu"
        for precision in ("fp32", "bf16")
        for entry in profile.with_precision(precision).entries
        if "best_top1_percent" in entry.columns.values()
        for candidate in entry.candidates
    )
