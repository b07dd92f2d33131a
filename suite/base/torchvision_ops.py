"""Lets torchvision, and so timm, be imported beside a PyTorch that torchvision's compiled part does not fit.

A CUDA build of torchvision beside a CPU build of torch cannot load its operators, and ``import torchvision``
then fails on the missing schema of ``nms``. No model here uses those operators: naming them is enough.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.library import Library

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_library: Library | None = None  # kept alive: its schemas go when it goes


def make_torchvision_importable() -> None:
    """Load torchvision's operators; only where that fails, declare the schemas its import asks for."""
    global _library
    spec = importlib.util.find_spec("torchvision")
    if _library is not None or spec is None or spec.origin is None:
        return
    import torch  # here alone, so that what only imports this package starts at once

    try:
        torch.ops.load_library(str(Path(spec.origin).parent / "_C.so"))
    except OSError:
        _library = torch.library.Library("torchvision", "DEF")
        for schema in _SCHEMAS:
            _library.define(schema)
