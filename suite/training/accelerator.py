"""The GPUs of a run: the only module that names ``torch.cuda``, the name by which ROCm builds of PyTorch answer, too.

Apple's MPS (no fp64, no deterministic operators) and Intel's XPU are refused by ``missing_gpu``. It names them by
``torch.accelerator``.
"""

import os
import resource
import sys
from typing import Any

import torch
from torch import Tensor, nn

_KINDS = {"mps": "Apple's MPS", "xpu": "an Intel XPU"}


def num_gpus() -> int:
    """Count the GPUs that this process sees, without starting CUDA."""
    return torch.cuda.device_count()


def gpu_names() -> list[str]:
    """List the GPUs that this process sees, as CUDA_VISIBLE_DEVICES names them."""
    num_seen = num_gpus()  # torch stops at the first name that is none, and sees none of doubled ones
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:num_seen] if named else [str(index) for index in range(num_seen)]


def missing_gpu() -> str:
    """Say in a line why no run can train on a GPU here; "" where one can."""
    if torch.cuda.is_available():
        return ""
    other = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    kind = other.type if other else ""
    seen = f"torch sees {_KINDS.get(kind, kind)}, on which nothing here was tried" if kind else "torch sees none"
    return f"this needs an NVIDIA GPU (or AMD's, untested), and {seen}: use --device cpu, or a machine with a GPU"


def take_gpu(index: int) -> torch.device:
    """Make a GPU this process's own."""
    device = torch.device("cuda", index)
    torch.cuda.set_device(device)
    return device


def device_of(kind: str) -> torch.device:
    """The GPU that this process has taken, or the CPU."""
    return torch.device("cuda", torch.cuda.current_device()) if kind == "gpu" else torch.device("cpu")


def gpu_name() -> str:
    """The name that the driver gives this process's GPU."""
    return str(torch.cuda.get_device_name())


def is_gpu(device: torch.device) -> bool:
    return bool(device.type == "cuda")


def is_started() -> bool:
    """Whether this process has touched a GPU, after which it cannot be forked."""
    return bool(torch.cuda.is_initialized())


def seed_gpu(seed: int) -> None:
    torch.cuda.manual_seed(seed)


def wait_for(device: torch.device) -> None:
    """Until a GPU has done what it was given, so that the clock shows what that took; a CPU always has."""
    if is_gpu(device):
        torch.cuda.synchronize(device)


def record_passes(model: nn.Module, images_BCHW: Tensor) -> None:
    """Record a model's forward and backward pass as CUDA graphs, which it replays from then on while it trains.

    The GPU starts the kernels of a graph by itself: a small network no longer waits for the CPU. They are the same
    kernels, and give the same bits. RuntimeError where a pass cannot be recorded, such as one that waits for the GPU;
    the process is then not to go on.
    """
    torch.cuda.make_graphed_callables(model, (images_BCHW,), allow_unused_input=True)


def mark_time(device: torch.device) -> Any:
    """An event that happens once a GPU has done what it was given so far."""
    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(device))
    return event


def peak_memory_bytes(device: torch.device) -> int:
    """The most that tensors have taken of a GPU at once, or this process of the machine's memory."""
    if is_gpu(device):
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def gpu_uuid(device: torch.device) -> str:
    """The name by which NVML knows a GPU; AttributeError from a PyTorch that does not tell it."""
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}"
