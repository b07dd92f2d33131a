"""Ranks on this machine that meet and are timed together, a process each."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable

import torch
from torch.multiprocessing.spawn import spawn as spawn_processes

from suite.spec.resources import Resources
from suite.training import distributed
from suite.training.accelerator import wait_for


def spawn(measure: Callable[..., None], num_ranks: int, *arguments: object) -> None:
    """Call ``measure(rank, port, *arguments)`` in as many processes, which leave their group after it; wait for all."""
    spawn_processes(_measure, (measure, distributed.free_port(), *arguments), nprocs=num_ranks)


def _measure(rank: int, measure: Callable[..., None], port: int, *arguments: object) -> None:
    measure(rank, port, *arguments)
    gc.collect()  # DistributedDataParallel lies in a cycle, and if it ended after the group, both could wait for ever
    distributed.stop()


def meet(rank: int, port: int, resources: Resources) -> torch.device:
    """Join the other ranks at a port of this machine; returns this rank's device.

    Args:
        resources: The number of ranks, and the kind of device that they are on.
    """
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": resources.num_ranks, "MASTER_PORT": port}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in names.items()}}
    return distributed.start(resources).device


def until_done(step: Callable[[], object], device: torch.device) -> Callable[[], None]:
    """The step, and the wait until its device has done it."""

    def timed() -> None:
        step()
        wait_for(device)

    return timed
