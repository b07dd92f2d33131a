"""Records of finished runs -> the numbers of a suite's tables, by none of the suite's statistics.

What a place shows, and what the paper prints there, is asked of ``suite.spec`` and ``suite.papers``, which are
definitions. All arithmetic is here. ``recompute.py`` compares it with what is published.
"""

from __future__ import annotations

import csv
import json
import math
import re
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import safetensors.numpy
from scipy import stats

from suite.papers import find_table
from suite.spec.profile import Entry, Profile
from suite.spec.suite import ChangeFrom, Derived, Gain, MeanOf, RankedWithin, RelativeTo, Suite, Table

Run = dict[str, Any]  # "result", and the bytes of what else the records hold, by the file's name
Runs = dict[str, dict[int, Run]]  # by configuration and seed
Key = tuple[tuple[str, ...], str]  # row and column
Formula = Callable[..., tuple[float, Sequence[float]]]  # means -> what is derived from them, its derivative by each
ACCURACIES = ("top1_percent", "top5_percent", "best_top1_percent", "top1_fraction", "top5_fraction")
_UNITS = {
    "top1_fraction": ("top1_percent", 1e-2),
    "top5_fraction": ("top5_percent", 1e-2),
    "num_parameters_millions": ("num_parameters", 1e-6),
    "linear_gmacs": ("num_linear_macs", 1e-9),
    "linear_gflops": ("num_linear_macs", 2e-9),
}


def read_records(path: Path) -> tuple[Runs, dict[str, Any]]:
    """Read the runs of packed records, and what else they hold (custom models, frozen plans) by its name."""
    runs: Runs = {}
    others: dict[str, Any] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            folder, *of_run, name = Path(member.name).parts
            content = archive.extractfile(member).read()  # type: ignore[union-attr]
            if name == "maps.safetensors":
                content = _read_between(content)
            if folder != "experiments":
                others[member.name] = json.loads(content)
                continue
            run = runs.setdefault(of_run[0], {}).setdefault(int(of_run[1].removeprefix("seed-")), {})
            run |= {"result": json.loads(content)} if name == "result.json" else {name: content}
    return runs, others


def _read_between(maps: bytes) -> bytes:
    """The percentage of attention that goes one patch away, by moment and layer, as JSON: what claims ask of maps."""
    header = json.loads(maps[8 : 8 + int.from_bytes(maps[:8], "little")])
    _, columns = json.loads(header["__metadata__"]["grid"])
    percentages = {}
    for name, between in safetensors.numpy.load(maps).items():
        moment, layer, what = name.split("/") if name.count("/") == 2 else ("", "", "")
        if what == "between":
            total = 0.0
            for query, key in product(range(len(between)), repeat=2):
                across, down = abs(query % columns - key % columns), abs(query // columns - key // columns)
                total += float(between[query, key]) if max(across, down) == 1 else 0.0
            percentages[f"{moment} {int(layer) + 1}"] = 100 * total / len(between)
    return json.dumps(percentages).encode()


# -- a number by seed


class Number(NamedTuple):
    """A number by seed, its mean (nan without runs), and the smallest deviation that is believed."""

    values: pd.Series[float]
    mean: float
    least_sd: float = 0.0

    @property
    def sd(self) -> float:
        """The deviation over seeds; 0 where no seed changes anything."""
        if len(self.values) < 2:
            return 0.0
        found = float(self.values.std(ddof=1))
        return max(self.least_sd, found if found > 1e-9 * float(self.values.abs().max()) else 0.0)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval by Student's t; nan below three seeds, and where nothing scatters."""
        n = len(self.values)
        half = stats.t.ppf(0.975, n - 1) * self.sd / math.sqrt(n) if n > 2 and self.sd else math.nan
        return self.mean - half, self.mean + half

    def test(self, limit: float = 0.0) -> tuple[float, float]:
        """One-sided p-values of the mean being above a limit, and below."""
        n = len(self.values)
        if not self.sd:
            return 1.0, 1.0
        t = (self.mean - limit) * math.sqrt(n) / self.sd
        return float(stats.t.sf(t, n - 1)), float(stats.t.cdf(t, n - 1))


def number(values: Mapping[int, float], least_sd: float = 0.0) -> Number:
    """Make the mean of one number by seed."""
    series = pd.Series(values, dtype=float).sort_index()
    return Number(series, float(series.mean()), least_sd)


def combine(sources: Sequence[Number], formula: Formula) -> Number:
    """Derive a number from the means of others over the seeds that all have; by seed to first order."""
    frame = pd.concat([source.values for source in sources], axis="columns", join="inner")
    if frame.empty:
        return Number(pd.Series(dtype=float), formula(*(source.mean for source in sources))[0])
    value, slopes = formula(*frame.mean())
    by_seed = value + (frame - frame.mean()).mul(np.asarray(slopes)).sum(axis="columns")
    least = math.hypot(*(slope * source.least_sd for slope, source in zip(slopes, sources, strict=True)))
    return Number(by_seed, value, least)


def weighted(weights: Sequence[float], constant: float = 0.0) -> Formula:
    """The formula of a weighted sum."""
    return lambda *means: (constant + sum(w * m for w, m in zip(weights, means, strict=True)), weights)


def _relative_gain(better: float, baseline: float) -> tuple[float, Sequence[float]]:
    return 100 * (better / baseline - 1), (100 / baseline, -100 * better / baseline**2)


def _ratio(top: float, bottom: float) -> tuple[float, Sequence[float]]:
    return top / bottom, (1 / bottom, -top / bottom**2)


# -- cells


@dataclass(frozen=True)
class Cell:
    """A place of a table: ours, the paper's number (nan: none), and the runs behind it; none where it is derived.

    Args:
        hours: device hours of all candidates' runs; nan where it is derived.
        metric: what it shows; "" where it is derived from several.
    """

    number: Number
    paper: float
    metric: str
    runs: Mapping[int, Run] = field(default_factory=dict)
    hours: float = math.nan

    @property
    def per_point(self) -> float:
        """The factor to percentage points."""
        return 100.0 if self.metric.endswith("_fraction") else 1.0


def _read(result: Mapping[str, Any], metric: str) -> float | None:
    """One number of a result."""
    if heads := re.fullmatch(r"num_pruned_heads_layer_(\d+)", metric):
        layers = result.get("num_pruned_heads", [])
        return layers[int(heads[1]) - 1] if int(heads[1]) <= len(layers) else None
    name, unit = _UNITS.get(metric, (metric, 1.0))
    value = result.get(name)
    return None if value is None else unit * value


def _choose(candidates: Sequence[dict[int, Run]]) -> dict[int, Run]:
    """Show of each seed the candidate with the best mean accuracy over the other seeds that all have."""
    compared = [candidate for candidate in candidates if candidate]
    if len(candidates) == 1 or not compared:
        return candidates[0]
    seeds = sorted(set.intersection(*(set(candidate) for candidate in compared)))
    top1 = np.array([[candidate[seed]["result"]["top1_percent"] for seed in seeds] for candidate in compared])
    others = top1 if len(seeds) == 1 else top1.sum(axis=1, keepdims=True) - top1
    return {seed: compared[best][seed] for seed, best in zip(seeds, others.round(9).argmax(axis=0), strict=True)}


def _measure(entry: Entry, metric: str, paper: float, runs: Runs) -> Cell:
    """The cell of an entry that shows a metric. Accuracies move by one test image at least, counts of heads by one."""
    candidates = [runs.get(candidate.configuration, {}) for candidate in entry.candidates]
    read = {seed: (_read(run["result"], metric), run) for seed, run in _choose(candidates).items()}
    known = {seed: run for seed, (value, run) in read.items() if value is not None}
    step = 1.0 if metric.startswith("num_pruned_heads") else 0.0
    if metric in ACCURACIES and known:
        whole = 1 if metric.endswith("_fraction") else 100
        step = whole / min(run["result"]["num_test_images"] for run in known.values())
    hours = sum(run["result"]["device_hours"] for candidate in candidates for run in candidate.values())
    found = number({seed: value for seed, (value, _) in read.items() if value is not None}, step / math.sqrt(12))
    return Cell(found, paper, metric, known, hours)


def _sources(
    derived: Derived, row: tuple[str, ...], cells: Mapping[Key, Cell], of_rows: Mapping[tuple[str, ...], Cell]
) -> tuple[list[Cell | None], Formula]:
    """The sources and the formula of a derived cell."""
    if isinstance(derived, RelativeTo):
        return [of_rows.get(row), of_rows.get(derived.baseline)], _ratio
    if isinstance(derived, ChangeFrom):
        rows = [] if row == derived.baseline else [row, derived.baseline]
        return [cells.get((of, derived.of)) for of in rows], weighted((1, -1))
    if isinstance(derived, MeanOf):
        num = len(derived.columns)
        return [cells.get((row, column)) for column in derived.columns], weighted([1 / num] * num)
    pair = [cells.get((row, derived.better)), cells.get((row, derived.baseline))]
    return pair, weighted((1, -1)) if isinstance(derived, Gain) else _relative_gain


def read_printed(table: Table, entries: Iterable[Entry]) -> dict[tuple[str, ...], dict[str, str]]:
    """The paper's table by row and column; of a table of ours the rows alone."""
    if table.columns:
        return {entry.row: {} for entry in entries}
    with find_table(table.name).open(encoding="utf-8", newline="") as file:
        return {tuple(line[key] for key in table.row_keys): line for line in csv.DictReader(file)}


def _fill_table(entries: Sequence[Entry], table: Table, runs: Runs) -> dict[Key, Cell]:
    """All cells of one table: measured ones, then derived ones where all of their sources have a cell."""
    printed = read_printed(table, entries)

    def paper(row: tuple[str, ...], column: str) -> float:
        return float(printed[row].get(column) or math.nan)

    cells = {(e.row, c): _measure(e, m, paper(e.row, c), runs) for e in entries for c, m in e.columns.items()}
    for derived in table.derived:
        of_rows = {}
        if isinstance(derived, RelativeTo):
            of_rows = {e.row: _measure(e, derived.metric, math.nan, runs) for e in entries if not e.beside}
        for row in printed:
            sources, formula = _sources(derived, row, cells, of_rows)
            known = [source for source in sources if source is not None]
            if known and len(known) == len(sources):
                metrics = {source.metric for source in known}
                metric = metrics.pop() if isinstance(derived, MeanOf) and len(metrics) == 1 else ""
                found = combine([source.number for source in known], formula)
                cells[row, derived.column] = Cell(found, paper(row, derived.column), metric)
    return cells


def fill(suite: Suite, profile: Profile, runs: Runs) -> dict[str, dict[Key, Cell]]:
    """All cells of a suite at one scale, by table."""
    return {table.name: _fill_table(suite.entries_of(profile, table), table, runs) for table in suite.tables}


# -- comparisons within a table


def difference(better: Cell, baseline: Cell) -> tuple[Number, float]:
    """By how many points one cell exceeds another: ours, and the paper's."""
    factor = better.per_point
    ours = combine([better.number, baseline.number], weighted((factor, -factor)))
    return ours, factor * (better.paper - baseline.paper)


def find_groups(table: Table, cells: Mapping[Key, Cell]) -> list[list[Key]]:
    """The accuracies that the paper compares with each other."""
    found: dict[tuple[str, ...], list[Key]] = {}
    for row, column in cells if table.ranked != "none" else ():
        group: tuple[str, ...] = {"in_rows": row, "in_columns": (column,)}.get(str(table.ranked), ())
        if isinstance(table.ranked, RankedWithin):
            values = dict(zip(table.row_keys, row, strict=True))
            group = (column, *(values[key] for key in table.ranked.row_keys))
        if (metric := cells[row, column].metric) in ACCURACIES:
            found.setdefault((metric, *group), []).append((row, column))
    return list(found.values())


def rank(keys: Sequence[Key], cells: Mapping[Key, Cell]) -> dict[Key, tuple[int, int]]:
    """The best and worst rank of each cell of a group, by Holm's method over all pairs at 5 %; none of a single one."""
    pairs = [(a, b) for i, a in enumerate(keys) for b in keys[:i]]
    gaps = [difference(cells[a], cells[b])[0] for a, b in pairs]
    p = [min(1.0, 2 * min(gap.test())) if len(gap.values) > 2 else 1.0 for gap in gaps]
    better, worse = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0)
    for step, i in enumerate(np.argsort(p, kind="stable")):
        if p[i] * (len(p) - step) >= 0.05:
            break
        first, second = pairs[i] if gaps[i].mean > 0 else pairs[i][::-1]
        better[second] += 1
        worse[first] += 1
    return {key: (1 + better[key], len(keys) - worse[key]) for key in keys if pairs}
