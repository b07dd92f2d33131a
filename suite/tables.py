"""A suite: the tables and figures of one question of one paper, and the experiments that fill them at each scale.

Suite -> Profile -> Entry (a place in a table) -> Experiment. Leaderboards read from here how the paper lays its numbers
out; nothing here knows any number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from suite.errors import unknown_name
from suite.spec import Experiment, Frozen, ProfileName, with_ancestors

Row = tuple[str, ...]
SAMPLE_TRAIN_IMAGES = 320


class Entry(Frozen):
    """Where an experiment stands: its row, and per column the metric shown there.

    ``table`` is "" for the suite's first one. ``alternatives`` are tried beside ``experiment``, such as other learning
    rates: the place shows the one with the best mean accuracy, and says that it was chosen.
    """

    row: Row
    columns: dict[str, str]
    experiment: Experiment
    alternatives: tuple[Experiment, ...] = ()
    table: str = ""

    @property
    def candidates(self) -> tuple[Experiment, ...]:
        return (self.experiment, *self.alternatives)


class Profile(Frozen):
    """A suite at one scale.

    ``sustained_flops`` is the stated rate of one worker (a core or a GPU), for cost estimates;
    ``scale_note`` says how its numbers compare with the paper's ("" for the paper's own scale).
    """

    entries: tuple[Entry, ...]
    scale_note: str
    device: Literal["cpu", "gpu"]
    sustained_flops: PositiveFloat
    checkpoint_every_s: PositiveFloat = 300.0
    num_evaluations: PositiveInt = 3

    @classmethod
    def laptop(cls, entries: Iterable[Entry], scale_note: str, num_evaluations: int = 3) -> Profile:
        """At most ten minutes on two cores."""
        return cls(
            entries=tuple(entries),
            scale_note=scale_note,
            device="cpu",
            sustained_flops=15e9,
            checkpoint_every_s=5,
            num_evaluations=num_evaluations,
        )

    @classmethod
    def gpu(cls, entries: Iterable[Entry], scale_note: str, num_evaluations: int = 30) -> Profile:
        """The paper's models at their sizes on CIFAR, for one GPU."""
        return cls(
            entries=tuple(entries),
            scale_note=scale_note,
            device="gpu",
            sustained_flops=40e12,
            num_evaluations=num_evaluations,
        )

    @classmethod
    def paper(cls, entries: Iterable[Entry], num_evaluations: int = 100) -> Profile:
        """The exact protocol."""
        return cls(
            entries=tuple(entries),
            scale_note="",
            device="gpu",
            sustained_flops=100e12,
            num_evaluations=num_evaluations,
        )

    @property
    def asks_for_best(self) -> bool:
        """Whether a place shows the best accuracy of a training, for which its runs are evaluated after every epoch.

        Not on CPUs, whose minutes would go into evaluations: there it is the best of the usual ones.
        """
        shows_best = any("best_top1_percent" in entry.columns.values() for entry in self.entries)
        return shows_best and self.device == "gpu"

    def experiments(self, num_seeds: int = 1) -> list[Experiment]:
        """Every distinct experiment, also those that others depend on: seeds outermost, so that a grid completes one
        seed before the next, and parents before those that need them."""
        candidates = [candidate for entry in self.entries for candidate in entry.candidates]
        return with_ancestors(e.with_seed(seed) for seed in range(num_seeds) for e in candidates)

    def map_experiments(self, change: Callable[[Experiment], Experiment]) -> Profile:
        """The same places in the tables, filled by changed experiments, whose parents are changed too."""

        def change_all(experiment: Experiment) -> Experiment:
            parents = tuple(change_all(parent) for parent in experiment.parents)
            return change(experiment).model_copy(update={"parents": parents})

        entries = []
        for entry in self.entries:
            first, *others = (change_all(candidate) for candidate in entry.candidates)
            entries.append(entry.model_copy(update={"experiment": first, "alternatives": tuple(others)}))
        return self.model_copy(update={"entries": tuple(entries)})

    def with_precision(self, precision: str) -> Profile:
        """The same profile trained in another precision: other experiments, with results of their own."""

        def change(experiment: Experiment) -> Experiment:
            recipe = experiment.recipe.model_copy(update={"precision": precision})
            return experiment.model_copy(update={"recipe": recipe})

        note = f"{self.scale_note or 'the protocol of the paper'}; in {precision}"
        return self.map_experiments(change).model_copy(update={"scale_note": note})

    def smoke(self) -> Profile:
        """The same entries on a few hundred packaged images for sixty steps: proves that everything runs."""

        def shrink(experiment: Experiment) -> Experiment:
            epochs = 60 * 32 / (SAMPLE_TRAIN_IMAGES * experiment.train_fraction)
            recipe = experiment.recipe.model_copy(
                update={
                    "batch_size": 32,
                    "epochs": epochs,
                    "warmup_epochs": 0.0,
                    "schedule_epochs": 0.0,
                    "milestones": (),
                }
            )
            return experiment.model_copy(update={"dataset": "cifar10_sample", "recipe": recipe})

        note = "smoke: sixty steps on a few hundred images; shows that everything runs, its numbers mean nothing"
        return self.map_experiments(shrink).model_copy(update={"scale_note": note, "checkpoint_every_s": 0.2})


# -- how the paper lays its numbers out


class RelativeGain(Frozen):
    """A derived column: 100 * (better - baseline) / baseline, in percent."""

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


Derived = RelativeGain | RelativeTo | MeanOf | ChangeFrom


class RankedWithin(Frozen):
    """Those cells of a column compete for ranks whose rows have the same values of these keys."""

    row_keys: tuple[str, ...]


Ranked = Literal["in_columns", "in_rows", "in_table", "none"] | RankedWithin


class Table(Frozen):
    """A table of the paper, or one of ours where the paper only draws.

    ``name`` is the CSV in ``leaderboards/papers`` whose header, rows and rounding the leaderboard copies; with
    ``columns`` there is no such file: the rows are the entries', the columns these, and there is no number to compare
    with. ``decimals`` are those of columns where the paper prints nothing. ``row_keys`` are the leading columns that
    name a row. ``ranked`` says which cells that show the same metric compete for ranks: those of a column or of some
    of its rows, those of a row, all, or none.
    """

    name: str
    item: str
    row_keys: tuple[str, ...]
    columns: tuple[str, ...] = ()
    decimals: int = 1
    ranked: Ranked = "in_columns"
    derived: tuple[Derived, ...] = ()


class Place(Frozen):
    """A cell of a table; ``table`` is "" for the suite's first one."""

    row: Row
    column: str
    table: str = ""


class LineFigure(Frozen):
    """Metric columns against a numeric row key, with an optional relative gain. Where there are other row keys, each of
    their values has its own line of the one column: ``lines`` is then {"": column}."""

    name: str
    item: str
    x_key: str
    x_label: str
    y_label: str
    lines: dict[str, str]  # legend label -> column
    gain_column: str | None = None
    gain_label: str = ""
    log_x: bool = False
    table: str = ""


class HeatmapFigure(Frozen):
    """One column over two row keys."""

    name: str
    item: str
    column: str
    x_key: str
    y_key: str
    x_label: str
    y_label: str
    value_label: str
    table: str = ""


class ScatterFigure(Frozen):
    """One column against another, a point per row: colour by ``group_key``, text by ``label_key``."""

    name: str
    item: str
    x_column: str
    y_column: str
    x_label: str
    y_label: str
    group_key: str
    label_key: str
    log_x: bool = False
    table: str = ""


class CurveFigure(Frozen):
    """A logged metric over the epochs of training, in panels: panel title -> legend label -> whose run.

    With ``after_parents`` a run that goes on from a parent's weights begins where that one's training ended.
    """

    name: str
    item: str
    metric: Literal["top1_percent", "test_loss", "loss"]
    y_label: str
    panels: dict[str, dict[str, Place]]
    log_y: bool = False
    after_parents: bool = False


class ProgressFigure(Frozen):
    """A logged metric against a number in which models differ: a line for each of ``shares`` of the training, read at
    the evaluation nearest to it."""

    name: str
    item: str
    metric: Literal["top1_percent", "test_loss"]
    x_label: str
    y_label: str
    shares: tuple[float, ...]
    models: dict[str, Place]  # number on the x axis -> whose run


class Pair(Frozen):
    """Two models to compare, and the column that holds by how much the better one exceeds the other, in percent."""

    baseline: Place
    better: Place
    gain: Place


class PairFigure(Frozen):
    """A logged metric of pairs of models over the epochs, and bars of the relative gains within them.

    ``over_whole_sets``: where models train on a fraction of the images, epochs are of the whole set, so that all have
    seen as many images at the same place.
    """

    name: str
    item: str
    metric: Literal["top1_percent"]
    y_label: str
    gain_label: str
    pairs: dict[str, Pair]  # legend label -> pair
    pairs_label: str  # what the pairs differ in
    baseline: str  # what the two models of each pair are called
    better: str
    over_whole_sets: bool = False


class LayerFigure(Frozen):
    """Over the epochs: nonlocality (a panel a model, a line a layer) or gates (a panel a layer, a line a head)."""

    name: str
    item: str
    quantity: Literal["nonlocality", "gates"]
    models: dict[str, Place]  # title -> whose run


class MapsFigure(Frozen):
    """Attention maps recorded by runs of kind ``maps``.

    ``what``: "images" for a central query on single images; "central" for its average over images, "around" the same
    zoomed to the 7 x 7 tokens around it; "queries" for the averages of some fixed queries; "between" for the average
    (N, N) map between patches, "corner" the same with its upper left 48 x 48 corner enlarged beside it. ``layers`` are
    counted from 1 in a network of twelve; a shallower one shows its own at the same relative depth. () leaves the
    choice to the kind of figure. ``color_scale`` is the whole sheet's, or one for each model.
    """

    name: str
    item: str
    what: Literal["images", "central", "around", "queries", "between", "corner"]
    models: dict[str, Place]  # title -> whose maps
    before: bool = False  # before training
    after: bool = True
    layers: tuple[PositiveInt, ...] = ()
    num_images: int = Field(4, ge=1, le=4)  # of what="images"
    color_scale: Literal["sheet", "model"] = "sheet"


class CentersFigure(Frozen):
    """Where the heads of each layer look relative to the query, from runs of kind ``maps``: centers, and for Gaussian
    encodings the circles that hold 50 % and 90 % of the attention."""

    name: str
    item: str
    models: dict[str, Place]  # title -> whose maps
    before: bool = False  # also before training


class PathsFigure(Frozen):
    """How the Gaussian heads of quadratic encodings moved while they were trained, from the training's own log.

    With ``layer``, counted from 1, that one before, during and after the training (of a network with fewer layers the
    last one); else a panel for each layer, with the paths from start to end.
    """

    name: str
    item: str
    models: dict[str, Place]  # title -> whose training
    layer: PositiveInt | None = None


TableFigure = LineFigure | HeatmapFigure | ScatterFigure
RunFigure = (  # of what runs have logged or recorded
    CurveFigure | ProgressFigure | PairFigure | LayerFigure | MapsFigure | CentersFigure | PathsFigure
)
Figure = TableFigure | RunFigure


class Headline(Frozen):
    """The result in one line: ``text``, and by how much ``better`` exceeds ``baseline``."""

    text: str
    better: Place
    baseline: Place


class Suite(Frozen):
    """One question of one paper: its experiments at each scale, and the layout of the answer."""

    name: str
    paper: str
    item: str
    question: str
    tables: tuple[Table, ...]
    profiles: dict[ProfileName, Profile]
    headline: Headline
    figures: tuple[Figure, ...] = ()
    footnotes: tuple[str, ...] = ()

    def profile(self, name: str) -> Profile:
        """The profile called ``name``: one of ``profiles``, ``smoke`` (from ``laptop``), or one of these in another
        precision, such as ``laptop-bf16``.

        Raises:
            SpecError: if there is no such profile.
        """
        base, _, precision = name.partition("-")
        if precision in ("fp32", "bf16"):
            return self.profile(base).with_precision(precision)
        if name == "smoke":
            return self.profiles["laptop"].smoke()
        for known, profile in self.profiles.items():
            if known == name:
                return profile
        raise unknown_name("profile", name, [*self.profiles, "smoke"])

    def table(self, name: str = "") -> Table:
        """The table called ``name``; "" is the first one.

        Raises:
            SpecError: if there is no such table.
        """
        for table in self.tables:
            if name in ("", table.name):
                return table
        raise unknown_name("table of the suite", name, [table.name for table in self.tables])

    def entries_of(self, profile: Profile, table: Table) -> list[Entry]:
        """The profile's entries in one of the tables."""
        return [entry for entry in profile.entries if self.table(entry.table) is table]

    def find_entry(self, profile: Profile, place: Place) -> Entry | None:
        """The entry that fills a place; None where this profile leaves it empty."""
        for entry in self.entries_of(profile, self.table(place.table)):
            if entry.row == place.row and place.column in entry.columns:
                return entry
        return None
