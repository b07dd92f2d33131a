"""Batches prepared while earlier ones are trained on: by threads, and on a GPU on a stream of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

_BATCHES_AHEAD = 2

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")


def start_threads(number: int, name: str) -> ThreadPoolExecutor:
    """Threads that run torch's operations by themselves: teams of threads in each would wait for one another."""
    others = torch.get_num_threads()
    started = threading.Barrier(number + 1)

    def begin() -> None:
        torch.get_num_threads()  # a thread's first call takes over the process's number, also after it was set
        torch.set_num_threads(1)  # for this thread, and for those that have not begun
        started.wait()

    pool = ThreadPoolExecutor(number, name, initializer=begin)
    for _ in range(number):
        pool.submit(int)
    started.wait()
    torch.set_num_threads(others)
    return pool


def prepare_ahead(prepare: Callable[[Item], Prepared], items: Iterable[Item]) -> Iterator[Prepared]:
    """``map(prepare, items)``, with the next results being prepared by threads while one is used."""
    threads = start_threads(_BATCHES_AHEAD, "ahead")
    pending: deque[Future[Prepared]] = deque()
    try:
        for item in items:
            pending.append(threads.submit(prepare, item))
            if len(pending) > _BATCHES_AHEAD:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


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
