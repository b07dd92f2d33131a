"""Random numbers that depend only on (seed, purpose, epoch, sample): never on workers, ranks or restarts.

A counter-based generator makes this possible: no state to carry, each number is a function of its counter.
The loaders take from here the order of an epoch, ``augment`` the parameters of each sample.
"""

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Words = TypeVar("Words", NDArray[Any], "Tensor")

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF


class Purpose(IntEnum):
    """Uses of random numbers, no two of which share any. Values are part of the stream: never renumber."""

    ORDER = 0
    CROP = 1
    FLIP = 2
    RESIZED_CROP = 3
    RAND_AUGMENT = 4
    COLOR_JITTER = 5
    ERASING = 6
    ERASING_NOISE = 7
    MIXING = 8
    INTERPOLATION = 9
    SHARE = 10
    SHUFFLE = 11


class Samples(NamedTuple):
    """Which augmented samples: each field (B,) int64. ``repeat`` tells the copies of a sample within one epoch apart,
    where augmentation is repeated; it starts at 0."""

    epoch: NDArray[np.int64]
    index: NDArray[np.int64]  # type: ignore[assignment]  # hides tuple's method of this name
    repeat: NDArray[np.int64]


def philox(counter: tuple[Words, Words, Words, Words], key: tuple[int, int]) -> tuple[Words, Words, Words, Words]:
    """Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), over many counters at once.

    The same words from NumPy and from torch on any device: a product that wraps to a negative int64 has the right
    bits, and the mask takes off those that the shift fills in. All words are below 2**32; those of the counter are
    uint64 arrays or int64 tensors of shapes that broadcast, to the shape of the four random ones.
    """
    a, b, c, d = counter
    key_0, key_1 = key
    for _ in range(10):
        product_0, product_1 = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = ((product_1 >> 32) & _MASK) ^ b ^ key_0, product_1 & _MASK
        c, d = ((product_0 >> 32) & _MASK) ^ d ^ key_1, product_0 & _MASK
        key_0, key_1 = (key_0 + _KEY_STEPS[0]) & _MASK, (key_1 + _KEY_STEPS[1]) & _MASK
    return a, b, c, d


def random_words(seed: int, purpose: Purpose, samples: Samples, num: int = 4) -> NDArray[np.uint64]:
    """Draw random 32-bit words for each sample, (B, num): counter (index, epoch, repeat, block), four words per block.

    Args:
        seed, purpose: the two halves of the key.
        samples, num: B samples, and the number of words for each.
    """
    epoch, index, repeat = (field.astype(np.uint64)[:, None] for field in samples)
    blocks = np.arange(-(-num // 4), dtype=np.uint64)[None]
    words = np.stack(philox((index, epoch, repeat, blocks), (seed, int(purpose))), axis=-1)
    return words.reshape(len(words), -1)[:, :num]


def uniforms(seed: int, purpose: Purpose, samples: Samples, num: int = 4) -> NDArray[np.float64]:
    """Draw uniform numbers in [0, 1) for each sample, (B, num); fewer of them are the first of more.

    Args:
        seed, purpose, samples, num: the arguments of ``random_words``.
    """
    return random_words(seed, purpose, samples, num) / 2.0**32


def random_order(seed: int, purpose: Purpose, num: int, epoch: int = 0) -> NDArray[np.int64]:
    """A permutation of range(num): its numbers sorted by a random 64-bit key of each.

    Args:
        seed, purpose: the two halves of the generator's key.
        num, epoch: how many numbers are permuted, and for which epoch; 0 where the order serves all of them.
    """
    everything = Samples(np.array([epoch]), np.arange(num), np.zeros(1, dtype=np.int64))
    words = random_words(seed, purpose, everything, 2)
    return np.argsort((words[:, 0] << 32) | words[:, 1], kind="stable")
