"""The metrics: the numbers of a result that a column may show, in the papers' units.

Every number of ``Result`` is one. A column of the table's header shows it if an ``Entry`` of the suite names both,
as ``suite/papers/convit/convit_imagenet.py`` does with ``speed_images_per_s``.
"""

from suite.base.errors import check_name
from suite.store.results import Result

# A paper that prints fractions or millions gets our value in its unit, so that the difference means something.
SCALED_METRICS = {
    "top1_fraction": ("top1_percent", 1e-2),
    "top5_fraction": ("top5_percent", 1e-2),
    "num_parameters_millions": ("num_parameters", 1e-6),
    "linear_gmacs": ("num_linear_macs", 1e-9),
    "linear_gflops": ("num_linear_macs", 2e-9),  # Cordonnier's "FLOPS": two for each multiply-add of linear layers
}
PLAIN_METRICS = tuple(
    name for name, field in Result.model_fields.items() if field.annotation in (int, float, float | None)
)
PRUNED_HEADS = {f"num_pruned_heads_layer_{number}": number - 1 for number in range(1, 13)}  # of so deep networks
_ACCURACIES = ("top1_percent", "top5_percent", "best_top1_percent", "top1_fraction", "top5_fraction")


def check_metric(metric: str) -> None:
    """Raise SpecError, with the nearest valid name, for a metric that no result has."""
    check_name("metric", metric, [*PLAIN_METRICS, *SCALED_METRICS, *PRUNED_HEADS])


def read_metric(result: Result, metric: str) -> float | None:
    """The value of ``metric``, whose name says the unit; None where a run has none, such as a gate without GPSA."""
    if metric in PRUNED_HEADS:
        layer = PRUNED_HEADS[metric]
        return float(result.num_pruned_heads[layer]) if layer < len(result.num_pruned_heads) else None
    name, scale = SCALED_METRICS.get(metric, (metric, 1.0))
    value: float | None = getattr(result, name)
    return None if value is None else float(value) * scale


def is_accuracy(metric: str) -> bool:
    """Whether higher is better, so that models may be ranked by it and tested against the paper's number."""
    return metric in _ACCURACIES


def in_points(metric: str) -> float:
    """The factor that turns a difference in ``metric`` into percentage points."""
    return 100.0 if metric.endswith("_fraction") else 1.0
