"""The operations of models that were counted before: shipped with the package, or kept on this disk. No torch.

``python -m launchers.count_models`` writes ``flops.json``, which holds for the models' source that it was counted from;
of any other nothing is found in it. Who counts another model, ``suite.models.flops``, keeps its count on disk. Files
that cannot be read or written count as not there.
"""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from suite.base.errors import RunError
from suite.base.files import cache_folder, write_atomically
from suite.base.reading import read_json
from suite.spec.model_options import digest_of_sources, options_that_matter

PATH = Path(__file__).with_name("flops.json")

Counts = Mapping[str, tuple[int, int]]
"""(total, linear) operations of one image's forward pass, by the key of the model."""


@dataclass(frozen=True)
class Flops:
    """The operations of one image's forward pass, 2 per multiply-add, of matrix products and convolutions only.

    ``linear`` leaves out attention maps and their products with the values: the convention that fits the papers.
    """

    total: int
    linear: int


def find_flops(model: str, *, num_classes: int, image_size: int, **options: Any) -> Flops | None:
    """Find the count of a model; None if it is not known."""
    if shipped := read_shipped().get(key_of(model, num_classes, image_size, options)):
        return Flops(*shipped)
    try:
        return _read(_path(model, num_classes, image_size, options))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def keep_flops(flops: Flops, model: str, *, num_classes: int, image_size: int, **options: Any) -> None:
    """Keep a count on disk, where there is a place to write.

    Args:
        model, num_classes, image_size, options: arguments of ``find_flops``.
    """
    path = _path(model, num_classes, image_size, options)
    with contextlib.suppress(OSError, RunError):  # nowhere to write: it is counted again
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"model": model, **asdict(flops)}).encode())


@lru_cache
def _read(path: Path) -> Flops:
    kept = read_json(path.read_bytes())
    found = Flops(total=kept["total"], linear=kept["linear"])
    if not all(isinstance(number, int) and number > 0 for number in asdict(found).values()):
        raise ValueError(f"{path} holds {found}")
    return found


def _path(model: str, num_classes: int, image_size: int, options: Mapping[str, Any]) -> Path:
    known = [model, num_classes, image_size, options_that_matter(model, options), _versions()]
    text = json.dumps(known, default=str)  # a model that is none of ours counts by its source
    return cache_folder("suite-flops") / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


@lru_cache
def _versions() -> tuple[str, ...]:
    """List what else a count depends on: the libraries, and the models' own source."""
    return version("torch"), version("timm"), digest_of_sources()


def key_of(model: str, num_classes: int, image_size: int, options: Mapping[str, Any]) -> str:
    """Return the key of a model's count: all that the count depends on, but the model's source.

    Args:
        model, num_classes, image_size, options: arguments of ``find_flops``.
    """
    return json.dumps([model, num_classes, image_size, dict(options_that_matter(model, options))], default=str)


@lru_cache
def read_shipped() -> Counts:
    """Counts by ``key_of``; none where the models' source has changed since, or the file cannot be read."""
    try:
        shipped = json.loads(PATH.read_bytes())
        if shipped["sources_sha256"] != digest_of_sources():
            return {}
        return {key: (total, linear) for key, (total, linear) in shipped["counts"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def write_shipped(counts: Counts) -> None:
    """Write the package's file, one model a line."""
    lines = [f"  {json.dumps(key)}: {json.dumps(list(pair))}" for key, pair in sorted(counts.items())]
    text = ",\n".join(lines)
    write_atomically(
        PATH, f'{{\n "sources_sha256": "{digest_of_sources()}",\n "counts": {{\n{text}\n }}\n}}\n'.encode()
    )
