"""Which version of a module is there, and whether anybody has installed it; imports none of them.

Its number is that of the distribution whose installer has recorded the very files that would be imported; wherever
files may change under the same number, its version is the hash of its package's source.
"""

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
from typing import Any
from urllib.parse import unquote, urlsplit

from suite.base.commit import is_as_recorded
from suite.base.errors import SpecError
from suite.spec.custom_model import hash_source

OUR_PACKAGES = ("suite", "launchers", "leaderboards", "imagesets")


def find_version(module: str, owner: Distribution | None = None) -> str:
    """Find the version of a module: a number where that tells which files are there, else the hash of its package.

    The module belongs to ``owner``, or to any distribution that claims its package. SpecError where there is no such
    module, or it has neither a number nor a source.
    """
    package, spec = module.partition(".")[0], find_module(module)
    for candidate in [owner] if owner else _owners(package):
        if not {"dir_info", "vcs_info"} & _direct_url(candidate).keys() and _records(candidate, package, spec):
            return f"{candidate.name}=={candidate.version}"
    return _hash_package(package, module)


def _owners(package: str) -> list[Distribution]:
    return list(map(distribution, find_distributions().get(package, ())))


def _direct_url(owner: Distribution) -> dict[str, Any]:
    """Where a distribution was installed from; in a folder or a repository files change under the same number."""
    found: dict[str, Any] = json.loads(owner.read_text("direct_url.json") or "{}")
    return found


def _records(owner: Distribution, package: str, spec: ModuleSpec) -> bool:
    """Whether its RECORD lists the file that would be imported, and every source of the package as it is there."""
    origin = Path(spec.origin or "").resolve()
    listed = [file for file in owner.files or () if file.parts[0].partition(".")[0] == package]
    return any(Path(str(file.locate())).resolve() == origin for file in listed) and all(
        is_as_recorded(file) for file in listed if file.suffix == ".py"
    )


def _hash_package(package: str, module: str) -> str:
    """Hash every source of a package behind its name and length, so that no text can move from one into the next."""
    spec = find_module(package)
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


def find_module(module: str) -> ModuleSpec:
    """Find what would be imported, a package's module too without its package; SpecError where there is none."""
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


def find_neighbours(text: str, new_modules: Iterable[str]) -> list[str]:
    """Name the packages that a file imports and nobody has installed: their edits change no version.

    The file's ``text`` has imported ``new_modules`` as it was executed; imports within its functions count too.
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
    """Whether a package lies where packages are installed, or where a distribution says that it lies."""
    if package in sys.stdlib_module_names or package in OUR_PACKAGES:
        return True
    folders = [*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("stdlib")]
    outside = [place for place in _places(package) if not _is_below(place, map(Path, folders))]
    if not outside:  # the usual case, which asks no distribution
        return True
    others = [*(Path(str(owner.locate_file(""))) for owner in _owners(package)), *_editable_sources()]
    return all(_is_below(place, others) for place in outside)


def _is_below(place: Path, folders: Iterable[Path]) -> bool:
    """Whether a place is in one of the folders, as it is named or as links lead to it: some installers make links."""
    return any(
        place.absolute().is_relative_to(folder.absolute()) or place.resolve().is_relative_to(folder.resolve())
        for folder in folders
    )


def _editable_sources() -> Iterator[Path]:
    """The folders of editable installations; few build tools record which packages are theirs."""
    for found in map(_direct_url, distributions()):
        if found.get("dir_info", {}).get("editable"):
            yield Path(unquote(urlsplit(found.get("url", "")).path))


def _places(package: str) -> list[Path]:
    """The file or folders of a package; none where it is made in memory, or is not there."""
    module = sys.modules.get(package)
    spec = getattr(module, "__spec__", None) if module else importlib.util.find_spec(package)
    if spec is None:
        return []
    found = [spec.origin] if spec.has_location and spec.origin else spec.submodule_search_locations or ()
    return [Path(place) for place in found]
