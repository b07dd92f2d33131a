"""How much of a device's peak a training uses. What a run will cost is estimated in ``launchers.core.plan_cost``."""

from __future__ import annotations

from suite.cost.costs import TRAINING
from suite.cost.known_flops import Flops
from suite.spec.recipe import Recipe

# Dense products per second by the makers' data sheets, in 10^12: (fp32, which training never rounds to TF32; bf16), by
# the name that the driver gives. Another variant of a chip, or a slice of one, has another peak and another name.
_PEAK_TFLOPS = {
    "Tesla V100-SXM2-16GB": (15.7, 125.0),  # fp16, as of the next four
    "Tesla V100-SXM2-32GB": (15.7, 125.0),
    "Tesla V100-PCIE-16GB": (14.0, 112.0),
    "Tesla V100-PCIE-32GB": (14.0, 112.0),
    "Tesla T4": (8.1, 65.0),
    "NVIDIA A100-SXM4-40GB": (19.5, 312.0),
    "NVIDIA A100-SXM4-80GB": (19.5, 312.0),
    "NVIDIA A100-PCIE-40GB": (19.5, 312.0),
    "NVIDIA A100 80GB PCIe": (19.5, 312.0),
    "NVIDIA A40": (37.4, 149.7),
    "NVIDIA L40S": (91.6, 362.0),
    "NVIDIA L4": (30.3, 121.0),
    "NVIDIA H100 PCIe": (51.0, 756.0),
    "NVIDIA H100 NVL": (60.0, 835.0),
    "NVIDIA H100 80GB HBM3": (67.0, 989.0),
    "NVIDIA H200": (67.0, 989.0),
    "NVIDIA H200 NVL": (60.0, 835.0),
    "NVIDIA B200": (80.0, 2250.0),
    "NVIDIA GeForce RTX 3090": (35.6, 71.0),
    "NVIDIA GeForce RTX 4090": (82.6, 165.2),
}


def mfu_percent(flops: Flops, recipe: Recipe, images_per_s: float, device: str) -> float | None:
    """Model FLOPs utilisation: what one device trains, over its peak in the recipe's precision.

    Args:
        flops: FLOPs of the trained network, without a teacher's.
        images_per_s: images per second of one device.
        device: name of the device; None is returned if its peak is unknown.
    """
    peaks = _PEAK_TFLOPS.get(device)
    if peaks is None:
        return None
    return 100 * images_per_s * TRAINING * flops.total / (peaks[recipe.precision == "bf16"] * 1e12)
