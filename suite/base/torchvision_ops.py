"""Lets torchvision, and so timm, be imported beside a PyTorch that torchvision's compiled part does not fit.

A CUDA build of torchvision beside a CPU build of torch cannot load its operators, and ``import torchvision``
then fails on the missing schema of ``nms``. No model here uses those operators: naming them is enough.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from suite.base.errors import SpecError

if TYPE_CHECKING:
    from torch.library import Library

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_library: Library | None = None  # kept alive: its schemas go when it goes


def make_torchvision_importable() -> None:
    """Load torchvision's operators; only where that fails, declare the schemas its import asks for.

    Raises:
        SpecError: the compiled part has a name that is not known here. Schemas that are declared although it can be
            loaded would end the process when torchvision loads it.
    """
    global _library
    spec = importlib.util.find_spec("torchvision")
    if _library is not None or spec is None or spec.origin is None:
        return
    import torch  # here alone, so that what only imports this package starts at once

    try:
        torch.ops.load_library(str(find_compiled_part(Path(spec.origin).parent)))
    except OSError:
        _library = torch.library.Library("torchvision", "DEF")
        for schema in _SCHEMAS:
            _library.define(schema)


def find_compiled_part(package: Path) -> Path:
    """Find the file of torchvision's operators: ``_C.so`` to 0.28, ``_C_stable.so`` from 0.29 on, each perhaps with a
    suffix such as ``.abi3``; SpecError if there is none."""
    found = sorted(package.glob("_C*.so"))
    if not found:
        raise SpecError(
            f"{package} has no compiled part: expected one file _C*.so, as torchvision 0.26 to 0.29 have it. Install "
            "a torchvision that fits torch: pip install 'torchvision>=0.26,<0.30'"
        )
    return found[0]
