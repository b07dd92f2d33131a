"""Training speed on a GPU: images/s and MFU, eager and compiled, ours and timm's models in one run.

    python benchmarks/gpu.py --out DIR [--device gpu] [--cases deit_ti_32 …] [--rounds 5] [--steps 10]

Synthetic: forward and backward pass and fused AdamW in bf16 autocast on one batch that stays on the device, each round
timed as a whole; the contenders of a case take turns. Real: a training of the same model by the project's own loop, on
CIFAR-10 (at 224 pixels resized from it, on the CPU), in deterministic mode; the rate and the share of time that waits
for images are the medians of its lines from the third on.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import short_runs
import timm
import torch
import torch.nn.functional as F
from measured import note
from timing import describe_machine, time_in_turn
from torch import nn

from suite.models.flops import count_flops
from suite.models.registry import build_model
from suite.papers.shared.deit import DEIT_CIFAR
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.training.environment import device_name
from suite.training.measure.utilization import mfu_percent


@dataclass(frozen=True)
class Case:
    """A model of ours, and timm's of the same shape where there is one."""

    model: str
    image_size: int
    batch_size: int
    options: dict[str, Any] = field(default_factory=dict)
    timms: str = ""


_AT_32 = {"patch_size": 4}
CASES = {
    "deit_ti_32": Case("deit_ti", 32, 2048, _AT_32, "deit_tiny_patch16_224"),
    "convit_ti_32": Case("convit_ti", 32, 2048, _AT_32, "convit_tiny"),
    "deit_s_224": Case("deit_s", 224, 512, {}, "deit_small_patch16_224"),
    "convit_s_224": Case("convit_s", 224, 512, {}, "convit_small"),
    "sa_quadratic_32": Case("sa_quadratic", 32, 256),
}
_GOALS = {"deit_s_224": 8_000, "deit_ti_32": 70_000}  # images/s


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


def training_steps(model: nn.Module, case: Case, device: torch.device, steps: int) -> Callable[[], None]:
    """Make a function that trains for some steps and waits for their end.

    Args:
        model: moved to the device.
        case: gives image and batch size.
        device: where it is trained.
        steps: so many in one call.
    """
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device.type == "cuda")
    size = case.image_size
    images = torch.randn(case.batch_size, 3, size, size, device=device)
    labels = torch.randint(10, (case.batch_size,), device=device)

    def run() -> None:
        for _ in range(steps):
            with torch.autocast(device.type, torch.bfloat16):
                loss = F.cross_entropy(model(images).float(), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        loss.item()  # waits for the device

    return run


def measure_synthetic(case: Case, options: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """Measure each contender's images per second, in turn.

    One that cannot be compiled or run is reported, and stops no other.
    """
    candidates: dict[str, Callable[[], None]] = {}
    report: dict[str, Any] = {}
    for name, model in contenders(case, not options.skip_compiled):
        try:
            candidates[name] = training_steps(model, case, device, options.steps)
            candidates[name]()  # compiles
        except Exception as error:
            candidates.pop(name, None)
            report[name] = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()[-2000:]}
    flops = count_flops(case.model, num_classes=10, image_size=case.image_size, **case.options)
    card = device_name(Resources(device="gpu" if device.type == "cuda" else "cpu"))
    timed = time_in_turn(candidates, options.rounds)
    for name, seconds in timed.items():
        rates = sorted(case.batch_size * options.steps / each for each in seconds)
        rate = statistics.median(rates)
        mfu = mfu_percent(flops, DEIT_CIFAR, rate, card)  # whose precision is bf16
        report[name] = {"images_per_s": round(rate, 1), "of_rounds": [round(r, 1) for r in rates], "mfu_percent": mfu}
    for name, seconds in timed.items():
        if (reference := name.replace("ours", "timm")) != name and reference in timed:
            title = f"training step, {case.model} at {case.image_size} px, {name}"
            note(title, reference, seconds, timed[reference])
    return report


def measure_real(name: str, case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """By the project's own loop, in a process of its own."""
    recipe = DEIT_CIFAR.model_copy(update={"batch_size": case.batch_size, "warmup_epochs": 0.0})
    if case.image_size != 32:
        recipe = recipe.model_copy(update={"crop": "random_resized", "crop_padding": 0})
    if case.model == "sa_quadratic":
        recipe = recipe.model_copy(update={"drop_path": 0.0})
    steps = 100 if case.image_size == 224 else 300
    dataset, steps = ("cifar10_sample", 3) if options.small else ("cifar10", steps)
    num_images = 320 if options.small else 50_000
    recipe = recipe.with_epochs(steps * case.batch_size / num_images)
    experiment = Experiment(
        model=case.model, model_options=case.options, dataset=dataset, image_size=case.image_size, recipe=recipe
    )
    run = short_runs.new_run(short_runs.empty_folder(options.out / "scratch" / name), experiment)
    threads = max(1, torch.get_num_threads())
    resources = Resources(device=options.device, threads_per_rank=threads, num_evaluations=1)
    if status := short_runs.start(run, resources).wait():
        return {"status": status, "log": short_runs.newest_lines(run, 15)}
    lines = [line for line in run.read_metrics() if "images_per_s" in line][2:]
    return {
        key: round(statistics.median(line[key] for line in lines), 2) for key in ("images_per_s", "data_wait_percent")
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="of a round")
    parser.add_argument("--skip-compiled", action="store_true")
    parser.add_argument("--small", action="store_true", help="one step of two images, for a rehearsal")
    options = parser.parse_args()
    if options.small:
        options.rounds, options.steps, options.skip_compiled = 1, 1, True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device("cuda" if options.device == "gpu" else "cpu")
    report: dict[str, Any] = {"machine": describe_machine(), "device": device_name(Resources(device=options.device))}
    for name in options.cases:
        case = CASES[name]
        if options.small:
            case = Case(case.model, case.image_size, 2, case.options, case.timms)
        found = {"batch_size": case.batch_size, "synthetic": measure_synthetic(case, options, device)}
        report[name] = found | {"real": measure_real(name, case, options), "goal_images_per_s": _GOALS.get(name)}
        torch.cuda.empty_cache()
        torch.compiler.reset()
        short_runs.write_report(options.out, "speed", report)  # after each case: what is measured stays
    return 1 if any("error" in found for name in options.cases for found in report[name]["synthetic"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
