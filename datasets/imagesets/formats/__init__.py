"""How a storage format is looked up: a ``suite.spec.resources.StorageFormat`` -> the module here that serves it.

    stored   what the loader asks of a format        sinks   what ``prepare`` asks of it

A format is one module of that name with a constant ``FORMAT``, and its name in ``StorageFormat``. It is imported when
it is used: reading needs torch, which planning does without.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagesets.manifest import Index, Manifest, Split
from suite.spec.resources import StorageFormat

if TYPE_CHECKING:
    from imagesets.formats.sinks import Output, Sink
    from imagesets.formats.stored import StoredImages
    from imagesets.originals.samples import Original


@dataclass(frozen=True)
class Format:
    """One storage format."""

    open: Callable[[Path, Split, Index, Manifest], StoredImages]  # of one split of a prepared folder
    make_sink: Callable[[Original, Output], Sink]  # raises SpecError where an original cannot be written so
    has_jpegs: bool = True  # the quality of JPEGs says something about it
    has_shards: bool = False  # files may lie behind ``Manifest.shards_url``
    packages: tuple[str, ...] = ()  # that write it, whose versions the manifest notes


def find_format(name: StorageFormat) -> Format:
    """The format of this name."""
    found = importlib.import_module(f"{__name__}.{name}").FORMAT
    assert isinstance(found, Format), f"{__name__}.{name} has no FORMAT"
    return found
