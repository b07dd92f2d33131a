"""The figures of a suite, as data: what each draws, from a table's columns or from what runs have logged.

A kind of figure is a class here and the function that it names, in a module of ``leaderboards.figures``.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from suite.base.frozen import Frozen
from suite.spec.profile import Place

_ACCURACY = "Top-1 accuracy (%)"  # what a logged metric is where a figure names no other


class Figure(Frozen):
    """A figure of a suite.

    ``drawn_by`` names the module in ``leaderboards.figures``, and the function in it, that draws this kind.
    """

    drawn_by: ClassVar[str]

    name: str
    item: str  # of the paper


class TableFigure(Figure):
    """A figure of numbers in a table, whose row keys and columns are checked before anything is trained.

    Its fields ``..._key`` name row keys, ``column`` and ``..._column`` columns.
    """

    table: str = ""

    @property
    def row_keys(self) -> list[str]:
        return [key for name, key in self if name.endswith("_key")]

    @property
    def columns(self) -> list[str]:
        return [column for name, column in self if name.endswith("column")]


class RunFigure(Figure):
    """A figure of what runs have logged or recorded; the places of these runs are checked before training."""

    @property
    def places(self) -> list[Place]:
        return list(_find_places(self))


def _find_places(fields: object) -> Iterator[Place]:
    if isinstance(fields, Place):
        yield fields
    elif isinstance(fields, dict | Frozen):
        for _, value in fields.items() if isinstance(fields, dict) else fields:
            yield from _find_places(value)


class ModelsFigure(RunFigure):
    """A figure of one run for each of several models."""

    models: dict[str, Place]  # title -> whose run


class LineFigure(TableFigure):
    """Metric columns against a numeric row key, with an optional relative gain. Where there are other row keys, each of
    their values has its own line of the one column: ``lines`` is then {"": column}."""

    drawn_by: ClassVar[str] = "lines.draw_lines"

    x_key: str
    x_label: str
    y_label: str
    lines: dict[str, str]  # legend label -> column
    gain_column: str | None = None
    gain_label: str = ""
    log_x: bool = False

    @property
    def columns(self) -> list[str]:
        return [*self.lines.values(), *filter(None, super().columns)]


class HeatmapFigure(TableFigure):
    """One column over two row keys."""

    drawn_by: ClassVar[str] = "heatmaps.draw_heatmap"

    column: str
    x_key: str
    y_key: str
    x_label: str
    y_label: str
    value_label: str


class ScatterFigure(TableFigure):
    """One column against another, a point per row: colour by ``group_key``, text by ``label_key``."""

    drawn_by: ClassVar[str] = "scatter.draw_scatter"

    x_column: str
    y_column: str
    x_label: str
    y_label: str
    group_key: str
    label_key: str
    log_x: bool = False


class CurveFigure(RunFigure):
    """A logged metric over the epochs of training, in panels: panel title -> legend label -> whose run.

    With ``after_parents`` a run that goes on from a parent's weights begins where that one's training ended.
    """

    drawn_by: ClassVar[str] = "curves.draw_curves"

    metric: Literal["top1_percent", "test_loss", "loss"] = "top1_percent"
    y_label: str = _ACCURACY
    panels: dict[str, dict[str, Place]]
    after_parents: bool = False


class ProgressFigure(ModelsFigure):
    """A logged metric against a number in which models differ: a line for each of ``shares`` of the training, read at
    the evaluation nearest to it."""

    drawn_by: ClassVar[str] = "shares.draw_shares"

    metric: Literal["top1_percent", "test_loss"] = "top1_percent"
    x_label: str
    y_label: str = _ACCURACY
    shares: tuple[float, ...]


class TwoModels(Frozen):
    """Two models to compare."""

    baseline: Place
    better: Place


class Pair(TwoModels):
    """Two models, and the column that holds by how much the better one exceeds the other, in percent."""

    gain: Place


class PairFigure(RunFigure):
    """A logged metric of pairs of models over the epochs, where it was logged more than once, and bars of the relative
    gains within them.

    ``over_whole_sets``: where models train on a fraction of the images, epochs are of the whole set, so that all have
    seen as many images at the same place.
    """

    drawn_by: ClassVar[str] = "pairs.draw_pairs"

    metric: Literal["top1_percent"] = "top1_percent"
    y_label: str = _ACCURACY
    gain_label: str
    pairs: dict[str, Pair]  # legend label -> pair
    pairs_label: str  # what the pairs differ in
    baseline: str  # what the two models of each pair are called
    better: str
    over_whole_sets: bool = False


class ClassFigure(RunFigure):
    """Of pairs of models, from the predictions that their runs keep: the difference in accuracy by class, the images on
    which the better one helps and hurts most, and how often two runs agree."""

    drawn_by: ClassVar[str] = "classes.draw_classes"

    pairs: dict[str, TwoModels]  # panel title -> pair
    baseline: str  # what the two models of each pair are called
    better: str


class LayerFigure(ModelsFigure):
    """Over the epochs: nonlocality (a panel a model, a line a layer) or gates (a panel a layer, a line a head)."""

    drawn_by: ClassVar[str] = "attention_by_layer.draw_layers"

    quantity: Literal["nonlocality", "gates"]


class MapsFigure(ModelsFigure):
    """Attention maps recorded by runs of kind ``maps``.

    ``what``: "images" for a central query on single images; "central" for its average over images, "around" the same
    zoomed to the 7 x 7 tokens around it; "queries" for the averages of some fixed queries; "between" for the average
    (N, N) map between patches, "corner" the same with its upper left 48 x 48 corner enlarged beside it. ``layers`` are
    counted from 1 in a network of twelve; a shallower one shows its own at the same relative depth. () leaves the
    choice to the kind of figure. ``color_scale`` is the whole sheet's, or one for each model.
    """

    drawn_by: ClassVar[str] = "attention_sheets.draw_maps"

    what: Literal["images", "central", "around", "queries", "between", "corner"]
    before: bool = False  # before training
    after: bool = True
    layers: tuple[PositiveInt, ...] = ()
    num_images: int = Field(4, ge=1, le=4)  # of what="images"
    color_scale: Literal["sheet", "model"] = "sheet"


class CentersFigure(ModelsFigure):
    """Where the heads of each layer look relative to the query, from runs of kind ``maps``: centers, and for Gaussian
    encodings the circles that hold 50 % and 90 % of the attention."""

    drawn_by: ClassVar[str] = "centers.draw_centers"

    before: bool = False  # also before training


class PathsFigure(ModelsFigure):
    """How the Gaussian heads of quadratic encodings moved while they were trained, from the training's own log.

    With ``layer``, counted from 1, that one before, during and after the training (of a network with fewer layers the
    last one); else a panel for each layer, with the paths from start to end.
    """

    drawn_by: ClassVar[str] = "centers.draw_paths"

    layer: PositiveInt | None = None
