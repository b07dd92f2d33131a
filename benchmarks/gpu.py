"""Speed on a GPU: images/s and MFU beside timm's models, runs an hour when several share it, and its ranks.

    python benchmarks/gpu.py [--device gpu] [--out runs/gpu-proof-gpu] [--parts deit_s_224 packing …]

``<out>/speed.json`` holds each part as soon as it is measured. A later start measures the parts that are missing or
have failed, and those that ``--parts`` names. ``--device cpu`` rehearses every part in a small form.

A case such as deit_s_224 is measured twice. "synthetic": forward and backward pass and fused AdamW in bf16 autocast on
one batch that stays on the device; the contenders take turns, and each round is timed as a whole. "real": a training of
the same model by the project's own loop on CIFAR-10, resized on the CPU for 224 pixels, in deterministic mode; the rate
and the share of time that waits for images are medians of the logged lines from the third on.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from bench import list_versions
from measured import note
from one_run import images_per_s, train
from rich.console import Console
from timing import describe_machine, time_in_turn
from torch import nn

from launchers.core.plan import make_plan
from launchers.local.gpu_sharing import SharedGpus
from launchers.local.pool import Gpus, LocalPool
from suite.base.files import write_atomically
from suite.models.flops import count_flops
from suite.models.registry import build_model
from suite.papers.convit import recipes as convit
from suite.papers.shared.deit_recipes import DEIT, DEIT_CIFAR
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.training.environment import device_name
from suite.training.measure.outcome import mfu_percent

import timm  # isort: skip  (after suite.models, which makes torchvision importable)

Report = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A model of ours and timm's of the same shape, "" where it has none, with the images/s to be reached."""

    model: str
    image_size: int
    batch_size: int
    options: dict[str, Any] = field(default_factory=dict)
    timms: str = ""
    goal_images_per_s: int | None = None


_AT_32 = {"patch_size": 4}
CASES = {
    "deit_ti_32": Case("deit_ti", 32, 2048, _AT_32, "deit_tiny_patch16_224", 70_000),
    "convit_ti_32": Case("convit_ti", 32, 2048, _AT_32, "convit_tiny"),
    "deit_s_224": Case("deit_s", 224, 512, {}, "deit_small_patch16_224", 8_000),
    "convit_s_224": Case("convit_s", 224, 512, {}, "convit_small"),
    "sa_quadratic_32": Case("sa_quadratic", 32, 256),
}


@dataclass(frozen=True)
class Setting:
    """The device of all parts, the folder of the report, and the numbers of rounds, steps a round and runs at once."""

    device: torch.device
    out: Path
    rounds: int
    steps: int
    at_once: int

    @property
    def is_small(self) -> bool:
        return self.device.type == "cpu"

    def resources(self, **changes: int) -> Resources:
        threads = max(1, len(os.sched_getaffinity(0)) // 2)
        resources = Resources(device="cpu" if self.is_small else "gpu", threads_per_rank=threads, num_evaluations=1)
        return resources.model_copy(update=changes)

    def empty_folder(self, name: str) -> Path:
        path = self.out / "scratch" / name
        shutil.rmtree(path, ignore_errors=True)
        return path


def shorten(recipe: Recipe, num_steps: int, num_images: int) -> Recipe:
    """Make a recipe last so many steps, without a warm-up."""
    return recipe.with_epochs(num_steps * recipe.batch_size / num_images, warmup_epochs=0.0)


# -- one training


def contenders(case: Case, compiled: bool) -> Iterator[tuple[str, nn.Module]]:
    """Networks of the case. Of ours the blocks are compiled, of timm's all of it."""
    for how in ("eager", "compiled") if compiled else ("eager",):
        torch.manual_seed(0)
        ours = build_model(case.model, num_classes=10, image_size=case.image_size, **case.options)
        if how == "compiled":
            for block in ours.blocks:  # type: ignore[union-attr]
                block.compile()
        yield f"ours {how}", ours
        if case.timms:
            theirs = timm.create_model(case.timms, num_classes=10, img_size=case.image_size, **case.options)
            if how == "compiled":
                theirs.compile()
            yield f"timm {how}", theirs


def training_steps(model: nn.Module, case: Case, setting: Setting) -> Callable[[], None]:
    """Make a function that trains for the steps of a round and waits for their end."""
    device, size = setting.device, case.image_size
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device.type == "cuda")
    images = torch.randn(case.batch_size, 3, size, size, device=device)
    labels = torch.randint(10, (case.batch_size,), device=device)

    def run() -> None:
        for _ in range(setting.steps):
            with torch.autocast(device.type, torch.bfloat16):
                loss = F.cross_entropy(model(images).float(), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        loss.item()  # waits for the device

    return run


def measure_synthetic(case: Case, setting: Setting) -> Report:
    """Measure each contender's images per second, in turn.

    One that cannot be compiled or run is reported, and stops no other.
    """
    candidates: dict[str, Callable[[], None]] = {}
    report: Report = {}
    for name, model in contenders(case, compiled=not setting.is_small):
        try:
            candidates[name] = training_steps(model, case, setting)
            candidates[name]()  # compiles
        except Exception as error:
            candidates.pop(name, None)
            report[name] = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()[-2000:]}
    flops = count_flops(case.model, num_classes=10, image_size=case.image_size, **case.options)
    timed = time_in_turn(candidates, setting.rounds)
    for name, seconds in timed.items():
        rates = sorted(case.batch_size * setting.steps / each for each in seconds)
        rate = statistics.median(rates)
        mfu = mfu_percent(flops, DEIT_CIFAR, rate, device_name(setting.resources()))  # whose precision is bf16
        report[name] = {"images_per_s": round(rate, 1), "of_rounds": [round(r, 1) for r in rates], "mfu_percent": mfu}
        if (reference := name.replace("ours", "timm")) != name and reference in timed:
            title = f"training step, {case.model} at {case.image_size} px, {name}"
            note(title, reference, seconds, timed[reference])
    return report


def measure_real(name: str, case: Case, setting: Setting) -> Report:
    """Measure a training by the project's own loop, in a process of its own."""
    recipe = DEIT_CIFAR.model_copy(update={"batch_size": case.batch_size})
    if case.image_size != 32:
        recipe = recipe.model_copy(update={"crop": "random_resized", "crop_padding": 0})
    if case.model == "sa_quadratic":
        recipe = recipe.model_copy(update={"drop_path": 0.0})
    if setting.is_small:
        dataset, recipe = "cifar10_sample", shorten(recipe, 3, 320)
    else:
        dataset, recipe = "cifar10", shorten(recipe, 100 if case.image_size == 224 else 300, 50_000)
    experiment = Experiment(
        model=case.model, model_options=case.options, dataset=dataset, image_size=case.image_size, recipe=recipe
    )
    run = train(setting.empty_folder(name), experiment, setting.resources(threads_per_rank=torch.get_num_threads()))
    lines = [line for line in run.read_metrics() if "images_per_s" in line][2:]
    return {
        key: round(statistics.median(line[key] for line in lines), 2) for key in ("images_per_s", "data_wait_percent")
    }


def measure_case(name: str, setting: Setting) -> Report:
    """Measure a case on synthetic and on real images."""
    case = CASES[name]
    if setting.is_small:
        case = Case(case.model, case.image_size, 2, case.options, case.timms)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    found = measure_synthetic(case, setting)
    torch.cuda.empty_cache()
    torch.compiler.reset()
    report: Report = {"batch_size": case.batch_size, "goal_images_per_s": case.goal_images_per_s, "synthetic": found}
    try:
        report["real"] = measure_real(name, case, setting)
    except RuntimeError as error:
        report["real"] = {"error": str(error)}
    return report | {"failed": [each for each, of_it in {**found, "real": report["real"]}.items() if "error" in of_it]}


# -- several runs, and several ranks


def measure_packing(setting: Setting) -> Report:
    """Count runs an hour: the same runs one at a time, and several at a time by NVIDIA's MPS.

    The runs are ConViT-Ti's on CIFAR-10 at 32 pixels for eight epochs, each of another seed. The grid's own pool
    carries them out, and their start and evaluation count.
    """
    first = convit.gpu("convit", "Ti")
    recipe, num_runs, names = first.recipe.with_epochs(8, warmup_epochs=0.0), setting.at_once, ["0"]
    if setting.is_small:
        recipe, num_runs, names = shorten(recipe.model_copy(update={"batch_size": 16}), 3, 320), 2, []
        first = first.model_copy(update={"dataset": "cifar10_sample"})
    first = first.model_copy(update={"recipe": recipe})
    experiments = [first.with_seed(seed) for seed in range(num_runs)]
    alone = carry_out(experiments, 1, Gpus(names), setting)
    with SharedGpus(names, Console()) if names else nullcontext(Gpus()) as gpus:
        together = carry_out(experiments, num_runs, gpus, setting)
    ratio = together["runs_per_hour"] / alone["runs_per_hour"]
    report = {"one_at_a_time": alone, "several_at_a_time": together, "times_the_runs_per_hour": ratio}
    return report | {"failed": [*alone["failed"], *together["failed"]]}


def carry_out(experiments: list[Experiment], at_once: int, gpus: Gpus, setting: Setting) -> Report:
    """Carry out all runs from nothing, and measure how many an hour are done.

    Args:
        experiments: Experiments of one run each.
        at_once: Number of runs that are trained at a time.
        gpus: GPUs that the runs share; without one they train on the processor.
        setting: Setting of all parts.
    """
    threads = max(1, len(os.sched_getaffinity(0)) // at_once)
    plan = make_plan(experiments, setting.empty_folder("packing"), setting.resources(threads_per_rank=threads))
    pool = LocalPool(plan, at_once, gpus)
    started = time.perf_counter()
    while pool.poll():
        time.sleep(0.1)
    seconds = time.perf_counter() - started
    rates = [statistics.median(found) for run in pool.runs if (found := images_per_s(run.job.directory))]
    return {
        "at_once": at_once,
        "by_mps": "CUDA_MPS_PIPE_DIRECTORY" in gpus.variables(0, 1),
        "seconds": seconds,
        "runs_per_hour": 3600 * len(experiments) / seconds,
        "images_per_s_of_a_run": statistics.median(rates) if rates else None,
        "failed": [run.problem for run in pool.runs if run.state != "done"],
    }


def measure_ranks(setting: Setting) -> Report:
    """Measure ZeRO's stages on one rank, two ranks, which NCCL may refuse on one GPU, and DeepSpeed beside DDP."""
    recipe = DEIT.model_copy(update={"precision": "fp32", "drop_path": 0.0, "batch_size": 32, "mix_group": 0})
    recipe = shorten(recipe, 6 if setting.is_small else 60, 320)
    experiment = Experiment(model="convit_micro", dataset="cifar10_sample", image_size=32, recipe=recipe)
    ways = {"two_ranks": {"num_ranks": 2}} | {f"zero_{stage}": {"zero_stage": stage} for stage in range(4)}
    report: Report = {}
    for name, changes in ways.items():
        try:
            run = train(setting.empty_folder(name), experiment, setting.resources(**changes))
            report[name] = {"images_per_s": statistics.median(images_per_s(run)), "loss": run.last_metrics()["loss"]}
        except RuntimeError as error:
            report[name] = {"error": str(error)}
    script = Path(__file__).with_name("deepspeed_step.py")
    size = ["--batch", "16", "--rounds", "2"] if setting.is_small else ["--model", "deit_ti", "--batch", "512"]
    command = [sys.executable, str(script), "--device", setting.resources().device, *size]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    report["deepspeed_beside_ddp"] = {"lines": done.stdout.splitlines()}
    if done.returncode:
        report["deepspeed_beside_ddp"]["error"] = done.stderr[-2000:]
    return report | {"failed": [name for name, found in report.items() if "error" in found and name != "two_ranks"]}


# -- all parts


def describe_all(setting: Setting) -> Report:
    """Describe the machine that everything else is measured on."""
    report: Report = {"machine": describe_machine(), "versions": list_versions()}
    if setting.is_small:
        return report
    card = torch.cuda.get_device_properties(0)
    report |= {"gpu": card.name, "memory_gib": card.total_memory / 2**30, "processors": card.multi_processor_count}
    report |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "nccl": torch.cuda.nccl.version()}
    asked = subprocess.run(["nvidia-smi"], capture_output=True, encoding="utf-8", errors="replace")
    return report | {"nvidia_smi": asked.stdout.splitlines()}


PARTS: dict[str, Callable[[Setting], Report]] = {
    "machine": describe_all,
    **{name: partial(measure_case, name) for name in CASES},
    "packing": measure_packing,
    "ranks": measure_ranks,
}


def work_through(parts: Mapping[str, Callable[[], Report]], path: Path, again: Collection[str] = ()) -> list[str]:
    """Measure the parts that a report lacks; one that fails stops no other.

    Args:
        parts: functions that measure, by name; what they return names under "failed" what went wrong.
        path: the report, written after each part.
        again: names of parts that are measured even if the report has them.

    Returns:
        The names of the parts that have failed.
    """
    report: dict[str, Report] = json.loads(path.read_bytes()) if path.exists() else {}
    for name, measure in parts.items():
        if name in report and not report[name].get("failed") and name not in again:
            continue
        try:
            report[name] = measure()
        except Exception as error:
            report[name] = {"failed": [f"{type(error).__name__}: {error}"], "traceback": traceback.format_exc()}
        print(name, json.dumps(report[name], indent=1), flush=True)
        write_atomically(path, json.dumps(report, indent=1).encode() + b"\n")
    return [name for name in parts if report[name].get("failed")]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu", help="cpu: a rehearsal in a small form")
    parser.add_argument("--out", type=Path, help="folder of the report (default: runs/gpu-proof-<device>)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="steps that a round times")
    parser.add_argument("--at-once", type=int, default=8, help="runs that share the GPU")
    options = parser.parse_args()
    if options.device == "gpu" and not torch.cuda.is_available():
        parser.error("torch sees no GPU; --device cpu rehearses on the CPU")
    device = torch.device("cuda" if options.device == "gpu" else "cpu")
    rounds, steps = (1, 1) if options.device == "cpu" else (options.rounds, options.steps)
    out = options.out or Path("runs") / f"gpu-proof-{options.device}"
    setting = Setting(device, out, rounds, steps, options.at_once)
    (out / "scratch").mkdir(parents=True, exist_ok=True)
    parts = {name: partial(PARTS[name], setting) for name in options.parts or PARTS}
    failed = work_through(parts, out / "speed.json", options.parts or ())
    print(f"written to {out / 'speed.json'}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
