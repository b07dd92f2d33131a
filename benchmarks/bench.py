"""All benchmarks in short form, one after the other, and one table of what they measured.

    python benchmarks/bench.py [--only gpsa loaders] [--results benchmarks/results]      (make bench)

    each benchmark -> its lines of ``measured.Measurement`` -> results/<machine>.json -> results/<machine>.md

A ratio that fell by more than 15 % against the committed file of the same kind of machine is marked, however often it
is measured since. A benchmark that fails or cannot run here keeps its earlier figures with their day, and is named with
its reason.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from measured import LINES_VARIABLE, TIMM_VARIABLE, Measurement
from pydantic import ValidationError

from suite.base.frozen import Frozen
from suite.training.environment import processor_name

_HERE = Path(__file__).parent
_FELL = 0.85  # of the published ratio
_PACKAGES = ("torch", "timm", "deepspeed", "ffcv", "numpy")
_CASES_ON_GPU = ("deit_ti_32", "convit_ti_32", "deit_s_224", "convit_s_224", "sa_quadratic_32")
PATIENCE_S = 10  # for an answer of the cluster


class Short(NamedTuple):
    """A benchmark's short form: its script, options, and what it needs ("" for nothing), as ``why_not`` knows it."""

    name: str
    options: tuple[str, ...] = ()
    needs: str = ""


SHORT = (
    Short("gpsa", ("--rounds", "9")),
    Short("sa_quadratic", ("--rounds", "9")),
    Short("impulse_init", ("--steps", "60", "--full-steps", "0")),
    Short("deepspeed_step", ("--clock", "processor", "--rounds", "20")),
    Short("communication", ("--rounds", "8")),
    Short("whole_loop", ("--rounds", "5")),
    Short("compiled_step", ("--rounds", "9")),
    Short("steps_at_once", ("--rounds", "3")),
    Short("busy_cores", ("--rounds", "3")),
    Short("run_start", ("--rounds", "3")),
    Short("checkpoints", ("--models", "convit_micro", "deit_s")),
    Short("read_results", ("--seeds", "200")),
    Short("live_pages", ("--seeds", "20")),
    Short("loaders", ("--part", "cifar", "--rounds", "5")),
    Short("loaders", ("--part", "photographs", "--rounds", "5")),
    Short("containers", ("--rounds", "5")),
    Short("timm_train", ("--rounds", "3"), "timm's repository"),
    Short("slurm_submit", ("--rounds", "5"), "slurm"),
    Short("gpu", ("--out", str(Path(tempfile.gettempdir()) / "benchmark_on_gpu"), "--parts", *_CASES_ON_GPU), "gpu"),
)


class Results(Frozen):
    """One machine's measurements.

    Attributes:
        machine: processor, cores and GPU.
        versions: Python's version and those of the packages that are timed, at the latest day.
        measurements: All of them, in the order of ``SHORT``.
    """

    machine: str
    versions: dict[str, str]
    measurements: tuple[Measurement, ...]


def why_not(needs: str) -> str:
    """Why a benchmark cannot run here; "" where it can."""
    if needs == "gpu" and not torch.cuda.is_available():
        return "no GPU"
    if needs == "slurm" and not _has_cluster():
        return "no SLURM cluster"
    if needs == "timm's repository" and not (Path(os.environ.get(TIMM_VARIABLE, "-")) / "train.py").is_file():
        return f"no checkout of timm's repository: {TIMM_VARIABLE} names its folder (benchmarks/timm_train.py)"
    return ""


def _has_cluster() -> bool:
    """Whether a SLURM controller answers; one that is down makes ``sinfo`` wait for minutes."""
    try:
        return subprocess.run("sinfo", capture_output=True, timeout=PATIENCE_S).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def run_short(short: Short) -> tuple[list[Measurement], str]:
    """Run one benchmark as a process of its own; returns what it measured, and why it failed."""
    command = [sys.executable, str(_HERE / f"{short.name}.py"), *short.options]
    print(f"\n== {short.name} {' '.join(short.options)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        done = subprocess.run(command, env={**os.environ, LINES_VARIABLE: str(lines)})
        text = lines.read_text(encoding="utf-8") if lines.exists() else ""
    found = [Measurement.model_validate_json(line) for line in text.splitlines()]
    return found, f"ended with exit status {done.returncode}" if done.returncode else ""


def describe() -> str:
    """Name this kind of machine."""
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{processor_name()}, {len(os.sched_getaffinity(0))} cores{gpu}"


def read_results(path: Path) -> Results | None:
    """Read a machine's earlier results; None where there are none.

    Raises:
        SystemExit: if the file is not one of ours.
    """
    return _parse(path.read_bytes(), path) if path.exists() else None


def read_published(path: Path) -> Results | None:
    """Read the same as it was committed last; None outside a checkout, or where it never was."""
    command = ["git", "-C", str(path.parent), "show", f"HEAD:./{path.name}"]
    with suppress(OSError):
        done = subprocess.run(command, capture_output=True)
        return _parse(done.stdout, path) if done.returncode == 0 else None
    return None


def _parse(text: bytes, path: Path) -> Results:
    try:
        return Results.model_validate_json(text)
    except ValidationError as error:
        raise SystemExit(f"{path} does not hold results of bench.py; move it away: {error}") from error


def merge(before: Results | None, found: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """Put what was found in place of what was measured before, and keep the rest."""
    merged = {measurement.place: measurement for measurement in (before.measurements if before else ())}
    merged |= {measurement.place: measurement for measurement in found}
    names = [short.name for short in SHORT]
    known = [measurement for measurement in merged.values() if measurement.benchmark in names]  # others are no more
    return tuple(sorted(known, key=lambda measurement: names.index(measurement.benchmark)))


def fallen(before: Results | None, found: Iterable[Measurement]) -> dict[tuple[str, str, str], float]:
    """The earlier ratios, by place, of what is now more than 15 % below them."""
    old = {measurement.place: measurement.ratio for measurement in (before.measurements if before else ())}
    return {
        measurement.place: old[measurement.place]
        for measurement in found
        if measurement.ratio < _FELL * old.get(measurement.place, 0.0)
    }


def write_table(results: Results, fell: dict[tuple[str, str, str], float]) -> str:
    """Spell results as a Markdown table, best read beside the benchmarks' docstrings."""
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    words = (
        f"{versions}. How many times as fast as its reference each is: the median over the rounds, the slowest and the "
        "fastest of them in brackets. Made by `make bench`."
    )
    head = ["| benchmark | what | reference | times as fast | rounds | day |", "|---|---|---|---|---|---|"]
    lines = [_line(measurement, fell.get(measurement.place)) for measurement in results.measurements]
    return "\n".join([f"# {results.machine}", "", words, "", *head, *lines, ""])


def _line(measurement: Measurement, before: float | None) -> str:
    mark = "" if before is None else f" **fell from {before:.3g}**"
    spread = f"[{min(measurement.ratios):.3g}, {max(measurement.ratios):.3g}]"
    cells = (f"`{measurement.benchmark}.py`", measurement.what, measurement.reference)
    about = (f"{measurement.ratio:.3g} {spread}{mark}", str(len(measurement.ratios)), measurement.measured_at)
    return f"| {' | '.join((*cells, *about))} |"


def list_versions() -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in _PACKAGES if find_spec(name)}
    return {"Python": platform.python_version()} | found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=sorted({short.name for short in SHORT}))
    parser.add_argument("--results", type=Path, default=_HERE / "results")
    options = parser.parse_args()
    chosen = [short for short in SHORT if options.only is None or short.name in options.only]
    machine = describe()
    path = options.results / f"{re.sub(r'[^a-z0-9]+', '-', machine.lower()).strip('-')}.json"
    before, found, problems = read_results(path), list[Measurement](), dict[str, str]()
    for short in chosen:
        reason = why_not(short.needs)
        if not reason:
            more, reason = run_short(short)
            found += more
        if reason:
            problems[short.name] = reason
    options.results.mkdir(parents=True, exist_ok=True)
    results = Results(machine=machine, versions=list_versions(), measurements=merge(before, found))
    fell = fallen(read_published(path), results.measurements)
    path.write_text(results.model_dump_json(indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(write_table(results, fell), encoding="utf-8")
    print(f"\n{write_table(results, fell)}\nwritten to {path.with_suffix('.md')}")
    for name, reason in problems.items():
        print(f"left out: {name}: {reason}")
    if any(reason.startswith("ended") for reason in problems.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
