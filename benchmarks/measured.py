"""Notes what a benchmark measured: one thing beside its named reference, as ratios that travel from machine to machine.

a benchmark -> note() -> a line of JSON each -> bench.py -> results/<machine>.json and .md
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from suite.base.frozen import Frozen

LINES_VARIABLE = "BENCHMARK_LINES"
"""Names the file that gets the lines; a benchmark that is started by hand only prints."""
TIMM_VARIABLE = "TIMM_CHECKOUT"
"""Names the folder of timm's repository, without which ``timm_train`` is left out."""


class Measurement(Frozen):
    """One thing beside its reference.

    Attributes:
        benchmark: The script's name, without ".py".
        what: The thing that is measured, with its sizes.
        reference: The thing that it is compared with, in the same process or in turn with it.
        ratios: How many times as fast as the reference it was in each round, so that more is better.
        measured_at: The day, UTC.
    """

    benchmark: str
    what: str
    reference: str
    ratios: tuple[float, ...] = Field(min_length=1)
    measured_at: str = Field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))

    @property
    def place(self) -> tuple[str, str, str]:
        """Finds the same measurement in earlier results."""
        return self.benchmark, self.what, self.reference

    @property
    def ratio(self) -> float:
        """The median over the rounds."""
        return statistics.median(self.ratios)


def note(what: str, reference: str, ours: Sequence[float], references: Sequence[float]) -> None:
    """Hand a measurement to ``bench.py``, where that started this benchmark.

    Args:
        what, reference: The attributes of ``Measurement``.
        ours, references: Seconds of each round, in their order. Rates go in with the two exchanged.
    """
    path = os.environ.get(LINES_VARIABLE)
    if not path:
        return
    ratios = tuple(round(b / a, 4) for a, b in zip(ours, references, strict=True))
    measurement = Measurement(benchmark=Path(sys.argv[0]).stem, what=what, reference=reference, ratios=ratios)
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(measurement.model_dump_json() + "\n")
