"""Random numbers that depend only on (seed, purpose, epoch, sample): never on workers, ranks or restarts.

A counter-based generator makes this possible: no state to carry, each number is a function of its counter.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class Purpose(IntEnum):
    """What a number is for, so that no two uses share numbers. Values are part of the stream: never renumber."""

    ORDER = 0
    CROP = 1
    FLIP = 2


def philox(counter: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint64]:
    """Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), over many counters at once.

    Args:
        counter: (N, 4), each below 2**32.
        key: two words below 2**32.

    Returns:
        (N, 4) random words below 2**32.
    """
    a, b, c, d = (counter[:, i] for i in range(4))
    key_0, key_1 = key
    for _ in range(10):
        product_0, product_1 = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = (product_1 >> _SHIFT) ^ b ^ np.uint64(key_0), product_1 & _MASK
        c, d = (product_0 >> _SHIFT) ^ d ^ np.uint64(key_1), product_0 & _MASK
        key_0, key_1 = (key_0 + _KEY_STEPS[0]) & 0xFFFFFFFF, (key_1 + _KEY_STEPS[1]) & 0xFFFFFFFF
    return np.stack([a, b, c, d], axis=1)


def random_words(
    seed: int, purpose: Purpose, epoch: NDArray[np.int64] | int, index: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Four random 32-bit words for each (epoch, index), shape (N, 4)."""
    counter = np.zeros((len(index), 4), dtype=np.uint64)
    counter[:, 0] = index
    counter[:, 1] = epoch
    return philox(counter, (seed, int(purpose)))


def uniforms(
    seed: int, purpose: Purpose, epoch: NDArray[np.int64] | int, index: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Four uniform numbers in [0, 1) for each (epoch, index), shape (N, 4)."""
    return random_words(seed, purpose, epoch, index) / 2.0**32


def epoch_order(seed: int, epoch: int, num_samples: int) -> NDArray[np.int64]:
    """The epoch's permutation of range(num_samples): samples sorted by a random 64-bit key."""
    words = random_words(seed, Purpose.ORDER, epoch, np.arange(num_samples))
    return np.argsort((words[:, 0] << _SHIFT) | words[:, 1], kind="stable")
