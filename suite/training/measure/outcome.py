"""From what a run has done to its ``Result``."""

import time
from datetime import UTC, datetime
from typing import Any

from torch import nn

from imagesets.loader import ImageLoader
from suite.cost.costs import TRAINING, options_to_count
from suite.cost.known_flops import Flops
from suite.models.cordonnier.head_pruning import count_pruned_heads, pruned_options
from suite.models.flops import count_flops
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.store.attempts import device_hours, energy_kwh, num_requeues, peak_memory_gb, read_attempts
from suite.store.predictions import write_predictions
from suite.store.results import PROTOCOL_VERSION, RESULT_FORMAT, Result
from suite.store.run_directory import RunDirectory
from suite.training.distributed import Ranks
from suite.training.environment import commit, device_name
from suite.training.measure.evaluate import Accuracy
from suite.training.start import Parent, has_batch_norm

# Dense products per second by the makers' data sheets, in 10^12: (fp32, which training never rounds to TF32; bf16), by
# the name that the driver gives. Another variant of a chip, or a slice of one, has another peak and another name.
_PEAK_TFLOPS = {
    "Tesla V100-SXM2-16GB": (15.7, 125.0),  # fp16, as of the next four
    "Tesla V100-SXM2-32GB": (15.7, 125.0),
    "Tesla V100-PCIE-16GB": (14.0, 112.0),
    "Tesla V100-PCIE-32GB": (14.0, 112.0),
    "Tesla T4": (8.1, 65.0),
    "NVIDIA A100-SXM4-40GB": (19.5, 312.0),
    "NVIDIA A100-SXM4-80GB": (19.5, 312.0),
    "NVIDIA A100-PCIE-40GB": (19.5, 312.0),
    "NVIDIA A100 80GB PCIe": (19.5, 312.0),
    "NVIDIA A40": (37.4, 149.7),
    "NVIDIA L40S": (91.6, 362.0),
    "NVIDIA L4": (30.3, 121.0),
    "NVIDIA H100 PCIe": (51.0, 756.0),
    "NVIDIA H100 NVL": (60.0, 835.0),
    "NVIDIA H100 80GB HBM3": (67.0, 989.0),
    "NVIDIA H200": (67.0, 989.0),
    "NVIDIA H200 NVL": (60.0, 835.0),
    "NVIDIA GH200 120GB": (67.0, 989.0),
    "NVIDIA GH200 480GB": (67.0, 989.0),
    "NVIDIA B200": (80.0, 2250.0),
    "NVIDIA GB200": (80.0, 2500.0),  # of the two of a superchip
    "AMD Instinct MI300X": (163.4, 1307.4),
    "NVIDIA RTX 6000 Ada Generation": (91.1, 364.2),
    "NVIDIA GeForce RTX 3090": (35.6, 71.0),
    "NVIDIA GeForce RTX 4090": (82.6, 165.2),
    "NVIDIA GeForce RTX 5090": (104.8, 209.5),
}


def make_result(
    *,
    run: RunDirectory,
    experiment: Experiment,
    resources: Resources,
    ranks: Ranks,
    images: ImageLoader,
    network: nn.Module,
    accuracy: Accuracy,
    parent: Parent | None,
    num_steps: int = 0,
    train_s: float = 0.0,
    best_top1_percent: float = 0.0,
    **measured: Any,
) -> Result:
    """Make the first rank's record of a finished run.

    Args:
        parent: the run that this one starts from, measures or learns from.
        num_steps, train_s, best_top1_percent: training of the run; 0 for one that only measures.
        measured: other fields of ``Result``, such as the parameters, which ZeRO stage 3 hides in ``network``.
    """
    attempts, device = read_attempts(run), device_name(resources)
    attempts[-1:] = [attempt.model_copy(ended_at=time.time()) for attempt in attempts[-1:]]  # this one
    images_seen = num_steps * experiment.recipe.batch_size
    images_per_s = images_seen / max(train_s, 1e-9)
    options = options_to_count(experiment) | pruned_options(network)  # a pruned network has fewer heads than these say
    sizes = {"num_classes": images.info.num_classes, "image_size": experiment.image_size}
    flops = count_flops(experiment.model, **sizes, **options)
    mfu = mfu_percent(flops, experiment.recipe, images_per_s / ranks.num_ranks, device)
    inherited_s = parent.result.lineage_train_s if parent is not None and experiment.inherits_weights else 0.0
    return Result(
        format_version=RESULT_FORMAT,
        experiment=experiment,
        top1_percent=accuracy.top1_percent,
        top5_percent=accuracy.top5_percent,
        test_loss=accuracy.loss,
        best_top1_percent=max(best_top1_percent, accuracy.top1_percent),
        num_train_images=images.num_train,
        num_test_images=accuracy.num_images,
        predictions_sha256=write_predictions(run, accuracy.predictions),
        loader=images.storage_format,
        num_steps=num_steps,
        images_seen=images_seen,
        train_s=train_s,
        images_per_s=images_per_s,
        device=device,
        num_ranks=ranks.num_ranks,
        threads_per_rank=resources.threads_per_rank if resources.device == "cpu" else 0,
        micro_batch_size=resources.split_batch(experiment.recipe.batch_size)[0] if experiment.is_trained else 0,
        has_batch_norm=has_batch_norm(network) and experiment.is_trained,
        compiled=resources.compiled and experiment.is_trained,
        num_nodes=attempts[-1].num_nodes if attempts else 1,
        num_attempts=len(attempts),
        num_requeues=num_requeues(attempts),
        num_unusable_checkpoints=sum(attempt.num_unusable_checkpoints for attempt in attempts),
        device_hours=device_hours(attempts),
        staging_s=sum(attempt.staging_s for attempt in attempts),
        energy_kwh=energy_kwh(attempts),
        peak_memory_gb=peak_memory_gb(attempts),
        plan_sha256=resources.plan_sha256,
        mfu_percent=mfu if experiment.is_trained else None,
        inference_images_per_s=accuracy.images_per_s,
        num_macs=flops.total // 2,
        num_linear_macs=flops.linear // 2,
        num_pruned_heads=count_pruned_heads(network),
        lineage_train_s=train_s + inherited_s,
        parent=parent.experiment.id if parent is not None else "",
        protocol_version=PROTOCOL_VERSION,
        commit=commit(),
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        **measured,
    )


def mfu_percent(flops: Flops, recipe: Recipe, images_per_s: float, device: str) -> float | None:
    """Model FLOPs utilisation: what one device trains, over its peak in the recipe's precision; None for unknown
    devices.

    Args:
        flops: FLOPs of the trained network, without a teacher's.
        images_per_s: images per second of one device.
    """
    peaks = _PEAK_TFLOPS.get(device)
    if peaks is None:
        return None
    return 100 * images_per_s * TRAINING * flops.total / (peaks[recipe.precision == "bf16"] * 1e12)
