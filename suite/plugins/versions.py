"""Which version of a module is there, and whether anybody has installed it; imports none of them.

Its number is that of the distribution whose installer has recorded the very files that would be imported; wherever
files may change under the same number, its version is the hash of its package's source.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, distribution, distributions
from importlib.metadata import packages_distributions as find_distributions
from pathlib import Path
from urllib.parse import unquote, urlsplit

from suite.base.commit import is_as_recorded
from suite.base.errors import SpecError
from suite.spec.custom_model import hash_source

OUR_PACKAGES = ("suite", "launchers", "leaderboards", "imagesets")


def find_version(module: str, owner: Distribution | None = None) -> str:
    """Find the version of a module: a number where that tells which files are there, else the hash of its package.

    Args:
        module: its whole name.
        owner: the distribution that it is said to belong to; None: whichever claims its package.

    Raises:
        SpecError: there is no such module, or it has neither a number nor a source.
    """
    package, spec = module.partition(".")[0], _find_module(module)
    owners = [owner] if owner else map(distribution, find_distributions().get(package, ()))
    for candidate in owners:
        if not _may_change(candidate) and _records(candidate, package, spec):
            return f"{candidate.name}=={candidate.version}"
    return _hash_package(package, module)


def _may_change(owner: Distribution) -> bool:
    """Whether its files come from a folder or a repository, where they change under the same number."""
    told = json.loads(owner.read_text("direct_url.json") or "{}")
    return "dir_info" in told or "vcs_info" in told


def _records(owner: Distribution, package: str, spec: ModuleSpec) -> bool:
    """Whether its RECORD lists the file that would be imported, and every source of the package as it is there."""
    origin = Path(spec.origin) if spec.has_location and spec.origin else None
    listed = [file for file in owner.files or () if file.parts[0].partition(".")[0] == package]
    is_listed = origin and any(
        file.name == origin.name and Path(str(file.locate())).resolve() == origin.resolve() for file in listed
    )
    return bool(is_listed) and all(is_as_recorded(file) for file in listed if file.suffix == ".py")


def _hash_package(package: str, module: str) -> str:
    """Hash every source of a package behind its name and length, so that no text can move from one into the next."""
    spec = _find_module(package)
    folders = list(map(Path, spec.submodule_search_locations or ()))
    found = {path.relative_to(folder).as_posix(): path for folder in folders for path in folder.rglob("*.py")}
    if not folders and spec.origin and spec.origin.endswith(".py"):
        found = {Path(spec.origin).name: Path(spec.origin)}
    if not found:
        raise SpecError(
            f"model {module} has no source that could be hashed, and belongs to no installed distribution, so that "
            "nobody could tell which version was trained. Install it as a distribution with a version."
        )
    contents = {name: path.read_bytes() for name, path in sorted(found.items())}
    return hash_source(b"".join(f"{name}\n{len(text)}\n".encode() + text for name, text in contents.items()))


def _find_module(module: str) -> ModuleSpec:
    """Find what would be imported, a package's module too without its package."""
    package, *parts = module.split(".")
    name, spec = package, importlib.util.find_spec(package)
    for part in parts:
        name = f"{name}.{part}"
        folders = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(name, folders) if folders else None
    if spec is None:
        raise SpecError(
            f"model {module}: there is no module {name!r} on Python's path. Install it, set PYTHONPATH, or name its "
            f"file: {package}.py:ATTRIBUTE"
        )
    return spec


# -- what a file that stands alone may import


def find_neighbours(text: str, new_modules: Iterable[str]) -> list[str]:
    """Name the packages that a file takes from folders which nobody has installed: their edits change no version.

    Args:
        text: of the file, which has been executed; what it imports later, within functions, counts too.
        new_modules: that have been imported by it, however.
    """
    names = {module.partition(".")[0] for module in (*_imported(text), *new_modules)}
    return sorted(name for name in names if not _is_installed(name))


def _imported(text: str) -> Iterable[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _is_installed(package: str) -> bool:
    """Whether it lies where packages are installed, or beside the metadata of a distribution that claims it."""
    if package in sys.stdlib_module_names or package in OUR_PACKAGES:
        return True
    folders = [Path(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())]
    folders.append(Path(sysconfig.get_path("stdlib")))
    outside = [place for place in _places(package) if not _is_below(place, folders)]
    if not outside:
        return True
    owners = [distribution(name) for name in find_distributions().get(package, ())]
    folders = [Path(str(owner.locate_file(""))) for owner in owners]
    if any(map(_may_change, owners)) or all(_is_below(place, folders) for place in outside):
        return True
    sources = list(_editable_sources())
    return all(_is_below(place, sources) for place in outside)


def _is_below(place: Path, folders: Iterable[Path]) -> bool:
    """Whether a place is in one of the folders, as it is named or as links lead to it: some installers make links."""
    return any(
        place.absolute().is_relative_to(folder.absolute()) or place.resolve().is_relative_to(folder.resolve())
        for folder in folders
    )


def _editable_sources() -> Iterator[Path]:
    """The folders that distributions were installed from as editable; few build tools record their packages' names."""
    for owner in distributions():
        told = json.loads(owner.read_text("direct_url.json") or "{}")
        if told.get("dir_info", {}).get("editable"):
            yield Path(unquote(urlsplit(told.get("url", "")).path))


def _places(package: str) -> list[Path]:
    """The file of a package, or the folders of one without; none where it is made in memory, or is not there."""
    module = sys.modules.get(package)
    spec = getattr(module, "__spec__", None) if module else importlib.util.find_spec(package)
    if spec is None:
        return []
    found = [spec.origin] if spec.has_location and spec.origin else spec.submodule_search_locations or ()
    return [Path(place) for place in found]
