"""Training on a GPU, held against itself and against the CPU; ``gpu_proof.py`` starts each check.

    python benchmarks/gpu_checks.py --device gpu --out DIR machine|repeat|models|equal|killed|ranks [--small]

Each check tries everything, writes what it found to ``<out>/<check>.json`` and ends with status 1 if something is not
as it has to be. ``--small`` is for a rehearsal on a CPU.
"""

from __future__ import annotations

import argparse
import collections
import gc
import hashlib
import os
import platform
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gpu_equal
import gpu_runs
import short_runs
import torch

from suite.models.registry import list_models, reference_input
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.training import distributed
from suite.training.environment import StopRequest
from suite.training.loop import Interrupted, Training

Report = dict[str, Any]


class _StopAt(StopRequest):
    """A request to stop that no signal makes: it comes once a training has done so many steps; 0 is never."""

    def __init__(self, training: Training, step: int) -> None:
        self._training, self._step = training, step

    def __bool__(self) -> bool:
        return 0 < self._step <= self._training.progress.step


def train(run: RunDirectory, experiment: Experiment, resources: Resources, stop_at: int = 0) -> str:
    """Train in this process, from the newest checkpoint.

    Args:
        run, experiment, resources: of the job.
        stop_at: the step to be interrupted at; 0 is never.

    Returns:
        The SHA-256 of the weights, "" when it was stopped.
    """
    training = Training(run, experiment, resources, _ranks(resources))
    try:
        training.run(_StopAt(training, stop_at))
    except Interrupted:
        return ""
    finally:
        del training
        gc.collect()  # DeepSpeed's engines hold themselves in circles
        torch.cuda.empty_cache()
    return hashlib.sha256(run.weights_path.read_bytes()).hexdigest()


_started: list[distributed.Ranks] = []


def _ranks(resources: Resources) -> distributed.Ranks:
    """This process, set up for training once."""
    if not _started:
        _started.append(distributed.start(resources))
    return _started[0]


@contextmanager
def counted_synchronizations(device: str) -> Iterator[collections.Counter[str]]:
    """Where the host waits for the GPU inside the ``with``, by file and line, as far as PyTorch notices."""
    places: collections.Counter[str] = collections.Counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if device == "gpu":
            torch.cuda.set_sync_debug_mode("warn")
        try:
            yield places
        finally:
            if device == "gpu":
                torch.cuda.set_sync_debug_mode("default")
        for warning in caught:
            if "synchronizing CUDA operation" in str(warning.message):
                places[f"{Path(warning.filename).name}:{warning.lineno}"] += 1


def check_repeat(options: argparse.Namespace, resources: Resources) -> Report:
    """Each of five models twice, and once more with a stop in the middle: the same weights to the last bit."""
    steps, batch = (2, 4) if options.small else (30, 64)

    def check(model: str) -> Report:
        experiment = short_runs.shorten(short_runs.five_models()[model], steps, batch)
        if options.small:
            experiment = short_runs.shrink(experiment)
        runs = [short_runs.new_run(options.scratch / f"{model}-{n}", experiment) for n in range(3)]
        with counted_synchronizations(options.device) as places:
            first = train(runs[0], experiment, resources)
        second = train(runs[1], experiment, resources)
        train(runs[2], experiment, resources, stop_at=steps // 2)
        resumed = train(runs[2], experiment, resources)
        result: Report = {"repeats": first == second, "resumes": first == resumed, "sha256": first}
        result["synchronizations_per_step"] = sum(places.values()) / steps
        return result | {"where": dict(places.most_common(8)), "images_per_s": _rate(runs[1])}

    return _each(list(short_runs.five_models()), check, ("repeats", "resumes"))


def check_models(options: argparse.Namespace, resources: Resources) -> Report:
    """Ten steps of every model in both precisions; an operator without a deterministic form ends one."""
    steps, batch = (1, 4) if options.small else (10, 32)

    def check(name: str) -> Report:
        model, precision = name.split(" ")
        size = 32 if options.small else reference_input(model)[0]
        experiment = short_runs.of_model(model, size, precision, steps, batch)
        run = short_runs.new_run(options.scratch / name.replace(" ", "-"), experiment)
        return {"trains": bool(train(run, experiment, resources)), "images_per_s": _rate(run)}

    models = list(short_runs.each_model(list_models(), options.small))
    return _each([f"{model} {precision}" for model in models for precision in ("fp32", "bf16")], check, ("trains",))


def _rate(run: RunDirectory) -> float:
    """The last one that was logged: the first ones wait for kernels to be loaded."""
    return float(round([line["images_per_s"] for line in run.read_metrics() if "images_per_s" in line][-1], 1))


def _each(names: list[str], check: Callable[[str], Report], must_hold: tuple[str, ...]) -> Report:
    """Check one after the other; what fails is reported and stops no other."""
    report: Report = {}
    for name in names:
        try:
            report[name] = check(name)
        except Exception as error:
            report[name] = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        print(name, report[name], flush=True)
    report["failed"] = [name for name in names if not all(report[name].get(key) for key in must_hold)]
    return report


def check_machine(options: argparse.Namespace, resources: Resources) -> Report:
    """Record the machine that everything else was measured on."""
    found: Report = {"python": platform.python_version(), "cores": os.cpu_count(), "failed": []}
    found["packages"] = {
        name: version(name) for name in ("torch", "timm", "deepspeed", "numpy", "triton") if _has(name)
    }
    if options.device == "gpu":
        card = torch.cuda.get_device_properties(0)
        found |= {"gpu": card.name, "memory_gib": card.total_memory / 2**30, "processors": card.multi_processor_count}
        found |= {
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "nccl": torch.cuda.nccl.version(),
        }
        asked = subprocess.run(["nvidia-smi"], capture_output=True, encoding="utf-8", errors="replace")
        found["nvidia_smi"] = asked.stdout.splitlines()
    return found


def _has(package: str) -> bool:
    try:
        return bool(version(package))
    except ModuleNotFoundError:
        return False


_CHECKS = {
    "machine": check_machine,
    "repeat": check_repeat,
    "models": check_models,
    "equal": gpu_equal.check,
    "killed": gpu_runs.check_killed,
    "ranks": gpu_runs.check_ranks,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("check", choices=_CHECKS)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    options.scratch = short_runs.empty_folder(options.out / "scratch" / options.check)
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    resources = Resources(device=options.device, threads_per_rank=threads, num_evaluations=1)
    report = _CHECKS[options.check](options, resources)
    short_runs.write_report(options.out, options.check, report)
    return 1 if report["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
