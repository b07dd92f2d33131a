"""A suite: the tables and figures of one question of one paper, and the experiments that fill them at each scale.

Suite -> Profile -> Entry (a place in a table) -> Experiment. Leaderboards read from here how the paper lays its numbers
out; nothing here knows any number.
"""

from typing import Literal

from pydantic import Field, PositiveInt

from suite.base.errors import SpecError, unknown_name
from suite.base.frozen import Frozen
from suite.spec.custom_model import CustomModel
from suite.spec.figures import Figure
from suite.spec.profile import Entry, Place, Profile, ProfileName, Row
from suite.spec.tuning import TUNED, Tuning


class RelativeGain(Frozen):
    """A derived column: 100 * (better - baseline) / baseline, in percent."""

    column: str
    better: str
    baseline: str


class Gain(Frozen):
    """A derived column: better - baseline, in their own unit, such as percentage points."""

    column: str
    better: str
    baseline: str


class RelativeTo(Frozen):
    """A derived column: the same metric over that of a baseline row, such as a relative training time."""

    column: str
    metric: str
    baseline: Row


class MeanOf(Frozen):
    """A derived column: the mean of others, where all of them have a value."""

    column: str
    columns: tuple[str, ...]


class ChangeFrom(Frozen):
    """A derived column: by how much another one differs from its own value in a baseline row, in that column's unit."""

    column: str
    of: str
    baseline: Row


Derived = RelativeGain | Gain | RelativeTo | MeanOf | ChangeFrom


class RankedWithin(Frozen):
    """Those cells of a column compete for ranks whose rows have the same values of these keys."""

    row_keys: tuple[str, ...]


Ranked = Literal["in_columns", "in_rows", "in_table", "none"] | RankedWithin


class Table(Frozen):
    """A table of the paper, or one of ours where the paper only draws.

    ``name`` is the CSV among its paper's ``tables`` whose header, rows and rounding the leaderboard copies. A table of
    ours, which has ``columns``, has no such file: its rows are the entries', and there is no number to compare
    with. ``decimals`` are those of columns where the paper prints nothing. ``row_keys`` are the leading columns that
    name a row. ``ranked`` says which cells that show the same metric compete for ranks: those of a column or of some
    of its rows, those of a row, all, or none. ``seeds_of_paper`` is how many seeds
    the paper's numbers are the means of: one, unless it says otherwise. ``baseline`` is the column that the others of a
    row are compared with away from the paper's scale, where it is not the headline's. ``custom_columns`` follow the
    table's own: those of models that are none of the papers'.
    """

    name: str
    item: str
    row_keys: tuple[str, ...]
    columns: tuple[str, ...] = ()
    decimals: int = 1
    ranked: Ranked
    seeds_of_paper: PositiveInt = 1
    baseline: str = ""
    derived: tuple[Derived, ...] = ()
    custom_columns: tuple[str, ...] = ()

    @property
    def is_papers(self) -> bool:
        """Whether the paper prints this table, so that a CSV lays it out and holds numbers to compare with."""
        return not self.columns


class Headline(Frozen):
    """The result in one line: ``text``, and by how much ``better`` exceeds ``baseline``."""

    text: str
    better: Place
    baseline: Place


class Suite(Frozen):
    """One question of one paper: its experiments at each scale, and the layout of the answer.

    ``custom_models`` are the models beside the papers' that were entered into its tables. ``source`` is where a
    suite that is none of ours was found, such as ``my_suite.py:SUITE``. ``tuning`` chooses the recipes
    of profiles whose names say that they are tuned.
    """

    name: str
    paper: str
    item: str
    question: str
    tables: tuple[Table, ...]
    profiles: dict[ProfileName, Profile]
    headline: Headline
    figures: tuple[Figure, ...] = ()
    footnotes: tuple[str, ...] = ()
    custom_models: tuple[CustomModel, ...] = ()
    source: str = ""
    tuning: Tuning | None = None

    @property
    def cli_name(self) -> str:
        """The name by which ``--suite`` finds the suite."""
        return self.source or self.name

    def profile(self, name: str) -> Profile:
        """Find the profile called ``name``; SpecError where there is none.

        It is one of ``profiles``, ``smoke`` (from ``laptop``), or one of these in another precision, such as
        ``laptop-bf16``, or on another image set, such as ``laptop@flowers``, or any with tuned recipes, such as
        ``laptop+tune8``, which is as untuned as before where no store's tries were read.
        """
        name, is_tuned, _ = name.partition(TUNED)
        if is_tuned and self.tuning:
            return self.tuning.choose(self.profile(name))
        scale, _, dataset = name.partition("@")
        if dataset:
            if scale.partition("-")[0] == "smoke":
                raise SpecError(f"profile smoke is one of packaged images, not of {dataset}: choose laptop")
            return self.profile(scale).with_dataset(dataset)
        base, _, precision = name.partition("-")
        if precision in ("fp32", "bf16"):
            return self.profile(base).with_precision(precision)
        if name == "smoke":
            return self.profiles["laptop"].smoke()
        return self.profiles[self._known(name, name)]

    def has_profile(self, name: str) -> bool:
        """Whether there is a profile called ``name``: not every suite has each scale."""
        try:
            self.profile(name)
        except SpecError:
            return False
        return True

    def scale_of(self, name: str) -> ProfileName:
        """Name the one of ``profiles`` that the profile called ``name`` is made from; SpecError where there is none."""
        base = name.partition(TUNED)[0].partition("@")[0].partition("-")[0]
        return self._known("laptop" if base == "smoke" else base, name)

    def _known(self, scale: str, asked: str) -> ProfileName:
        for known in self.profiles:
            if known == scale:
                return known
        raise unknown_name("profile", asked, [*self.profiles, "smoke"])

    def table(self, name: str = "") -> Table:
        """Find the table called ``name``, "" is the first one; SpecError where there is none."""
        for table in self.tables:
            if name in ("", table.name):
                return table
        raise unknown_name("table of the suite", name, [table.name for table in self.tables])

    def entries_of(self, profile: Profile, table: Table) -> list[Entry]:
        """List the profile's entries in one of the tables."""
        return [entry for entry in profile.entries if self.table(entry.table) is table]

    def find_entry(self, profile: Profile, place: Place) -> Entry | None:
        """Find the entry that fills a place; None where this profile leaves it empty."""
        for entry in self.entries_of(profile, self.table(place.table)):
            if entry.row == place.row and place.column in entry.columns:
                return entry
        return None


class Paper(Frozen):
    """One paper whose suites and claims stand in a package of its own.

    Args:
        name: the package's short name, which its pages and files bear, such as "convit".
        title: the title on boards and pages; each of its suites has it as ``Suite.paper``.
        appeared: the month in which it appeared, "2021-03"; papers are listed in this order.
        citation: the paper's entry in BibTeX.
        coverage_note: text for readers of ``coverage.csv``, such as whose numbers its figures bear.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str
    appeared: str = Field(pattern=r"^\d{4}-\d{2}$")
    citation: str
    coverage_note: str = ""
