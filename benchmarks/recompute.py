"""Recompute every published number from the records of its runs, by none of the suite's statistics.

    python benchmarks/recompute.py [BOARD.md ...] [--boards FOLDER]

Of each board whose experiments the suite still trains: the cells, effects and ranks of ``<profile>.long.csv``, the
tables in the papers' layout, the headline, the comparisons of custom models, the runs, and the predictions of runs that
kept them. Without BOARD.md also ``claims.csv``, from the records of all boards. Only numbers of scales that are not the
papers' have been published, so that the verdicts of the papers' own scale are left out. Exits with 1 if a number
differs by more than its rounding.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from recomputed_claims import judge_paper
from recomputed_numbers import Cell, Key, Number, Runs, difference, fill, find_groups, rank, read_printed, read_records
from scipy import stats

from suite.papers import get_suite, list_claims, list_suites
from suite.spec.custom_entries import with_custom_models
from suite.spec.custom_model import CustomModel
from suite.spec.profile import Profile
from suite.spec.suite import ChangeFrom, Gain, Suite, Table

PUBLISHED = Path(__file__).parents[1] / "leaderboards" / "published"
DIGITS = 10  # of long.csv and challengers.csv
DIGITS_OF_CLAIMS = 6
Tables = Mapping[str, Mapping[Key, Cell]]


class Ledger:
    """The numbers of one board: how many were checked, and which differ."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.num_checked = 0
        self.differing: list[str] = []

    def check(self, what: str, published: str, ours: Any, digits: int = 0) -> None:
        """Compare what is published with our number or word; nan stands for an empty place.

        Args:
            what: name of the number.
            published, ours: the two.
            digits: significant digits that are published; 0: as many decimals as stand there.
        """
        self.num_checked += 1
        if isinstance(ours, str) or not published or math.isnan(ours):
            same = published == (ours if isinstance(ours, str) or not math.isnan(ours) else "")
        elif not re.fullmatch(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", published):
            same = False
        elif digits:
            same = math.isclose(float(published), ours, rel_tol=6 * 10.0**-digits, abs_tol=1e-9)
        else:
            unit = 10.0 ** int(Decimal(published).as_tuple().exponent)
            same = abs(float(published) - ours) <= 0.5 * unit + 1e-9 * abs(ours)
        if not same:
            self.differing.append(f"{what}: published {published or 'nothing'}, recomputed {ours}")

    def check_names(self, what: str, published: Iterable[Any], ours: Iterable[Any]) -> None:
        """Name what only one side has."""
        found, expected = set(published), set(ours)
        self.differing += [f"{what} {name}: not recomputed" for name in sorted(map(str, found - expected))]
        self.differing += [f"{what} {name}: not published" for name in sorted(map(str, expected - found))]


def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# -- the files of a board


def find_records(board: Path) -> Path:
    """The records of a board: beside it, or the published ones."""
    own = board.with_suffix(".records.tar.xz")
    return own if own.exists() else PUBLISHED / board.parent.name / own.name


def check_board(board: Path, ledger: Ledger) -> tuple[Runs, bool]:
    """Check all files of a board; returns its runs, and whether it was left out as its suite trains others by now."""
    runs, others = read_records(find_records(board))
    suite = _enter_custom_models(get_suite(board.parent.name), board.stem, others, runs)
    profile = suite.profile(board.stem)
    if set(runs) - {experiment.configuration for experiment in profile.experiments()}:
        return runs, True
    own = [candidate for entry in profile.entries if not entry.beside for candidate in entry.candidates]
    plan = others.get(f"plans/{suite.name}-{board.stem}.json")
    planned = len(plan["seeds"]) if plan else max(len(runs.get(one.configuration, {})) for one in own)
    tables = fill(suite, profile, runs)
    _check_cells(board, suite, profile, tables, planned, ledger)
    _check_tables(board, suite, profile, tables, ledger)
    _check_headline(board, suite, tables, ledger)
    _check_runs(board, runs, ledger)
    if suite.custom_models:
        _check_custom_models(board, suite, profile, tables, ledger)
    return runs, False


def _enter_custom_models(suite: Suite, scale: str, others: Mapping[str, Any], runs: Runs) -> Suite:
    """Enter the custom models that the records hold and that have runs."""
    models = [CustomModel.model_validate(one) for name, one in others.items() if name.startswith("challengers/")]

    def has_runs(model: CustomModel) -> bool:
        entries = with_custom_models(suite, [model], scale).profile(scale).entries
        return any(entry.beside and entry.experiment.configuration in runs for entry in entries)

    return with_custom_models(suite, list(filter(has_runs, models)), scale)


def _check_cells(board: Path, suite: Suite, profile: Profile, tables: Tables, planned: int, ledger: Ledger) -> None:
    """Check ``<profile>.long.csv``."""
    lines = {(line["table"], line["row"], line["column"]): line for line in _read_csv(board.with_suffix(".long.csv"))}
    ours: dict[tuple[str, str, str], dict[str, Any]] = {}
    for name, cells in tables.items():
        compared = _compare(suite, suite.table(name), profile, cells)
        ours |= {(name, " / ".join(k[0]), k[1]): _describe(cell, planned) | compared[k] for k, cell in cells.items()}
    ledger.check_names("cell", lines, ours)
    for place in lines.keys() & ours.keys():
        for column, number in ours[place].items():
            ledger.check(" / ".join((*place, column)), lines[place][column], number, DIGITS)


def _describe(cell: Cell, planned: int) -> dict[str, Any]:
    """The numbers of one line of ``<profile>.long.csv`` that are of its cell alone."""
    low, high = cell.number.interval
    results = [run["result"] for run in cell.runs.values()]

    def mean(name: str) -> float:
        return float(np.mean([result[name] for result in results])) if results else math.nan

    return {
        "n": len(cell.number.values),
        "planned": planned,
        "mean": cell.number.mean,
        "sd": math.nan if math.isnan(low + cell.hours) else cell.number.sd,  # none of derived cells
        "low": low,
        "high": high,
        "paper": cell.paper,
        "device_hours": cell.hours,
        "images_per_s": mean("images_per_s"),
        "last_top1_percent": mean("top1_percent") if cell.metric == "best_top1_percent" else math.nan,
        "num_evaluations": " ".join(map(str, sorted({result["num_evaluations"] for result in results}))),
    }


def _compare(suite: Suite, table: Table, profile: Profile, cells: Mapping[Key, Cell]) -> dict[Key, dict[str, Any]]:
    """Ranks of a table's cells, and effects: by how much a cell exceeds the one most like the headline's baseline."""
    columns = ("best_rank", "worst_rank", "effect", "effect_low", "effect_high", "paper_effect")
    found = {key: dict.fromkeys(columns, math.nan) for key in cells}
    custom = {(entry.row, column) for entry in suite.entries_of(profile, table) for column in entry.beside}
    changed = {derived.of for derived in table.derived if isinstance(derived, ChangeFrom)}
    changed |= {derived.better for derived in table.derived if isinstance(derived, Gain)}
    row, column = suite.headline.baseline.row, table.baseline or suite.headline.baseline.column
    for keys in find_groups(table, cells):
        known = [key for key in keys if not math.isnan(cells[key].number.interval[0])]
        ranked = [key for key in known if key not in custom]
        ranks = rank(ranked, cells) | {
            key: rank([*ranked, key], cells)[key] for key in known if key in custom and ranked
        }
        for key, of_key in ranks.items():
            found[key] |= dict(zip(columns, of_key, strict=False))
        compared = [k for k in keys if k not in custom and k[1] not in changed and not math.isnan(cells[k].hours)]
        alike = [(sum(a == b for a, b in zip(k[0], row, strict=False)), k[1] == column) for k in compared]
        for i, key in enumerate(compared):
            if i != (baseline := alike.index(max(alike))):
                ours, paper = difference(cells[key], cells[compared[baseline]])
                found[key] |= dict(zip(columns[2:], (ours.mean, *ours.interval, paper), strict=True))
    return found


def _check_tables(board: Path, suite: Suite, profile: Profile, tables: Tables, ledger: Ledger) -> None:
    """Check each ``<profile>.<table>.csv``."""
    for table in suite.tables:
        lines = _read_csv(board.with_suffix(f".{table.name}.csv"))
        rows = [tuple(line[key] for key in table.row_keys) for line in lines]
        ledger.check_names("row", rows, read_printed(table, suite.entries_of(profile, table)))
        for row, line in zip(rows, lines, strict=True):
            for column in line.keys() - set(table.row_keys):
                cell = tables[table.name].get((row, column))
                what = f"{table.name}.csv {' / '.join(row)} {column}"
                ledger.check(what, line[column], cell.number.mean if cell else math.nan)


def _check_headline(board: Path, suite: Suite, tables: Tables, ledger: Ledger) -> None:
    """Check ``<profile>.headline.json``."""
    published = json.loads(board.with_suffix(".headline.json").read_text(encoding="utf-8"))
    cells = [cell for of_table in tables.values() for cell in of_table.values()]
    ledger.check("number of cells", str(published["num_cells"]), len(cells))
    ledger.check("missing cells", str(published["num_missing"]), sum(math.isnan(cell.number.mean) for cell in cells))
    places = (suite.headline.better, suite.headline.baseline)
    found = [tables[suite.table(place.table).name].get((place.row, place.column)) for place in places]
    if found[0] is None or found[1] is None:
        return
    ours, paper = difference(found[0], found[1])
    variance = ours.sd**2 or math.nan
    mean = "" if published["mean"] is None else str(published["mean"])
    ledger.check("headline's mean", mean, ours.mean, DIGITS)
    ledger.check("headline's variance", " ".join(map(str, published["variances"])), variance, DIGITS)
    told = re.sub(r",[^(]*", "", published["told"].removeprefix(suite.headline.text))
    said = re.findall(r"[-+]?\d+\.?\d*", told)
    for text, number in zip(said, (ours.mean, ours.interval[1] - ours.mean, paper), strict=False):
        if not math.isnan(number):
            ledger.check("headline as it is told", text, number)


def _check_runs(board: Path, runs: Runs, ledger: Ledger) -> None:
    """Check ``<profile>.runs.csv``, and the predictions of each run."""
    found = {f"{name}/seed-{seed}": run for name, of_seed in runs.items() for seed, run in of_seed.items()}
    lines = {line["run"]: line for line in _read_csv(board.with_suffix(".runs.csv"))}
    ledger.check_names("run", lines, found)
    for name in lines.keys() & found.keys():
        known = found[name]["result"]["experiment"] | found[name]["result"]
        for column, text in lines[name].items():
            if isinstance(number := known.get(column), int | float):
                ledger.check(f"{name} {column}", text, number)
        check_predictions(name, found[name], ledger)


def check_predictions(name: str, run: Mapping[str, Any], ledger: Ledger) -> None:
    """Check that a run's predictions, if it kept any, have the digest and the accuracy of its result."""
    digest, content = run["result"].get("predictions_sha256", ""), run.get("predictions.npz", b"")
    if digest or content:
        ledger.check(f"{name} digest of predictions", digest, hashlib.sha256(content).hexdigest())
    if content:
        with np.load(io.BytesIO(content)) as arrays:
            is_right, is_counted = arrays["predicted"] == arrays["labels"], arrays["predicted"] >= 0
        accuracy = 100 * float(is_right[is_counted].mean())
        ledger.check(f"{name} accuracy of predictions", str(run["result"]["top1_percent"]), accuracy, DIGITS)


def _check_custom_models(board: Path, suite: Suite, profile: Profile, tables: Tables, ledger: Ledger) -> None:
    """Check ``<profile>.challengers.csv``; p is adjusted over a custom model's comparisons by one metric in a table."""
    families: dict[tuple[str, str, str], list[tuple[dict[str, str], Number]]] = {}
    for line in _read_csv(board.with_suffix(".challengers.csv")):
        entries = suite.entries_of(profile, suite.table(line["table"]))
        entry = next(e for e in entries if " / ".join(e.row) == line["row"] and line["column"] in e.columns)
        cells = tables[line["table"]]
        ours, _ = difference(cells[entry.row, line["column"]], cells[entry.row, line["against"]])
        family = line["table"], entry.custom_model, entry.columns[line["column"]]
        families.setdefault(family, []).append((line, ours))
    for of_family in families.values():
        tested = [i for i, (_, ours) in enumerate(of_family) if len(ours.values) > 2]
        p = np.full(len(of_family), math.nan)
        p[tested] = stats.false_discovery_control([2 * min(of_family[i][1].test()) for i in tested]) if tested else []
        for (line, ours), adjusted in zip(of_family, p, strict=True):
            numbers = (len(ours.values), ours.mean, *ours.interval, adjusted)
            for column, number in zip(("n", "difference", "low", "high", "p_value"), numbers, strict=True):
                what = f"{line['row']} {line['column']} over {line['against']}, {column}"
                ledger.check(what, line[column], number, DIGITS)


# -- claims


def recompute_claims(runs: Runs, boards: Path) -> Iterator[dict[str, Any]]:
    """Judge the claims of all papers at each scale that has runs, by the plans in the folder of all boards."""
    suites = [get_suite(name) for name in list_suites()]
    for scale in dict.fromkeys(scale for suite in suites for scale in suite.profiles if scale != "paper"):
        of_scale = [suite for suite in suites if scale in suite.profiles]
        entries = [entry for suite in of_scale for entry in suite.profiles[scale].entries]
        if not any(candidate.configuration in runs for entry in entries for candidate in entry.candidates):
            continue
        cells: dict[str, dict[str, Mapping[Key, Cell]]] = {}
        for suite in of_scale:
            tables = fill(suite, suite.profiles[scale], runs)
            cells[suite.name] = {**tables, "": tables[suite.tables[0].name]}
        plans = boards.glob(f"*/{scale}.plan.json")
        looks = {path.parent.name: json.loads(path.read_bytes())["looks"] for path in plans}
        for paper in list_claims():
            yield from judge_paper(paper, scale, cells, looks)


def check_claims(path: Path, runs: Runs, ledger: Ledger) -> None:
    """Check ``claims.csv``."""
    lines = {(line["claim"], line["scale"]): line for line in _read_csv(path)}
    ours = {(line["claim"], line["scale"]): line for line in recompute_claims(runs, path.parent)}
    ledger.check_names("claim", lines, ours)
    for name in lines.keys() & ours.keys():
        for column, number in ours[name].items():
            what = f"{name[0]} at {name[1]} scale, {column}"
            ledger.check(what, lines[name].get(column, ""), number, DIGITS_OF_CLAIMS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check boards and claims, and print a line for each; returns 1 if a number differs."""
    parser = argparse.ArgumentParser(description="Recompute published numbers from the records of their runs.")
    parser.add_argument(
        "board", nargs="*", type=Path, help="a board, such as sample_efficiency/laptop.md (default: all)"
    )
    parser.add_argument("--boards", type=Path, default=PUBLISHED, help="folder of all boards and of claims.csv")
    options = parser.parse_args(arguments)
    boards = options.board or sorted(b for name in list_suites() for b in (options.boards / name).glob("*.md"))
    ledgers = []
    runs: Runs = {}
    for board in (board for board in boards if find_records(board).exists()):
        ledger = Ledger(f"{board.parent.name} {board.stem}")
        found, is_outdated = check_board(board, ledger)
        if is_outdated:
            print(f"{ledger.name}: skipped, its suite trains other experiments by now")
        else:
            ledgers.append(ledger)
        for configuration, of_seed in found.items():
            runs.setdefault(configuration, {}).update(of_seed)
    if not options.board:
        ledgers.append(Ledger("claims"))
        check_claims(options.boards / "claims.csv", runs, ledgers[-1])
    for ledger in ledgers:
        print(f"{ledger.name:<30} {ledger.num_checked:>6,} checked {len(ledger.differing):>4} differ")
        print("".join(f"    {line}\n" for line in ledger.differing), end="")
    return int(any(ledger.differing for ledger in ledgers))


if __name__ == "__main__":
    sys.exit(main())
