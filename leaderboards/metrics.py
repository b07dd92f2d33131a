"""The numbers of a ``Result`` that an entry may show in a column, in the unit of the paper's table."""

from __future__ import annotations

from suite.errors import check_name
from suite.records import Result

# A paper that prints fractions or millions gets our value in its unit, so that the difference means something.
SCALED_METRICS = {
    "top1_fraction": ("top1_percent", 1e-2),
    "top5_fraction": ("top5_percent", 1e-2),
    "num_parameters_millions": ("num_parameters", 1e-6),
}
PLAIN_METRICS = tuple(name for name, field in Result.model_fields.items() if field.annotation in (int, float))


def check_metric(metric: str) -> None:
    """Refuse a metric that no result has.

    Raises:
        SpecError: with the nearest valid name.
    """
    valid = [*PLAIN_METRICS, *SCALED_METRICS]
    check_name("metric", metric, valid)


def read_metric(result: Result, metric: str) -> float:
    """The value of ``metric``; its name says the unit."""
    name, scale = SCALED_METRICS.get(metric, (metric, 1.0))
    return float(getattr(result, name)) * scale
