"""What each finished run was and cost, one line a run: ``<profile>.runs.csv`` beside the leaderboard."""

from __future__ import annotations

import contextlib
import csv
import io
from pathlib import Path
from typing import Any

from suite.errors import RecordError
from suite.profiles import Profile
from suite.records import Result, find_runs

_COLUMNS = (
    "run", "kind", "parent", "model", "dataset", "train_fraction", "seed", "top1_percent", "top5_percent",
    "best_top1_percent", "num_evaluations", "device_hours", "images_per_s", "mfu_percent", "device", "num_nodes",
    "num_ranks", "num_attempts", "num_requeues", "loader", "num_corrupt_images", "protocol_version", "commit",
    "finished_at",
)  # fmt: skip


def render_accounting(profile: Profile, store: Path) -> str:
    """CSV of all readable results of a profile, cells in its order, seeds ascending; also of the runs that others
    depend on, and of all candidates of a search."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for experiment in profile.experiments():
        for run in find_runs(store, experiment).values():
            with contextlib.suppress(RecordError):  # the leaderboard names it
                result = run.read_result()
                if result is not None:
                    writer.writerow(_row(result))
    return text.getvalue()


def _row(result: Result) -> dict[str, Any]:
    experiment = result.experiment
    hours, rate = round(result.device_hours, 5), round(result.images_per_s, 1)
    mfu = None if result.mfu_percent is None else round(result.mfu_percent, 2)
    return {
        **result.model_dump(exclude={"experiment"}),
        **experiment.model_dump(include={"kind", "model", "dataset", "train_fraction", "seed"}),
        "run": experiment.id,
        "top1_percent": round(result.top1_percent, 4),
        "top5_percent": round(result.top5_percent, 4),
        "best_top1_percent": round(result.best_top1_percent, 4),
        "device_hours": hours,
        "images_per_s": rate,
        "mfu_percent": mfu,
    }
