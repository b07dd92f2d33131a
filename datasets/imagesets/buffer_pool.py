"""A pool of buffers: the memory of batches that nobody holds any more serves the next ones. Used by the loader.

A batch of 64 images of 224 pixels is larger than what the C library keeps when it is freed: taken anew, its pages are
zeroed by the kernel first, which takes as long as normalizing does.
"""

import contextlib
import weakref
from collections import deque
from collections.abc import Sequence
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_MIN_POOLED_BYTES = 1 << 20  # the C library serves less as quickly
_MAX_FREE_BUFFERS = 4  # batches that are free at once: those ahead, and the one that was trained on


class BufferPool:
    """Gives tensors, and takes their memory back once the last tensor that shares it is gone. For any threads."""

    def __init__(self) -> None:
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=_MAX_FREE_BUFFERS)

    def take(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """A tensor on the CPU with undefined contents."""
        num_bytes = prod(shape) * dtype.itemsize
        memory = np.empty(0, np.uint8)
        while memory.size != num_bytes and num_bytes >= _MIN_POOLED_BYTES and self._free:
            with contextlib.suppress(IndexError):  # another thread took it
                memory = self._free.pop()  # of another size it is given up
        if memory.size != num_bytes:
            memory = np.empty(num_bytes, np.uint8)  # NumPy asks for huge pages
        lent = memory[:]  # an array of its own: the tensor holds it, and all that shares the tensor's memory does
        if num_bytes >= _MIN_POOLED_BYTES:
            weakref.finalize(lent, self._free.append, memory).atexit = False
        return torch.from_numpy(lent).view(dtype).view(*shape)
