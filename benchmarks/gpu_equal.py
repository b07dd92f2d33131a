"""A GPU against the CPU: models forward and backward, augmented batches, and the first losses of a training."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import short_runs
import torch
import torch.nn.functional as F
from torch import nn

from imagesets.loader import ImageLoader
from suite.models.registry import build_model, list_models
from suite.spec.resources import Resources

_OUTPUTS = 1e-4  # relative L2 error of logits in fp32, and ten times that of gradients
_WITH_TF32 = 5e-3  # the same where products of fp32 are allowed to be TF32's
_LEVEL = 0.02  # normalized: one of 256 levels, by which a rounding may differ
_DIFFERING = 1e-3  # share of pixels that may differ at all
_LOSSES = 1e-2  # relative difference of any of the first losses, fp32


def check(options: argparse.Namespace, resources: Resources) -> dict[str, Any]:
    device = torch.device("cuda" if options.device == "gpu" else "cpu")
    report: dict[str, Any] = {"tf32": _tf32(), "models": {}, "batches": {}, "losses": {}}
    for model in short_runs.each_model(list_models(), options.small):
        report["models"][model] = _compare_model(model, device)
    for model in short_runs.five_models():
        report["batches"][model] = _compare_batch(model, device)
    for model in ("vit_t", "convit_micro", "resnet18_cifar"):
        report["losses"][model] = _compare_losses(model, options, resources)
    limit = _WITH_TF32 if report["tf32"] else _OUTPUTS
    differing = [m for m, e in report["models"].items() if not (e["logits"] < limit and e["gradients"] < 10 * limit)]
    differing += [m for m, e in report["batches"].items() if not (e["largest"] < _LEVEL and e["share"] < _DIFFERING)]
    differing += [m for m, e in report["losses"].items() if not e["largest"] < _LOSSES]
    tolerances = {"logits": limit, "gradients": 10 * limit, "largest": _LEVEL, "share": _DIFFERING, "losses": _LOSSES}
    return report | {"tolerances": tolerances, "failed": differing}


def _tf32() -> bool:
    return bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)


def _compare_model(name: str, device: torch.device) -> dict[str, float]:
    """Relative L2 errors of logits and of all gradients, in evaluation mode, at 32 pixels."""
    torch.manual_seed(0)
    model = build_model(name, num_classes=10, image_size=32).eval()
    images, labels = torch.randn(8, 3, 32, 32), torch.arange(8)
    expected = _forward_backward(model, images, labels)
    found = _forward_backward(model.to(device), images.to(device), labels.to(device))
    return {key: _relative(found[key], expected[key]) for key in expected}


def _forward_backward(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    logits = model(images)
    F.cross_entropy(logits, labels).backward()
    gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return {"logits": logits.detach().cpu(), "gradients": torch.cat(gradients).cpu()}


def _relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def _compare_batch(name: str, device: torch.device) -> dict[str, float]:
    """The third augmented batch of a suite's recipe: the largest difference, and the share of pixels that differ."""
    images = ImageLoader(short_runs.shorten(short_runs.five_models()[name], 4, 64), Resources())
    expected, labels = images.train_batch(2)
    batch = next(images.train_batches(2, 3, device=device))
    difference = (batch.images.cpu() - expected).abs()
    same = torch.allclose(batch.labels.cpu().float(), labels.float(), atol=1e-6)
    return {"largest": float(difference.max()) if same else 99.0, "share": float((difference > 1e-4).float().mean())}


def _compare_losses(name: str, options: argparse.Namespace, resources: Resources) -> dict[str, Any]:
    """Ten steps on the device and on the CPU, each in a process of its own."""
    steps, batch = (3, 8) if options.small else (10, 32)
    experiment = short_runs.of_model(name, 32, "fp32", steps, batch)
    curves: list[list[float]] = []
    for device in ("cpu", options.device):
        run = short_runs.new_run(Path(options.scratch, f"{name}-{device}-{len(curves)}"), experiment)
        there = resources.model_copy(update={"device": device})
        if short_runs.start(run, there).wait():
            return {"largest": 99.0, "error": short_runs.newest_lines(run, 15)}
        curves.append(short_runs.losses(run))
    ours = [abs(a - b) / abs(b) for a, b in zip(curves[1], curves[0], strict=True)]
    return {"largest": max(ours), "cpu": curves[0], "device": curves[1]}
