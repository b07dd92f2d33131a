"""Sends all tensors of a batch to a device in one copy: packed into one buffer by threads ahead, unpacked as views.

A copy out of memory that is not pinned waits for the device, and each copy has costs of its own, however small: the
draws of one batch of DeiT's recipe alone would be dozens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

_ALIGNMENT = 64  # bytes: of any type of number, and of vectorized loads

Item = TypeVar("Item")


class _Place(NamedTuple):
    """Where a tensor lies in the buffer, and what it is."""

    first_byte: int
    num_bytes: int
    dtype: torch.dtype
    shape: torch.Size

    def view(self, buffer: Tensor) -> Tensor:
        return buffer.narrow(0, self.first_byte, self.num_bytes).view(self.dtype).view(self.shape)


class Packed(Generic[Item]):
    """The tensors of an item in one buffer on the CPU, and the item around them.

    Args:
        item: a tensor, or tuples and named tuples, as deep as need be, of tensors and of anything that stays as it is.
        pinned: whether the buffer is in memory that a GPU reads by itself, so that ``to`` need not wait.
    """

    def __init__(self, item: Item, pinned: bool) -> None:
        tensors = list(_tensors(item))
        room = [-(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT for tensor in tensors]
        starts = accumulate(room, initial=0)
        self._item = item
        self._places = [_Place(s, t.nbytes, t.dtype, t.shape) for s, t in zip(starts, tensors, strict=False)]
        self._buffer = torch.empty(sum(room), dtype=torch.uint8, pin_memory=pinned)
        for place, tensor in zip(self._places, tensors, strict=True):
            place.view(self._buffer).copy_(tensor)

    def to(self, device: torch.device) -> Item:
        """The item with its tensors on the device, where they are views of one buffer; pinned, without waiting."""
        moved = self._buffer.to(device, non_blocking=True)
        places = iter(self._places)
        item: Item = _replace_tensors(self._item, lambda _: next(places).view(moved))
        return item


def _tensors(item: Any) -> Iterator[Tensor]:
    if isinstance(item, Tensor):
        yield item
    elif isinstance(item, tuple):
        for part in item:
            yield from _tensors(part)


def _replace_tensors(item: Any, replace: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(item, Tensor):
        return replace(item)
    if not isinstance(item, tuple):
        return item
    parts = [_replace_tensors(part, replace) for part in item]
    return type(item)(*parts) if hasattr(item, "_fields") else tuple(parts)
