"""Batches prepared while earlier ones are trained on: by a thread, and on a GPU on a stream of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

_BATCHES_AHEAD = 2

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")


def prepare_ahead(prepare: Callable[[Item], Prepared], items: Iterable[Item]) -> Iterator[Prepared]:
    """``map(prepare, items)``, with the next results being prepared by one thread while one is used."""
    thread = ThreadPoolExecutor(1, "ahead")
    pending: deque[Future[Prepared]] = deque()
    try:
        for item in items:
            pending.append(thread.submit(prepare, item))
            if len(pending) > _BATCHES_AHEAD:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def feed_gpu(
    prepared: Iterator[Prepared], send: Callable[[Prepared], tuple[Tensor, ...]], device: torch.device
) -> Iterator[tuple[Tensor, ...]]:
    """What ``send`` copies to the GPU and does there, one item ahead of the model, on a stream beside its own.

    Args:
        prepared: items in pinned memory.
        send: copies an item without waiting, and augments it.
    """
    beside, main = torch.cuda.Stream(device), torch.cuda.current_stream(device)
    following: tuple[Tensor, ...] | None = None
    for item in prepared:
        current = following
        if current is not None:
            _hand_over(current, beside, main)
        with torch.cuda.stream(beside):
            following = send(item)
        if current is not None:
            yield current
    if following is not None:
        _hand_over(following, beside, main)
        yield following


def _hand_over(tensors: tuple[Tensor, ...], beside: torch.cuda.Stream, main: torch.cuda.Stream) -> None:
    """Let the model's stream wait for the tensors, and their memory be kept until it is done with them."""
    main.wait_stream(beside)
    for tensor in tensors:
        tensor.record_stream(main)
