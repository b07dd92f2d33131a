"""How far a run has come, from its metrics, for whoever shows it."""

from __future__ import annotations

from suite.store.run_directory import RunDirectory

LONGEST_S = 1e9  # that a time to go is shown as: rates may be damaged


def read_progress(run: RunDirectory) -> dict[str, float]:
    """Read the latest logged numbers by name.

    Returns:
        ``step`` and ``num_steps`` both or neither, and with them what else was logged; {} before the first line.
    """
    logged = run.last_metrics()
    numbers = {name: value for name, value in logged.items() if not isinstance(value, list)}
    if numbers.get("images_per_s", 1) <= 0:
        del numbers["images_per_s"]
    return numbers if {"step", "num_steps"} <= numbers.keys() else {}
