"""A suite at one scale and the run store -> its leaderboard: a board a table, a ``Cell`` per place in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from leaderboards.boards.cell_values import add_derived, add_ranks, add_verdicts, difference_of, measured_cells
from leaderboards.boards.cells import Cell, CellStatus
from leaderboards.boards.collect import Collection, collect
from leaderboards.boards.effects import CellEffect, find_effects
from leaderboards.boards.layout import PaperTable, check_layout, lay_out
from suite.base.arguments import program
from suite.base.errors import SpecError
from suite.spec.custom_entries import with_custom_models
from suite.spec.profile import Place, Profile, Row
from suite.spec.suite import Suite, Table
from suite.store.custom_models import read_custom_models
from suite.store.frozen_plan import FrozenPlan, read_plan, read_plans
from suite.store.run_directory import RunDirectory
from suite.store.run_store import experiments_folder, list_configurations
from suite.store.tuning import check_tuned, read_tuning


@dataclass(frozen=True)
class Board:
    """One table of a leaderboard: ``cells`` and ``effects`` keyed (row, column), and the layout and numbers of the
    ``paper``; where it only draws, a layout of ours."""

    suite: Suite
    profile_name: str
    profile: Profile
    table: Table
    paper: PaperTable
    cells: Mapping[tuple[Row, str], Cell]
    effects: Mapping[tuple[Row, str], CellEffect] = field(default_factory=dict)  # away from the paper's scale

    @property
    def columns(self) -> list[str]:
        """The columns with at least one cell, in the paper's order."""
        filled = {column for _, column in self.cells}
        return [column for column in self.paper.header if column in filled]

    @property
    def has_paper(self) -> bool:
        """Whether there are numbers of the paper to compare with."""
        return self.table.is_papers and not self.profile.other_dataset

    @property
    def is_at_papers_scale(self) -> bool:
        """Whether its numbers may be set against the paper's one by one."""
        return not self.profile.scale_note


ENTRY = ("Entry", "By", "Model", "Result", "Seeds", "Status")  # columns of others' entries


@dataclass(frozen=True)
class Leaderboard:
    """All tables of a suite at one scale, by name, in the suite's order, and the runs behind them."""

    suite: Suite
    profile_name: str
    profile: Profile
    tables: Mapping[str, Board]
    collection: Collection
    plan: FrozenPlan | None = None  # that was frozen before its runs
    other_plans: tuple[FrozenPlan, ...] = ()  # of suites that share some of its runs, under which these were trained
    entries: tuple[tuple[str, ...], ...] = ()  # of others, in the columns of ``ENTRY``: whoever shows them escapes them

    def ended_runs(self) -> Iterator[RunDirectory]:
        """All runs of the profile that had ended when it was read, in its order, seeds ascending."""
        for experiment in self.profile.experiments():
            yield from self.collection.runs[experiment.configuration_id].ended

    @property
    def cells(self) -> list[tuple[Board, Cell]]:
        """All cells, each with its table."""
        return [(board, cell) for board in self.tables.values() for cell in board.cells.values()]

    def count(self, status: CellStatus) -> int:
        return sum(cell.status == status for _, cell in self.cells)

    @property
    def num_cells(self) -> int:
        return len(self.cells)

    def board(self, table: str = "") -> Board:
        """The table called ``table``; "" is the first one."""
        return self.tables[self.suite.table(table).name]

    def cell(self, place: Place) -> Cell | None:
        """The cell at a place; None where this profile leaves it empty."""
        return self.board(place.table).cells.get((place.row, place.column))

    @property
    def headline(self) -> Cell | None:
        """By how much the headline's better place exceeds its baseline; None if the profile leaves one empty."""
        headline = self.suite.headline
        better, baseline = self.cell(headline.better), self.cell(headline.baseline)
        return None if better is None or baseline is None else difference_of(better, baseline)


def make_leaderboard(suite: Suite, profile_name: str, store: Path, seeds: Sequence[int] | None = None) -> Leaderboard:
    """Make the leaderboard of a suite at one scale, with the store's custom models.

    Args:
        suite, profile_name: the suite and its scale.
        store: the run store.
        seeds: seeds planned for each cell; None: those of the frozen plan, or of the fullest cell.

    Raises:
        SpecError: The profile is unknown, the store is not there, or the suite does not fit its tables.
        RecordError: Two run directories are of the same seed, or the frozen plan was changed.
    """
    suite = enter_custom_models(suite, profile_name, store)
    check_tuned(suite, profile_name)
    profile = suite.profile(profile_name)
    check_layout(suite, profile)
    plan = read_plan(store, suite.name, profile_name)
    found = collect(profile, store, seeds or (plan.seeds if plan else None), suite.tables)
    named = {digest for runs in found.runs.values() for digest in runs.plans.values()}
    others = read_plans(store, named - {"", plan.sha256 if plan else ""})
    tables = {}
    for table in suite.tables:  # measured cells, derived ones, then how they compare
        entries = suite.entries_of(profile, table)
        paper = replace(lay_out(table, entries), is_comparable=not profile.other_dataset)
        cells = measured_cells(entries, paper, found)
        cells = add_ranks(table, add_derived(table, cells, entries, paper, found), entries)
        if not profile.scale_note:
            cells = add_verdicts(table, cells, paper)
        effects = find_effects(suite, table, cells) if profile.scale_note else {}
        tables[table.name] = Board(suite, profile_name, profile, table, paper, cells, effects)
    return Leaderboard(suite, profile_name, profile, tables, found, plan, others)


def enter_custom_models(suite: Suite, profile_name: str, store: Path) -> Suite:
    """Enter the store's custom models that belong to this suite and have a run of it at this scale, and its tuning."""
    check_store(store)
    suite = suite.model_copy(tuning=read_tuning(store, suite.name, profile_name))
    configurations, entered = list_configurations(store), []
    for custom_model in read_custom_models(store):
        if not custom_model.is_on(suite.name, profile_name):
            continue  # suites share runs: it may have some that this one has too
        try:
            one = with_custom_models(suite, [custom_model], profile_name)
        except SpecError:  # no row of this suite, or no recipe at this scale
            continue
        entries = (entry for entry in one.profile(profile_name).entries if entry.beside)
        if configurations.intersection(e.configuration for entry in entries for e in entry.candidates):
            entered.append(custom_model)
    chosen = [one for one in entered if f"{suite.name}/{profile_name}" in one.boards]
    known = {word for one in chosen for word in (one.name, one.digest)}  # older records give way
    chosen += [one for one in entered if one not in chosen and known.isdisjoint((one.name, one.digest))]
    return with_custom_models(suite, sorted(chosen, key=entered.index), profile_name)


def check_store(store: Path) -> None:
    if not store.is_dir():
        raise SpecError(
            f"there is no run store {store}: expected a folder that holds experiments/. "
            f"Run {program('grid', 'launchers/grid.py')} first, or name another folder with --runs."
        )
    folder = experiments_folder(store)
    if folder.exists() and not folder.is_dir():
        raise SpecError(f"{folder} is a file, expected a folder of runs. Name another store with --runs.")
