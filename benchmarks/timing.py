"""Timing two or more things in turn, so that a machine whose speed drifts slows all of them alike."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch
import torch.nn.functional as F
from measured import note
from torch import nn

from suite.training.environment import processor_name


def time_in_turn(
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    warmup: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time candidates one after the other, round by round; returns each one's seconds.

    Args:
        candidates: Functions that are timed, by name.
        rounds: Number of rounds that are timed.
        warmup: Number of rounds before, which are not.
        clock: Function that gives the seconds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(warmup + rounds):
        for name, run in candidates.items():
            started = clock()
            run()
            if turn >= warmup:
                seconds[name].append(clock() - started)
    return seconds


def training_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, labels: torch.Tensor
) -> Callable[[], None]:
    """Make a plain training step: forward and backward pass and the optimizer.

    Args:
        model: Network that is trained.
        optimizer: Optimizer of its weights.
        images, labels: Batch of every step.
    """

    def step() -> None:
        F.cross_entropy(model(images).float(), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def report(seconds: Mapping[str, list[float]], reference: str, title: str) -> None:
    """Print median milliseconds of each, and the median over rounds of how many times as fast as the reference it is.

    Args:
        seconds: Seconds of each round, by name.
        reference: One of the names.
        title: The computation that all of them do, for ``measured.note``.
    """
    for name, values in seconds.items():
        if name != reference:
            note(f"{title}: {name}", reference, values, seconds[reference])
        ratio = statistics.median(b / a for a, b in zip(values, seconds[reference], strict=True))
        speed = "" if name == reference else f"   {ratio:6.3f} times as fast as {reference}"
        print(f"{name:28s} {1e3 * statistics.median(values):9.2f} ms{speed}", flush=True)


def describe_machine() -> str:
    """Processor, threads and versions, for quoting beside a figure."""
    return f"{processor_name()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}"


@dataclass(frozen=True)
class Contender:
    """Something that delivers images, in a process of its own.

    Attributes:
        cores: the process is kept on as many, and torch computes with as many threads.
        make: called there once, with ``arguments``; what it returns is called once a round, and says how many images
            it has delivered. A module's function, so that a new process finds it.
    """

    cores: int
    make: Callable[..., Callable[[], int]]
    arguments: tuple[object, ...] = ()


def rates_in_turn(contenders: Mapping[str, Contender], rounds: int, warmup: int = 1) -> dict[str, list[float]]:
    """Images a second of each contender in each round, after ``warmup`` uncounted rounds; the others wait."""
    context = multiprocessing.get_context("spawn")
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    with ExitStack() as stack:
        pipes = {}
        for name, contender in contenders.items():
            pipes[name], theirs = context.Pipe()
            context.Process(target=_serve, args=(contender, theirs)).start()
            stack.callback(pipes[name].close)
            theirs.close()  # so that a process that fails ends the wait for its answer
        for turn in range(warmup + rounds):
            for name, pipe in pipes.items():
                pipe.send(None)
                rate = pipe.recv()
                if turn >= warmup:
                    rates[name].append(rate)
    return rates


def keep_on_cores(cores: int) -> None:
    """Keep this process, and those it starts, on the last ``cores`` cores that it may use."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-cores:])
    torch.set_num_threads(cores)


def _serve(contender: Contender, pipe: Connection) -> None:
    keep_on_cores(contender.cores)
    run = contender.make(*contender.arguments)
    with suppress(EOFError):  # the other end was closed
        while True:
            pipe.recv()
            started = time.perf_counter()
            num_images = run()
            pipe.send(num_images / (time.perf_counter() - started))


def load() -> str:
    """How many processes wanted to run over the last 1, 5 and 15 minutes."""
    return "load " + " ".join(f"{average:.1f}" for average in os.getloadavg())
