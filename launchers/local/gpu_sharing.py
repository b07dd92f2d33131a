"""Several small runs on one GPU at a time, by NVIDIA's Multi-Process Service (MPS).

    with SharedGpus(["0", "1"], console) as gpus:
        LocalPool(plan, 2 * runs_per_gpu, gpus)

Each GPU has a control daemon of its own, which sees that GPU alone, so that it is device 0 of its clients, and which
speaks by pipes in a private folder: MPS of other users, and of the machine, is not touched. Without MPS the runs still
share a GPU, but take turns on it.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from rich.console import Console

from launchers.local.pool import Gpus

_CONTROL = "nvidia-cuda-mps-control"
_KEEPER = """
exec 3<&0
"$0" -f </dev/null 3<&- &
daemon=$!
{ read -r _ <&3; kill -9 -$$; } &
wait $daemon
"""
"""Starts the daemon, ends with it, and kills what is left of it and its server once the grid lets go or is gone."""

_START_S = 20.0
_QUIT_S = 10.0


class SharedGpus(Gpus):
    """GPUs that several runs of one rank are on, and their daemons, for as long as the grid trains.

    ``names`` are as CUDA_VISIBLE_DEVICES has them. The console shows, once, why GPUs are shared without MPS.
    """

    def __init__(self, names: Sequence[str], console: Console) -> None:
        super().__init__(names)
        self._console = console
        self._variables: dict[str, dict[str, str]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            if shutil.which(_CONTROL) is None:
                raise OSError(f"{_CONTROL}, a part of NVIDIA's driver, is not in the PATH")
            for gpu in self.names:
                self._start_daemon(gpu)
        except OSError as error:
            self._stack.close()
            self._variables.clear()
            self._console.print(f"runs share a GPU without MPS, and so take turns on it: {error}")
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def variables(self, slot: int, num_ranks: int) -> dict[str, str]:
        """As of ``Gpus``, and where its daemon listens: to that, its GPU is device 0."""
        variables = super().variables(slot, num_ranks)
        return self._variables.get(variables["CUDA_VISIBLE_DEVICES"], variables)

    def _start_daemon(self, gpu: str) -> None:
        """Start a GPU's daemon, which ends with this process, however that does; an OSError if it does not start."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="mps-", ignore_cleanup_errors=True)))
        places = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
        with (folder / "output").open("wb") as output:
            daemon = subprocess.Popen(
                ["sh", "-c", _KEEPER, _CONTROL],
                env=os.environ | places | {"CUDA_VISIBLE_DEVICES": gpu},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C is the grid's: runs still write their checkpoints
            )
        self._stack.callback(_end_daemon, daemon, os.environ | places)
        deadline = time.monotonic() + _START_S
        while not (folder / f"{_CONTROL}.pid").exists():
            if daemon.poll() is not None or time.monotonic() > deadline:
                said = (folder / "output").read_text(encoding="utf-8", errors="replace").strip() or "it said nothing"
                raise OSError(f"{_CONTROL} of GPU {gpu} did not start: {said}")
            time.sleep(0.05)
        name = "0" if gpu.isdecimal() else gpu  # a GPU's or an instance's own name stays what it is
        self._variables[gpu] = {"CUDA_VISIBLE_DEVICES": name, **places}


def _end_daemon(daemon: subprocess.Popen[bytes], environment: dict[str, str]) -> None:
    """Ask a daemon and its server to end; where it does not, its keeper ends it."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run([_CONTROL], input=b"quit\n", env=environment, capture_output=True, timeout=_QUIT_S, check=False)
        daemon.wait(_QUIT_S)
    assert daemon.stdin is not None
    daemon.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        daemon.wait(_QUIT_S)
