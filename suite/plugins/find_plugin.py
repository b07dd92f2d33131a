"""Plug-ins and custom models: from the words that name them to the objects, here alone.

    timm:NAME           a model of timm's
    FILE.py:ATTRIBUTE   of a file that stands alone: runs carry its text, not the files beside it
    MODULE:ATTRIBUTE    of a module that is installed wherever runs are trained
    NAME                an entry point of an installed distribution, in the group of its kind

Our own names win. Nothing is imported before it is asked for, and an error names the plug-in that raised it. A model
becomes a ``ModelSource`` first, which its experiments carry: a process that trains refuses another version.
"""

import importlib
import linecache
import re
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from suite.base.errors import FOREIGN_ERRORS, SpecError, unknown_name
from suite.base.frozen import Scalar
from suite.plugins.versions import find_module, find_neighbours, find_version
from suite.spec.custom_model import ModelSource, hash_source
from suite.spec.model_options import defaults_in

Kind = Literal["models", "suites", "papers", "image_sets"]
_GROUP = "convolutional_prior"
_FORMS = "expected timm:NAME, FILE.py:ATTRIBUTE, MODULE:ATTRIBUTE or the name of an installed plug-in"


def list_plugins(kind: Kind) -> list[str]:
    """Names of all installed plug-ins of a kind, sorted; none of them is imported."""
    return sorted({point.name for point in entry_points(group=f"{_GROUP}.{kind}")})


def load_plugin(kind: Kind, name: str) -> Any:
    """Load a plug-in: ``FILE.py:ATTRIBUTE``, ``MODULE:ATTRIBUTE`` or the name of an entry point in the group of its
    kind.

    SpecError where there is no such file, module, attribute or plug-in, or it breaks when it is imported.
    """
    place, separator, attribute = name.rpartition(":")
    if not separator:
        return _guarded(name, _find_entry_point(kind, name).load)

    def load() -> Any:
        is_file = place.endswith(".py")
        module = _make_module(_read(Path(place)), place) if is_file else importlib.import_module(place)
        return _attribute(module, attribute, name)

    return _guarded(name, load)


def find_model(words: str) -> ModelSource:
    """Find where a custom model comes from, and which version is there; imports no model.

    SpecError where it is not there, or has neither a version nor a source that could be hashed.
    """
    place, separator, attribute = words.rpartition(":")
    if not separator:
        point = _find_entry_point("models", words)
        version = _guarded(words, lambda: find_version(point.module, point.dist))
        return ModelSource(kind="entry_point", name=words, version=version)
    if not place or not attribute:
        raise _nothing_named(place) if place.endswith(".py") else SpecError(f"model {words!r}: {_FORMS}")
    if place == "timm":
        return ModelSource(kind="timm", name=attribute, version=find_version("timm", distribution("timm")))
    if place.endswith(".py"):
        text = _read(Path(place))
        return ModelSource(kind="file", name=attribute, version=hash_source(text.encode()), code=text)
    return ModelSource(kind="module", name=words, version=_guarded(words, lambda: find_version(place)))


def read_defaults(source: ModelSource) -> Mapping[str, Scalar | None]:
    """Read, and do not import, the defaults of a model's options; none of timm's, whose text does not tell them."""
    if source.kind in ("file", "timm"):
        return defaults_in(source.code, source.name)
    words = _find_entry_point("models", source.name).value if source.kind == "entry_point" else source.name
    module, _, attribute = words.partition(":")
    origin = Path(find_module(module).origin or "")
    return defaults_in(_read(origin), attribute) if origin.suffix == ".py" else {}


def load_builder(source: ModelSource) -> Callable[..., Any]:
    """Load the class or function that builds a model, of the version that was planned.

    SpecError where it is not installed here, is of another version, breaks when it is imported, or is no callable.
    """
    check_version(source)
    if source.kind == "file":
        name = f"{source.name} of the custom model's file"
        found = _guarded(name, lambda: _attribute(_make_module_alone(source.code, name), source.name, name))
    else:
        found = load_plugin("models", source.name)
    if not callable(found):
        raise SpecError(
            f"model {source.name} is {type(found).__name__} {found!r:.60}; expected a class or function that takes "
            "num_classes and image_size by keyword and returns an nn.Module"
        )
    return found  # type: ignore[no-any-return]


def check_version(source: ModelSource) -> None:
    """Raise SpecError where another version of a model, or none, is installed; a file's text is its own version."""
    if source.kind == "file":
        return
    try:
        found = find_model(f"timm:{source.name}" if source.kind == "timm" else source.name)
    except SpecError as error:
        raise SpecError(f"{error} The run needs {source.version}: install that wherever runs are trained.") from error
    if found.version != source.version:
        raise SpecError(
            f"model {source.name} is {found.version} here, expected {source.version}, with which the run was planned. "
            "Install that version, or start the grid again: another version is another cell."
        )


def _find_entry_point(kind: Kind, name: str) -> EntryPoint:
    points = [point for point in entry_points(group=f"{_GROUP}.{kind}") if point.name == name]
    if not points:
        if name.endswith(".py") or Path(f"{name}.py").is_file():
            raise _nothing_named(f"{name.removesuffix('.py')}.py")
        known = ", ".join(list_plugins(kind)) or "none"
        raise SpecError(f"there is no plug-in {name!r} among {kind}: {_FORMS}; installed in {_GROUP}.{kind}: {known}.")
    if len({point.value for point in points}) > 1:
        owners = ", ".join(sorted(point.dist.name if point.dist else "an unknown distribution" for point in points))
        raise SpecError(f"{name!r} is a plug-in of {owners}: uninstall all but one, or name it as MODULE:ATTRIBUTE")
    return points[0]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} cannot be read, and so not be hashed: {error}. Expected a Python file.") from error


def _nothing_named(path: str) -> SpecError:
    """The error for a file without the name of what in it is meant; the file is not imported."""
    found = re.findall(r"^(?:class|def) ([a-z]\w*)|^([a-z]\w*)\s*=", _read(Path(path)), re.MULTILINE | re.IGNORECASE)
    names = ", ".join(f"{path}:{defined or assigned}" for defined, assigned in found)
    return SpecError(f"{path} is a file, and a name in it is missing: expected {names or 'a class or function in it'}")


def _make_module(text: str, path: str = "") -> ModuleType:
    """A module of a file's text, under a name of its own: another text is another module."""
    name = f"custom_model_{hash_source(text.encode())[7:23]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = path or f"<{name}.py>"
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(keepends=True), module.__file__)
    sys.modules[name] = module  # dataclasses and pickle look their own module up
    try:
        exec(compile(text, module.__file__, "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _make_module_alone(text: str, name: str) -> ModuleType:
    """A module of a file that stands alone: whatever it imports is installed, and does not lie beside it."""
    before = set(sys.modules)
    module = _make_module(text)
    if neighbours := find_neighbours(text, set(sys.modules) - before - {module.__name__}):
        del sys.modules[module.__name__]
        raise SpecError(
            f"{name} imports {', '.join(neighbours)}, which nobody has installed: runs carry the file alone, and would "
            "not notice its edits. Put all of it in one file, or install it as a package."
        )
    return module


def _attribute(module: ModuleType, attribute: str, name: str) -> Any:
    if not hasattr(module, attribute):
        public = [known for known in vars(module) if not known.startswith("_")]
        raise unknown_name(f"attribute of {name.rpartition(':')[0] or 'the file'}", attribute, public)
    return getattr(module, attribute)


def _guarded(name: str, load: Callable[[], Any]) -> Any:
    """Load others' code; an error in it becomes a ``SpecError`` with its name."""
    try:
        return load()
    except SpecError:
        raise
    except PackageNotFoundError as error:
        raise SpecError(f"{name} needs {error}, which is not installed: install it") from error
    except FOREIGN_ERRORS as error:
        cure = "A file stands alone: what it imports must be installed, or be in the same file."
        raise SpecError(
            f"{name} breaks when it is imported: {type(error).__name__}: {error}. "
            + (cure if isinstance(error, ImportError) else "Correct it, and try it with --check.")
        ) from error
