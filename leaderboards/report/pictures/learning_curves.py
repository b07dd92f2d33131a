"""A leaderboard's runs -> their learning curves: a panel a metric, a colour a model, a shade a share of images.

What is drawn comes from the same curves as the paper's figures.
"""

import contextlib
from collections.abc import Mapping

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.logged import Curve
from leaderboards.figures.parts import style
from leaderboards.figures.parts.runs import curve_behind, name_num_seeds
from leaderboards.text.labels import list_columns
from leaderboards.text.notation import scale_title
from suite.base.errors import RecordError
from suite.spec.profile import Place

NAME = "learning_curves"  # a figure of the paper may be called "curves"
METRICS = {"top1_percent": "Top-1 accuracy (%)", "test_loss": "Test loss", "loss": "Training loss"}
MOST_LINES = 40  # a store may have runs of more configurations
_PANEL_IN = (4.5, 3.2)
_LEGEND_ROW_IN = 0.2
Curves = dict[str, dict[str, Curve]]  # metric -> configuration -> curve


def draw_learning_curves(leaderboard: Leaderboard) -> dict[str, bytes]:
    """Draw them as SVG and PDF; {} where no run was evaluated twice."""
    names = name_configurations(leaderboard)
    found = find_learning_curves(leaderboard, names)
    if not found:
        return {}
    labels = [name for name in names if any(name in curves for curves in found.values())]
    marks = _mark(leaderboard, {name: names[name] for name in labels})
    columns = 2 * len(found)  # of the legend
    left_out = f"{len(names) - MOST_LINES} more configurations are left out." if len(names) > MOST_LINES else ""
    seeds = name_num_seeds([curve for curves in found.values() for curve in curves.values()], len(labels))
    with style.default_style():
        canvas = style.titled_canvas(
            f"{leaderboard.suite.name}, {leaderboard.profile_name}: learning curves",
            [scale_title(leaderboard), f"{seeds} {left_out}".strip()],
            _PANEL_IN[0] * len(found),
            _PANEL_IN[1] + _LEGEND_ROW_IN * len(labels) / columns + 0.2,
        )
        for panel, (metric, curves) in zip(
            canvas.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
        ):
            style.draw_curves(panel, curves, marks)
            panel.set_ylabel(METRICS[metric])
        style.add_legend(canvas, style.legend_entries(marks.items(), linewidth=1.5), most=columns)
        return {kind: style.write(canvas, kind) for kind in ("svg", "pdf")}


def find_learning_curves(leaderboard: Leaderboard, names: Mapping[str, Place]) -> Curves:
    """The metrics that at least one configuration has logged twice."""
    found: Curves = {}
    for metric in METRICS:
        for name, place in list(names.items())[:MOST_LINES]:
            with contextlib.suppress(RecordError):  # a log that cannot be read is no curve
                curve = curve_behind(leaderboard, place, metric)
                if curve is not None and len(curve.epochs) > 1:
                    found.setdefault(metric, {})[name] = curve
    return found


def name_configurations(leaderboard: Leaderboard) -> dict[str, Place]:
    """A place of each configuration, by its row's name; with its first column where a row has several."""
    entries = leaderboard.profile.entries
    rows = [(leaderboard.suite.table(entry.table).name, entry.row) for entry in entries]
    first: dict[str, Place] = {}
    known = set()
    for entry, at in zip(entries, rows, strict=True):
        place = Place(row=entry.row, column=next(iter(entry.columns)), table=at[0])
        if entry.experiment.configuration_id not in known:
            known.add(entry.experiment.configuration_id)
            name = " / ".join(filter(None, entry.row))
            if rows.count(at) > 1:
                name += f", {list_columns(leaderboard.tables[at[0]], [place.column])}"
            first[name if name not in first else f"{name} ({leaderboard.suite.table(at[0]).item})"] = place
    return first


def _mark(leaderboard: Leaderboard, places: Mapping[str, Place]) -> dict[str, tuple[str, str]]:
    """(colour, marker) of each configuration: its model's colour, in shades where it trains several times."""
    models: dict[str, list[str]] = {}
    for name, place in places.items():
        cell = leaderboard.cell(place)
        experiment = cell.provenance.experiment if cell else None
        models.setdefault(experiment.model if experiment else "", []).append(name)
    found: dict[str, tuple[str, str]] = {}
    for model, (color, marker) in style.marks(list(models)).items():
        shades = style.shades(color, len(models[model]))
        found |= {name: (shade, marker) for name, shade in zip(models[model], shades, strict=True)}
    return {name: found[name] for name in places}
