"""From the start of a run to its first training step: forked by the pool's server, beside a Python of its own.

    python benchmarks/run_start.py [--rounds 5] [--model deit_micro]

In turn, on the laptop's CIFAR-10. Wall seconds until the heartbeat tells of a step, of which an idle core needs as many
as the run's processor seconds, which stand beside them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from measured import note
from timing import describe_machine, load

from launchers.core.fork_server import ForkServer
from launchers.core.plan import make_plan
from launchers.local.pool import LocalPool, environment_of_runs
from suite.papers.convit.recipes import micro
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.heartbeat import read_beat


def time_start(store: Path, experiment: Experiment, server: ForkServer | None) -> tuple[float, float]:
    """(wall, processor) seconds until the first step is done; the run is then killed.

    Args:
        store: Store that does not hold this run.
        experiment: The run's experiment.
        server: Server of ``LocalPool`` that has the libraries loaded; None for a Python of the run's own.
    """
    pool = LocalPool(make_plan([experiment], store, Resources()), 1, server=server)
    started = time.monotonic()
    pool.poll()
    (run,) = pool.runs
    assert run.process is not None, run.problem
    while (beat := read_beat(run.job.directory)) is None or beat.step == 0:
        time.sleep(0.001)
    wall_s, fields = (
        time.monotonic() - started,
        Path(f"/proc/{run.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2],
    )
    user, system = (int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields.split()[11:13])
    pool.stop(timeout_s=0.0)
    while run.process.poll() is None:
        time.sleep(0.001)
    return wall_s, user + system


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", choices=["deit_micro", "convit_micro"], default="deit_micro")
    options = parser.parse_args()
    experiment = micro("convit" if options.model.startswith("convit") else "deit", fraction=0.05)
    print(f"{describe_machine()}; {load()}")
    found: dict[str, list[tuple[float, float]]] = {"Python of its own": [], "forked": []}
    with tempfile.TemporaryDirectory() as store, ForkServer(Resources(), environment_of_runs(Resources())) as server:
        while server.is_loading:
            time.sleep(0.05)
        for turn in range(options.rounds):
            for name, seconds in found.items():
                chosen = server if name == "forked" else None
                seconds.append(time_start(Path(store) / f"{name}-{turn}", experiment, chosen))
    own, forked = ([processor_s for _, processor_s in found[name]] for name in ("Python of its own", "forked"))
    note(f"a run's start to its first step, {options.model} (processor seconds)", "Python of its own", forked, own)
    for name, seconds in found.items():
        wall_s, processor_s = (statistics.median(column) for column in zip(*seconds, strict=True))
        print(f"{name:20s} {wall_s:6.2f} s to the first step, {processor_s:6.2f} s of a core")
    print(load())


if __name__ == "__main__":
    main()
