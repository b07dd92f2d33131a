"""Runs in processes of their own: killed and resumed, of two ranks, and sharded by ZeRO."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import short_runs
import torch
from safetensors.torch import load_file

from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory

_SAME_STEPS = 1e-4  # relative difference of weights, whose gradients ZeRO sums in another order


def check_killed(options: argparse.Namespace, resources: Resources) -> dict[str, Any]:
    """SIGKILL in the middle of a training; started again, it ends with the weights of one that was left alone."""
    model, size, steps = ("convit_micro", 32, 60) if options.small else ("convit_ti", 224, 200)
    experiment = short_runs.of_model(model, size, "bf16", steps, 16 if options.small else 64)
    often = resources.model_copy(update={"checkpoint_every_s": 0.5})
    whole, killed = (short_runs.new_run(options.scratch / name, experiment) for name in ("whole", "killed"))
    if short_runs.start(whole, often).wait():
        return {"failed": ["whole"], "log": short_runs.newest_lines(whole, 15)}
    process = short_runs.start(killed, often)
    while process.poll() is None and killed.newest_checkpoint() is None:
        time.sleep(0.01)
    process.kill()
    process.wait()
    was_finished = killed.result_path.exists()
    if short_runs.start(killed, often).wait():
        return {"failed": ["resumed"], "log": short_runs.newest_lines(killed, 15)}
    resumed_at = [
        line for line in killed.log_path.read_text(encoding="utf-8").splitlines() if line.startswith("training steps")
    ]
    same = whole.weights_path.read_bytes() == killed.weights_path.read_bytes()
    failed = [name for name, wrong in {"weights": not same, "killed too late": was_finished}.items() if wrong]
    return {"failed": failed, "attempts": resumed_at, "same_weights": same}


def check_ranks(options: argparse.Namespace, resources: Resources) -> dict[str, Any]:
    """Two ranks, which NCCL may refuse on one GPU; ZeRO 0 to 3 of one rank; DeepSpeed beside DDP."""
    steps = 6 if options.small else 60
    experiment = short_runs.of_model("convit_micro", 32, "fp32", steps, 32)
    report: dict[str, Any] = {"two_ranks": _train(options, experiment, resources, "two_ranks", num_ranks=2)}
    runs = {}
    for stage in range(4):
        report[f"zero_{stage}"] = _train(options, experiment, resources, f"zero_{stage}", zero_stage=stage)
        runs[stage] = RunDirectory(options.scratch / f"zero_{stage}")
    failed = [name for name, found in report.items() if name != "two_ranks" and found["status"]]
    for stage in range(1, 4):
        if f"zero_{stage}" not in failed and "zero_0" not in failed:
            found = _difference(runs[stage].weights_path, runs[0].weights_path)
            report[f"zero_{stage}"]["difference_from_zero_0"] = found
            failed += [] if found < _SAME_STEPS else [f"zero_{stage} differs"]
    report["deepspeed_beside_ddp"] = _compare_with_ddp(options)
    failed += ["deepspeed_beside_ddp"] if report["deepspeed_beside_ddp"]["status"] else []
    return report | {"failed": failed}


def _train(
    options: argparse.Namespace, experiment: Experiment, resources: Resources, name: str, **others: int
) -> dict[str, Any]:
    run = short_runs.new_run(options.scratch / name, experiment)
    status = short_runs.start(run, resources.model_copy(update=others)).wait()
    if status:
        return {"status": status, "log": short_runs.newest_lines(run, 25)}
    return {"status": 0, "losses": short_runs.losses(run), "images_per_s": run.last_metrics().get("images_per_s")}


def _difference(found: Path, expected: Path) -> float:
    ours, theirs = load_file(found), load_file(expected)
    squares = [((ours[name] - theirs[name]).double() ** 2).sum() for name in theirs]
    norms = [(theirs[name].double() ** 2).sum() for name in theirs]
    return float(torch.stack(squares).sum().sqrt() / torch.stack(norms).sum().sqrt())


def _compare_with_ddp(options: argparse.Namespace) -> dict[str, Any]:
    script = Path(__file__).with_name("deepspeed_step.py")
    size = ["--batch", "16", "--rounds", "2"] if options.small else ["--model", "deit_ti", "--batch", "512"]
    command = [sys.executable, str(script), "--device", options.device, *size]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", env={**os.environ})
    return {"status": done.returncode, "lines": [*done.stdout.splitlines(), *done.stderr.splitlines()[-10:]]}
