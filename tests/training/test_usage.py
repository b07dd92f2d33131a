"""A run's energy, by counters that are written here; unknown where there are none."""

import sys
from types import SimpleNamespace

import pytest
import torch

from suite.store.attempts import energy_kwh, peak_memory_gb, read_attempts, record_end, record_start
from suite.store.run_directory import RunDirectory
from suite.training.distributed import Ranks
from suite.training.measure import usage
from suite.training.measure.usage import Usage

RANKS = Ranks(0, 1, torch.device("cpu"))


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    record_start(run, num_ranks=1)
    return run


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Sets joules of a package, joules of its memory, and seconds of our and of all processor time."""
    rapl, stat = tmp_path / "powercap", tmp_path / "stat"
    monkeypatch.setattr(usage, "_RAPL", rapl)
    monkeypatch.setattr(usage, "_PROCESSORS", stat)
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:0:1", "dram")):
        (rapl / zone).mkdir(parents=True)
        (rapl / zone / "name").write_text(f"{name}\n")
        (rapl / zone / "max_energy_range_uj").write_text("1000000000\n")
        (rapl / zone / "energy_uj").write_text("7\n")

    def show(package, dram, own_s, all_s):
        (rapl / "intel-rapl:0/energy_uj").write_text(f"{package * 10**6}\n")
        (rapl / "intel-rapl:0:1/energy_uj").write_text(f"{dram * 10**6}\n")
        monkeypatch.setattr(usage.time, "process_time", lambda: own_s)
        ticks = all_s * usage._TICKS
        stat.write_text(f"cpu  {ticks} 0 0 99999 88888 0 0 0 0 0\ncpu0 1 2 3\n")

    return show


def test_a_run_draws_its_share_of_the_processors_energy_and_their_counters_begin_anew(run, machine):
    machine(900, 10, 0.0, 0)
    used = Usage(run, RANKS)
    machine(100, 20, 5.0, 10)  # 200 + 10 J, half of the time ours
    used.look()
    machine(136, 20, 15.0, 20)  # 36 J, all of it ours
    used.record()
    (attempt,) = read_attempts(run)
    assert attempt.energy_kwh == pytest.approx((105 + 36) / 3.6e6)
    assert 0.01 < attempt.peak_memory_gb < 100


def test_energy_adds_up_over_attempts_and_is_unknown_as_soon_as_one_could_not_read_it(run, machine):
    for drawn in (0, 36):
        machine(0, 0, 0.0, 0)
        used = Usage(run, RANKS)
        machine(drawn, 0, 1.0, 1)
        used.record()
        record_end(run, "interrupted")
        record_start(run, num_ranks=1)
    attempts = read_attempts(run)
    assert energy_kwh(attempts[:2]) == pytest.approx(1e-5)
    assert energy_kwh(attempts) is None  # the last has recorded nothing yet
    assert peak_memory_gb(attempts) > 0
    assert (energy_kwh([]), peak_memory_gb([])) == (None, None)


def test_counters_that_nobody_may_read_leave_the_energy_unknown(run, machine, tmp_path):
    machine(0, 0, 0.0, 0)
    (tmp_path / "powercap/intel-rapl:0/energy_uj").unlink()
    Usage(run, RANKS).record()
    assert read_attempts(run)[0].energy_kwh is None
    assert read_attempts(run)[0].peak_memory_gb > 0


@pytest.mark.parametrize(("num_processes", "expected"), [(1, 1e-6), (2, None)])
def test_a_gpu_s_energy_is_nvml_s_unless_others_compute_on_it_too(run, monkeypatch, num_processes, expected):
    millijoules = iter((1000, 1000, 4600))
    nvml = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID={"GPU-b1": "handle"}.get,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [handle] * num_processes,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(millijoules),
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="b1"))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 2_500_000_000)
    Usage(run, Ranks(0, 1, torch.device("cuda", 0))).record()
    (attempt,) = read_attempts(run)
    assert attempt.energy_kwh == (expected and pytest.approx(expected))
    assert attempt.peak_memory_gb == 2.5


def test_the_ranks_of_a_run_add_their_energy_up_and_show_the_greatest_memory(run, machine, monkeypatch):
    monkeypatch.setattr(Ranks, "union", lambda ranks, mine: mine | {(1, 3.6, 70 * 10**9)})
    machine(0, 0, 0.0, 0)
    used = Usage(run, Ranks(0, 2, torch.device("cpu")))
    machine(36, 0, 1.0, 10)
    used.record()
    (attempt,) = read_attempts(run)
    assert attempt.energy_kwh == pytest.approx(7.2 / 3.6e6)
    assert attempt.peak_memory_gb == 70
