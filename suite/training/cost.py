"""How much of a device's peak a training uses. What a run will cost is estimated in ``launchers.cost``."""

from __future__ import annotations

import re

from suite.costs import TRAINING
from suite.flops_cache import Flops
from suite.spec import Recipe

# Dense matrix products per second by the makers' data sheets, in 10^12: (fp32 without TF32, bf16).
_PEAK_TFLOPS = {
    "V100": (15.7, 125.0),  # fp16
    "T4": (8.1, 65.0),  # fp16
    "A100": (19.5, 312.0),
    "A40": (37.4, 149.7),
    "L40S": (91.6, 362.0),
    "L4": (30.3, 121.0),
    "H100 PCIe": (51.0, 756.0),
    "H100": (67.0, 989.0),
    "H200": (67.0, 989.0),
    "B200": (80.0, 2250.0),
    "RTX 3090": (35.6, 71.0),
    "RTX 4090": (82.6, 165.2),
}


def mfu_percent(flops: Flops, recipe: Recipe, images_per_s: float, device: str) -> float | None:
    """Model FLOPs utilisation: what one device trains, over its peak in the recipe's precision.

    Args:
        flops: of the network that is trained, without a teacher.
        images_per_s: of one device.
        device: its name; None is returned for one whose peak is not known.
    """
    for name in sorted(_PEAK_TFLOPS, key=len, reverse=True):
        if re.search(rf"\b{name}\b", device):
            peak = _PEAK_TFLOPS[name][recipe.precision == "bf16"] * 1e12
            return 100 * images_per_s * TRAINING * flops.total / peak
    return None
