"""Energy of a run, by the counters of its GPUs or processors, and its peak memory, into ``attempts.jsonl``.

A GPU's counter (NVML, by pynvml where it is installed) is of the whole card: unknown while others compute on it, too.
The processors' (RAPL, which most systems show to root alone) is shared by processor time among all that compute.
"""

import contextlib
import os
import time
from pathlib import Path

import torch

from suite.store.attempts import record_usage
from suite.store.run_directory import RunDirectory
from suite.training.accelerator import gpu_uuid, is_gpu, peak_memory_bytes
from suite.training.distributed import Ranks

_RAPL = Path("/sys/class/powercap")
_PROCESSORS = Path("/proc/stat")
_TICKS = os.sysconf("SC_CLK_TCK")
_JOULES_OF_KWH = 3.6e6
Counters = dict[str, tuple[float, float]]  # joules, and those at which the counter begins anew, by name


class Usage:
    """Adds up what this rank draws; every rank of a run has one, and the first rank records it."""

    def __init__(self, run: RunDirectory, ranks: Ranks) -> None:
        self._run, self._ranks, self._joules = run, ranks, 0.0
        self._is_known = True
        self._last = self._read()
        self.record()  # so that an attempt that is killed soon counts as begun, not as unknown

    def look(self) -> None:
        """Add what was drawn since the last look; processors' counters begin anew within an hour."""
        (before, processor_before), (now, processor_now) = self._last, self._read()
        self._is_known = self._is_known and bool(now) and before.keys() == now.keys()
        if self._is_known:
            drawn = sum((now[name][0] - before[name][0]) % now[name][1] for name in now)
            own, all_busy = (later - earlier for earlier, later in zip(processor_before, processor_now, strict=True))
            self._joules += drawn * (1.0 if is_gpu(self._ranks.device) else min(1.0, own / max(all_busy, 1e-9)))
        self._last = now, processor_now

    def record(self) -> None:
        """Record the usage of all ranks, which call it together."""
        self.look()
        joules = self._joules if self._is_known else None
        mine = (self._ranks.rank, joules, peak_memory_bytes(self._ranks.device))
        _, drawn, peaks = zip(*self._ranks.union({mine}), strict=True)
        if self._ranks.is_first:
            energy = None if None in drawn else sum(drawn) / _JOULES_OF_KWH
            record_usage(self._run, energy, max(peaks) / 1e9)

    def _read(self) -> tuple[Counters, tuple[float, float]]:
        """The counters, and seconds of processor time: this process's, and the whole machine's."""
        if is_gpu(self._ranks.device):
            return _read_gpu(self._ranks.device), (0.0, 0.0)
        with contextlib.suppress(OSError, ValueError, IndexError):
            ticks = [int(number) for number in _PROCESSORS.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
            busy_s = (sum(ticks) - ticks[3] - ticks[4]) / _TICKS  # all but idle, and waiting for disks
            return _read_processors(), (time.process_time(), busy_s)
        return {}, (0.0, 0.0)


def _read_processors() -> Counters:
    """RAPL's counters of packages and of memory beside them; {} where one cannot be read."""
    found: Counters = {}
    for zone in sorted(_RAPL.glob("intel-rapl:*")):  # AMD's processors have this name, too
        name = (zone / "name").read_text(encoding="ascii").strip()
        if name.startswith("package") or name == "dram":
            joules, most = (int((zone / file).read_bytes()) / 1e6 for file in ("energy_uj", "max_energy_range_uj"))
            found[zone.name] = joules, most
    return found


def _read_gpu(device: torch.device) -> Counters:
    with contextlib.suppress(Exception):  # no pynvml, no driver, a slice of a GPU, an older PyTorch: unknown
        import pynvml as nvml

        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(gpu_uuid(device))
        if len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)) <= 1:
            return {"gpu": (nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3, float("inf"))}
    return {}
