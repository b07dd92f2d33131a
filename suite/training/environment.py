"""Where a run takes place: signals that ask it to stop, and the record of machine and versions."""

import contextlib
import ctypes
import platform
import signal
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from suite.base.commit import commit as commit  # results bear it
from suite.spec.resources import Resources
from suite.training.accelerator import gpu_name

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h's
_PACKAGES = ("torch", "timm", "deepspeed", "numpy")


class StopRequest:
    """True once the process was asked to stop by SIGTERM or SIGINT; training then writes a checkpoint and ends."""

    def __init__(self) -> None:
        self._asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def __bool__(self) -> bool:
        return self._asked

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True


def keep_freed_memory() -> None:
    """Let glibc keep what is freed for the next tensors; another C library goes on as it is.

    Given back to the kernel, memory is zeroed page by page when it is taken again: a sixth of an evaluation's time.
    """
    with contextlib.suppress(OSError, AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_MMAP_THRESHOLD, 32 << 20)  # bytes, the most that glibc takes
        set_option(_TRIM_THRESHOLD, 2**31 - 1)


def describe(
    resources: Resources, num_ranks: int, num_attempts: int, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Describe this attempt at a run, and where the attempts that it goes on from took place.

    Args:
        resources: this attempt's part of the machine.
        num_ranks: number of its processes.
        num_attempts: number of attempts so far, with this one.
        before: record of the attempt that left the checkpoint; None at the start of a training.

    Returns:
        The content of ``environment.json``. ``also_on`` lists the other kinds of machine that computed steps before:
        where there are any, no one kind gives the run's bits.
    """
    now = {
        "num_attempts": num_attempts,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "device": device_name(resources),
        "processor": processor_kind(),
        "num_ranks": num_ranks,
        "threads_per_rank": resources.threads_per_rank,
        "zero_stage": resources.zero_stage,
        "compiled": resources.compiled,
        "cuda_graphs": resources.cuda_graphs,
        "tf32": {"products": torch.backends.cuda.matmul.allow_tf32, "convolutions": torch.backends.cudnn.allow_tf32},
        "commit": commit(),
        "packages": {name: version(name) for name in _PACKAGES},
    }
    others = {*before.get("also_on", []), _kind(before)} - {_kind(now)} if before is not None else ()
    return {**now, "also_on": sorted(others)}


def _kind(environment: Mapping[str, Any]) -> str:
    """The kind of machine, by all that rounds sums in its own way; a run keeps its threads by itself."""
    found = {"device": "unknown", "processor": "unknown", "num_ranks": "unknown", "packages": {}, **environment}
    torch_version = found["packages"].get("torch", "unknown")
    return f"{found['device']} ({found['processor']}), torch {torch_version}, ranks: {found['num_ranks']}"


def device_name(resources: Resources) -> str:
    """The GPU's or the CPU's name."""
    return gpu_name() if resources.device == "gpu" else processor_name()


def processor_name() -> str:
    return _read_cpuinfo().get("model name") or platform.processor() or platform.machine()


def processor_kind() -> str:
    """The instructions that torch uses, and the CPU's family and model: a cloud may call all its CPUs the same."""
    known = _read_cpuinfo()
    return ", ".join(
        [torch.backends.cpu.get_cpu_capability(), *(known.get(key, "") for key in ("cpu family", "model"))]
    )


def _read_cpuinfo() -> dict[str, str]:
    """Read what Linux says of the first CPU; {} elsewhere."""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    return {}
