"""Where a run takes place: signals that ask it to stop, and the record of machine and versions."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from suite.spec import Resources

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


def describe(resources: Resources, num_ranks: int, num_attempts: int) -> dict[str, Any]:
    """The content of ``environment.json``."""
    return {
        "num_attempts": num_attempts,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "device": device_name(resources),
        "num_ranks": num_ranks,
        "threads_per_rank": resources.threads_per_rank,
        "zero_stage": resources.zero_stage,
        "tf32": {"products": torch.backends.cuda.matmul.allow_tf32, "convolutions": torch.backends.cudnn.allow_tf32},
        "commit": commit(),
        "packages": {name: version(name) for name in _PACKAGES},
    }


def device_name(resources: Resources) -> str:
    """The GPU's or the CPU's name."""
    if resources.device == "gpu":
        return str(torch.cuda.get_device_name())
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """The project's git commit, with "+changes" where the working tree differs; of an installed wheel its version.

    "unknown" is a copy of the project without git, which anybody may have changed.
    """
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return _installed_version(folder)

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, env={**os.environ}
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _installed_version(folder: Path) -> str:
    """The version, such as "v0.2.0", whose wheel put this package into ``folder``; else "unknown"."""
    with contextlib.suppress(PackageNotFoundError):
        found = distribution("convolutional-prior-suite")
        if Path(str(found.locate_file("suite"))).resolve() == folder / "suite":
            return f"v{found.version}"
    return "unknown"
