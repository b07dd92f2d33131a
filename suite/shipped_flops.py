"""The operations of every suite's models, as data in the package: counting them takes half a minute. No torch.

``python -m launchers.count_models`` writes ``flops.json``; it holds for the models' source that it was counted from, of
any other nothing is found here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from suite.files import write_atomically
from suite.model_options import digest_of_sources, options_that_matter

PATH = Path(__file__).with_name("flops.json")

Counts = Mapping[str, tuple[int, int]]
"""(total, linear) operations of one image's forward pass, by the key of the model."""


def key_of(model: str, num_classes: int, image_size: int, options: Mapping[str, Any]) -> str:
    """Name a model by all that its count depends on, but its source.

    Args:
        model: a name of ours, or a challenger's.
        num_classes: of the data set.
        image_size: height and width in pixels.
        options: of the model.
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
