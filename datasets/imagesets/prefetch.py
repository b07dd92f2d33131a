"""Batches prepared while earlier ones are trained on: by threads, and on a GPU on a stream of its own.

    CPU     threads ahead: load, finish
    device  threads ahead: load, pack into one pinned buffer -> side stream: one copy, unpack, finish -> model's stream

Loading is all that needs the host: reading pixels and drawing what is random. Finishing is torch's operations alone, by
numbers that came in the buffer, so that nothing there waits for the device or copies to it.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import accumulate
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from suite.base.errors import RunError

_BATCHES_AHEAD = 2
_WITHOUT_STREAMS = ("cpu", "meta")
_ALIGNMENT = 64  # bytes: of any type of number, and of vectorized loads

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")
Finished = TypeVar("Finished", bound=tuple[Tensor, ...])


def start_threads(number: int, name: str) -> ThreadPoolExecutor:
    """Threads that run torch's operations by themselves: teams of threads in each would wait for one another. RunError
    if one of them cannot start, for want of memory or by a limit on processes."""
    others = torch.get_num_threads()
    started = threading.Barrier(number + 1)

    def begin() -> None:
        try:
            torch.get_num_threads()  # a thread's first call takes over the process's number, also after it was set
            torch.set_num_threads(1)  # for this thread, and for those that have not begun
        except BaseException:
            started.abort()
            raise
        with contextlib.suppress(threading.BrokenBarrierError):  # another one did not start, which is said below
            started.wait()

    pool = ThreadPoolExecutor(number, name, initializer=begin)
    try:
        for _ in range(number):
            pool.submit(int)
        started.wait()
    except RuntimeError as error:  # also that of a barrier or of a pool which is broken
        started.abort()  # else those that did start wait for the others for ever, and the process for them
        pool.shutdown(wait=False, cancel_futures=True)
        raise RunError(
            f"the {number} threads that load images cannot be started: {error or 'one of them ended at once'}. "
            "Give the run more memory and processes, or fewer threads with --workers"
        ) from error
    torch.set_num_threads(others)
    return pool


def prepare_ahead(prepare: Callable[[Item], Prepared], items: Iterable[Item]) -> Iterator[Prepared]:
    """``map(prepare, items)``, with the next results being prepared by threads while one is used."""
    threads = start_threads(_BATCHES_AHEAD, "ahead")
    try:
        yield from in_order((threads.submit(prepare, item) for item in items), _BATCHES_AHEAD)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def in_order(futures: Iterable[Future[Prepared]], num_ahead: int) -> Iterator[Prepared]:
    """Yield the results of futures, of which so many more than the one in use are drawn, and so submitted."""
    pending: deque[Future[Prepared]] = deque()
    for future in futures:
        pending.append(future)
        if len(pending) > num_ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


class Packed(Generic[Item]):
    """The tensors of an item in one buffer on the CPU, and the item around them.

    A copy out of memory that is not pinned waits for the device, and each copy has costs of its own, however small:
    the draws of one batch of DeiT's recipe alone would be dozens.

    Args:
        item: a tensor, or tuples and named tuples, as deep as need be, of tensors and of anything that stays as it is.
        pinned: True puts the buffer in memory that a GPU reads by itself, so that ``to`` need not wait.
    """

    def __init__(self, item: Item, pinned: bool) -> None:
        tensors = [leaf for leaf in tree_leaves(item) if isinstance(leaf, Tensor)]
        room = [-(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT for tensor in tensors]
        self._item, self._starts = item, list(accumulate(room, initial=0))
        self._buffer = torch.empty(self._starts[-1], dtype=torch.uint8, pin_memory=pinned)
        for start, tensor in zip(self._starts, tensors, strict=False):
            _view_like(tensor, self._buffer, start).copy_(tensor)

    def to(self, device: torch.device) -> Item:
        """The item with its tensors on the device, where they are views of one buffer; pinned, without waiting."""
        moved, starts = self._buffer.to(device, non_blocking=True), iter(self._starts)
        item: Item = tree_map_only(Tensor, lambda tensor: _view_like(tensor, moved, next(starts)), self._item)
        return item


def _view_like(tensor: Tensor, buffer: Tensor, start: int) -> Tensor:
    return buffer[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)


def stream_batches(
    load: Callable[[Item], Prepared],
    finish: Callable[[Prepared], Finished],
    items: Iterable[Item],
    device: torch.device | None = None,
) -> Iterator[Finished]:
    """``finish(load(item))`` of each item, on the device (None: the CPU), ahead of whoever takes them.

    Args:
        load: reads and draws, on the host; gives tensors on the CPU, as ``Packed`` takes them.
        finish: makes a batch of them on the device where they are, and asks nothing of the host.
    """
    if device is None or device.type == "cpu":
        return prepare_ahead(lambda item: finish(load(item)), items)
    is_gpu = device.type not in _WITHOUT_STREAMS
    packed = prepare_ahead(lambda item: Packed(load(item), pinned=is_gpu), items)
    send = partial(_send, finish=finish, device=device)
    return _feed(packed, send, device) if is_gpu else map(send, packed)


def _feed(
    prepared: Iterator[Prepared], send: Callable[[Prepared], Finished], device: torch.device
) -> Iterator[Finished]:
    """Yield what ``send`` copies to a GPU and does there, one item ahead of the model, on a stream beside its own."""
    gpus = torch.get_device_module(device)
    side, main = side_stream(device), gpus.current_stream(device)

    def send_aside(item: Prepared) -> Finished:
        with gpus.stream(side):
            return send(item)

    sent = map(send_aside, prepared)
    following = next(sent, None)
    while (current := following) is not None:
        main.wait_stream(side)
        for tensor in current:
            tensor.record_stream(main)  # its memory is kept until the model is done with it
        following = next(sent, None)
        yield current


@lru_cache
def side_stream(device: torch.device) -> torch.Stream:
    """The stream on which a device's batches are finished, the same for the whole process. PyTorch keeps freed memory
    for the stream that it was taken for: a new stream per evaluation would take it anew."""
    stream: torch.Stream = torch.get_device_module(device).Stream(device)
    return stream


def _send(packed: Packed[Prepared], finish: Callable[[Prepared], Finished], device: torch.device) -> Finished:
    """Copy to a device and finish there, with deterministic algorithms off, and afterwards as they were.

    On a GPU they would sort every index that is written to, and check its range on the host. Augmentation writes to no
    place twice, and where it adds, it adds integers: an order of writing changes nothing. The setting is the process's,
    but nothing else computes meanwhile: this runs in the thread of the training loop.
    """
    before = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        return finish(packed.to(device))
    finally:
        torch.use_deterministic_algorithms(before, warn_only=only_warned)
