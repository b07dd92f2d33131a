"""Which colour and geometry operations a sample gets, and how strongly: RandAugment and colour jitter.

Both give ``Operations``, which ``augment.operations`` carries out. Names, ranges and draws' distributions are those of
timm's auto_augment.py, which follows RandAugment (arXiv:1909.13719).
"""

import re
from enum import IntEnum
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from imagesets.randomness import Purpose, Samples, uniforms
from suite.base.errors import SpecError

Array = NDArray[np.float64]


class Op(IntEnum):
    """timm's operations in its order, so that a drawn number names one. Part of the stream: never renumber."""

    NONE = -1
    AUTO_CONTRAST = 0
    EQUALIZE = 1
    INVERT = 2
    ROTATE = 3
    POSTERIZE = 4
    SOLARIZE = 5
    SOLARIZE_ADD = 6
    COLOR = 7
    CONTRAST = 8
    BRIGHTNESS = 9
    SHARPNESS = 10
    SHEAR_X = 11
    SHEAR_Y = 12
    TRANSLATE_X = 13
    TRANSLATE_Y = 14


NUM_OPS = len(Op) - 1


class Operations(NamedTuple):
    """Operations for each image, one column after another. ``op`` is (B, L) int64 of ``Op``. ``argument`` is (B, L):
    degrees, bits kept, threshold, addend, blending factor, slope, or share of the side, as the operation has it."""

    op: NDArray[np.int64]
    argument: Array


class RandAugment(NamedTuple):
    """timm's notation, read; the defaults are timm's too."""

    magnitude: int = 10
    num_layers: int = 2
    probability: float = 0.5
    magnitude_std: float = 0.0
    increasing: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a policy such as ``rand-m9-mstd0.5-inc1``; SpecError if it has a part that is not understood."""
        name, *parts = text.split("-")
        fields: dict[str, float] = {}
        matches = {part: re.fullmatch(r"(mstd|p)(\d+(?:\.\d+)?)|(m|n)(\d+)|(inc)([01])", part) for part in parts}
        if wrong := [name] * (name != "rand") + [part for part, match in matches.items() if match is None]:
            raise SpecError(
                f"rand_augment {text!r} has the part {wrong[0]!r}; understood of timm's notation are rand, m<int> "
                "(magnitude), n<int> (layers), p<float> (probability of each), mstd<float> and inc<0 or 1>, as in "
                "'rand-m9-mstd0.5-inc1'"
            )
        for match in filter(None, matches.values()):
            key, value = (group for group in match.groups() if group is not None)
            fields[_FIELDS[key]] = float(value) if key in ("mstd", "p") else int(value)
        return cls(**{**fields, "increasing": bool(fields.get("increasing"))})  # type: ignore[arg-type]


_FIELDS = {"m": "magnitude", "n": "num_layers", "p": "probability", "mstd": "magnitude_std", "inc": "increasing"}


def rand_augment(seed: int, samples: Samples, policy: RandAugment) -> Operations:
    """Each layer's operation, drawn evenly with replacement, at a magnitude of its own (L = the policy's layers)."""
    draws = uniforms(seed, Purpose.RAND_AUGMENT, samples, 4 * policy.num_layers).reshape(-1, policy.num_layers, 4)
    which, applied, level, side = np.moveaxis(draws, -1, 0)
    op = (which * NUM_OPS).astype(np.int64)
    normal = ndtri(level + 2.0**-33)  # the middle of a draw's cell: never 0, whose quantile is infinite
    magnitude = np.clip(policy.magnitude + policy.magnitude_std * normal, 0, 10)
    argument = to_argument(op, magnitude, np.where(side < 0.5, -1.0, 1.0), policy.increasing)
    return Operations(np.where(applied < policy.probability, op, Op.NONE), argument)


def to_argument(op: NDArray[np.int64], magnitude: Array, sign: Array, increasing: bool) -> Array:
    """Compute the argument of each operation from its magnitude (timm's LEVEL_TO_ARG).

    Args:
        op, magnitude, sign: (B, L) of ``Op``, of 0..10, and of 1 or -1, the direction of what has one.
        increasing: makes a higher magnitude a stronger change also where it otherwise is a larger value: bits kept,
            threshold, and blending factors, which it moves away from 1.
    """
    level = magnitude / 10
    nothing, bits, threshold = np.zeros_like(level), np.floor(level * 4), np.floor(level * 256)
    factor = level * 1.8 + 0.1
    if increasing:
        bits, threshold = 4 - bits, 256 - threshold
        factor = np.maximum(0.1, 1 + sign * (level * 0.9))
    geometry = [sign * (level * most) for most in (0.3, 0.3, 0.45, 0.45)]
    added = np.floor(level * 110)
    return np.choose(
        op, [nothing, nothing, nothing, sign * (level * 30), bits, threshold, added, *[factor] * 4, *geometry]
    )


_JITTERED = np.array([Op.BRIGHTNESS, Op.CONTRAST, Op.COLOR])


def color_jitter(seed: int, samples: Samples, strength: float) -> Operations:
    """Brightness, contrast and saturation in random order (torchvision's ColorJitter(s, s, s); L = 3). Factors are
    uniform in [max(0, 1 - strength), 1 + strength]."""
    draws = uniforms(seed, Purpose.COLOR_JITTER, samples, 6)
    low, high = max(0.0, 1 - strength), 1 + strength
    return Operations(_JITTERED[np.argsort(draws[:, 3:], axis=1)], low + (high - low) * draws[:, :3])
