"""FLOPs of models that were counted before, on disk: building a large model takes a second, reading its count none.

Beside the data's path, for cost estimates. No torch here, so that ``grid.py --list`` starts at once; who finds nothing
here counts with ``suite.models.flops``. Files that cannot be read or written count as not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from suite.errors import RunError
from suite.files import cache_folder, write_atomically

WITHOUT_EFFECT = frozenset({
    "initialization", "pseudo_input_first", "pseudo_input_following", "same_for_all_layers", "impulse_steps",
    "renormalize", "mimetic_port", "locality_strength", "conv_init", "train_gates", "train_gpsa", "bias_strength",
    "query_key_std", "center_std", "spread_std", "spatial", "drop_path", "dropout", "attention_dropout",
})  # fmt: skip
"""Options that say how a model starts or is trained, and leave the forward pass as it is."""


@dataclass(frozen=True)
class Flops:
    """Of one image's forward pass, 2 per multiply-add, matrix products and convolutions only.

    ``linear`` leaves out attention maps and their products with the values: the convention that fits the papers.
    """

    total: int
    linear: int


def find_flops(model: str, num_classes: int, image_size: int, options: Mapping[str, Any]) -> Flops | None:
    """Find the count of a model; None if it is not known.

    Args:
        model: its name.
        num_classes: of its classifier.
        image_size: side of its images, in pixels.
        options: its keyword arguments.
    """
    try:
        kept = json.loads(_path(model, num_classes, image_size, options).read_bytes())
        found = Flops(total=kept["total"], linear=kept["linear"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return found if all(isinstance(number, int) and number > 0 for number in asdict(found).values()) else None


def keep_flops(model: str, num_classes: int, image_size: int, options: Mapping[str, Any], flops: Flops) -> None:
    """Remember a count, where there is a place to write.

    Args:
        model, num_classes, image_size, options: as for ``find_flops``.
        flops: of one image's forward pass.
    """
    path = _path(model, num_classes, image_size, options)
    with contextlib.suppress(OSError, RunError):  # nowhere to write: it is counted again
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"model": model, **asdict(flops)}).encode())


def options_that_matter(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Sort the options and leave out those without effect on the count."""
    return tuple(sorted((key, value) for key, value in options.items() if key not in WITHOUT_EFFECT))


def _path(model: str, num_classes: int, image_size: int, options: Mapping[str, Any]) -> Path:
    text = json.dumps([model, num_classes, image_size, options_that_matter(options), _versions()])
    return cache_folder("suite-flops") / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


@lru_cache
def _versions() -> tuple[str, ...]:
    """List what else a count depends on: the libraries, and the models' own source."""
    sources = b"".join(path.read_bytes() for path in sorted((Path(__file__).parent / "models").glob("*.py")))
    return version("torch"), version("timm"), hashlib.sha256(sources).hexdigest()
