"""How far a run has come, from its metrics, for whoever shows it. What is no number there is left out."""

from __future__ import annotations

import math

from suite.records import RunDirectory


def read_progress(run: RunDirectory) -> dict[str, float]:
    """Read the latest logged numbers by name.

    Returns:
        ``step`` and ``num_steps`` both or neither, and with them what else was logged; {} before the first line.
    """
    logged = run.last_metrics()
    numbers = {name: value for name, value in logged.items() if _is_number(value)}
    return numbers if {"step", "num_steps"} <= numbers.keys() else {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
