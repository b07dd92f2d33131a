"""Predictions of pairs of models -> the classes and images on which one helps and hurts, and how often runs agree."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.transforms import Bbox
from scipy.special import stdtrit

from imagesets.catalog import CATALOG
from leaderboards.boards.board import Leaderboard
from leaderboards.figures.parts import style
from leaderboards.figures.parts.predicted import PredictedPair, agreement, count_images, read_pairs
from leaderboards.figures.parts.runs import name_missing
from leaderboards.significance import rules
from leaderboards.text.notation import format_signed
from suite.spec.figures import ClassFigure

Found = dict[int, tuple[rules.OverImages, bool]]  # class -> its difference, and whether it is found at 5 %
Names = Mapping[int, str]
_ALL = -1  # the line of all classes together
_MOST_CLASSES = 30
_NUM_IMAGES = 5  # listed at each end
_HURTS, _HELPS = style.COLORS[:2]
_NOTE = (
    "Whiskers: 95 % interval of each class alone, for other seeds and images. Filled: p < 0.05 from five seeds on, "
    "adjusted over the classes by Benjamini and Hochberg. Black line: what luck gives if, where one of two runs is "
    "right, either is as likely to be that one. Images: class, #place in the test set (right seeds of {0.better} : of "
    "{0.baseline}); of equal ones the first. Agreement: means over all pairs of runs of different seeds; "
    "\N{GREEK SMALL LETTER KAPPA}: Cohen's, of the predicted classes."
)


def draw_classes(figure: ClassFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no pair has enough seeds with predictions."""
    pairs, left_out = read_pairs(figure, leaderboard)
    if not pairs:
        return None
    found = {title: compare_classes(pair) for title, pair in pairs.items()}
    shown, num_hidden = choose_classes(found.values())
    hidden = f"Not shown: {num_hidden} classes between these." if num_hidden else ""
    missing = name_missing(leaderboard, {title: pair.better for title, pair in figure.pairs.items()}, pairs)
    heights = [0.8 + 0.2 * len(shown), 1.7, 0.3 + 0.16 * _NUM_IMAGES, 0.85]
    notes = (_NOTE.format(figure), hidden, *left_out, missing)
    canvas = style.new_canvas(leaderboard, figure, 1.2 + 3.7 * len(pairs), sum(heights), *notes)
    rows = canvas.subplots(4, len(pairs), squeeze=False, height_ratios=heights, sharex="row", sharey="row")
    names = _name_classes(figure, leaderboard, set().union(*found.values()))
    for (title, pair), (classes, images, listed, agreeing) in zip(pairs.items(), rows.T, strict=True):
        classes.set_title(f"{title}\n{len(pair.better)} seeds, {len(pair.images):,} images", fontsize=9.5)
        _draw_differences(classes, figure, [(names[label], *found[title][label]) for label in shown])
        _draw_counts(images, figure, pair)
        _list_images(listed, figure, pair, names)
        _tell_agreement(agreeing, figure, pair)
    rows[1, 0].set_ylabel("Images")
    return canvas


def compare_classes(pair: PredictedPair) -> Found:
    """The difference of all classes together and of each."""
    is_judged, overall = len(pair.better) >= rules.FEWEST_JUDGED, rules.over_images(pair.difference)
    tested = {_ALL: (overall, overall.p), **rules.over_classes(pair.difference, pair.labels)}
    return {label: (one, is_judged and p < rules.SIGNIFICANCE) for label, (one, p) in tested.items()}


def choose_classes(found: Iterable[Found]) -> tuple[list[int], int]:
    """All together, then the classes by their mean over the pairs, the best first; of many those at both ends, and the
    number of the others."""
    found = list(found)
    classes = set.intersection(*map(set, found)) - {_ALL}
    order = sorted(classes, key=lambda label: (-fmean(of_pair[label][0].mean for of_pair in found), label))
    num_hidden = max(0, len(order) - _MOST_CLASSES)
    del order[_MOST_CLASSES // 2 : _MOST_CLASSES // 2 + num_hidden]
    return [_ALL, *order], num_hidden


def find_extremes(pair: PredictedPair, sign: int) -> list[int]:
    """The positions in ``pair`` of the images that the better model helps most (sign 1) or hurts most (-1)."""
    gain = sign * pair.difference.sum(axis=0)
    return [int(i) for i in np.argsort(-gain, kind="stable")[:_NUM_IMAGES] if gain[i] > 0]


def _name_classes(figure: ClassFigure, leaderboard: Leaderboard, labels: Iterable[int]) -> Names:
    """The catalog's names, or numbers."""
    cells = filter(None, map(leaderboard.cell, figure.places))
    info = CATALOG.get(next(one.dataset for cell in cells for one in cell.provenance.experiments))
    known = {_ALL: "all classes", **dict(enumerate(info.class_names if info else ()))}
    return {label: known.get(label, f"class {label}").replace("_", " ") for label in labels}


def _draw_differences(axes: Axes, figure: ClassFigure, lines: Sequence[tuple[str, rules.OverImages, bool]]) -> None:
    """A line for each class, with its number at the right."""
    style.tidy(axes)
    axes.grid(axis="x", color=style.GRID, linewidth=0.7)
    axes.axvline(0.0, color=style.NEUTRAL, linewidth=0.9)
    for y, (_, one, is_found) in enumerate(lines):
        mean, color = 100 * one.mean, style.BLACK if y == 0 else _HELPS if one.mean >= 0 else _HURTS
        reach = 100 * one.standard_error * float(stdtrit(one.degrees_of_freedom, (1 + rules.CONFIDENCE) / 2))
        axes.errorbar([mean], [y], xerr=[reach], color=color, linewidth=1.2, capsize=2.5)
        axes.plot([mean], [y], "D" if y == 0 else "o", color=color, markerfacecolor=color if is_found else "white")
        text = format_signed(mean, 1) + (f" \N{PLUS-MINUS SIGN} {reach:.1f}" if reach else "")
        axes.text(1.02, y, text, transform=axes.get_yaxis_transform(), fontsize=8, va="center", color=style.NEUTRAL)
    axes.set_yticks(range(len(lines)), labels=[name for name, *_ in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel(f"Accuracy of {figure.better} less {figure.baseline} (points)")


def _draw_counts(axes: Axes, figure: ClassFigure, pair: PredictedPair) -> None:
    """A bar for each share of seeds, and what luck would give."""
    style.tidy(axes)
    found, by_luck = count_images(pair.difference)
    n = len(pair.better)
    x = np.arange(-n, n + 1) / n
    axes.bar(x, found, 0.8 / n, color=[_HURTS] * n + [style.GRID] + [_HELPS] * n)
    axes.plot(x, by_luck, color=style.BLACK, marker=".", linewidth=1.0)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.5)
    axes.set_xlabel(f"Share of seeds that are right: {figure.better} less {figure.baseline}")


def _list_images(axes: Axes, figure: ClassFigure, pair: PredictedPair, names: Names) -> None:
    axes.set_axis_off()
    num_right = [(of == pair.labels).sum(axis=0) for of in (pair.better, pair.baseline)]
    for x, sign, what, color in ((0.0, -1, "hurts", _HURTS), (0.55, 1, "helps", _HELPS)):
        lines = [
            f"{names[pair.labels[i]]} #{pair.images[i]} ({num_right[0][i]} : {num_right[1][i]})"
            for i in find_extremes(pair, sign)
        ]
        text: dict[str, Any] = {"fontsize": 8, "va": "top", "transform": axes.transAxes}
        axes.text(x, 1.0, f"{figure.better} {what} most", color=color, fontweight="bold", **text)
        axes.text(x, 0.84, "\n".join(lines) or "no image", linespacing=1.3, **text)


def _tell_agreement(axes: Axes, figure: ClassFigure, pair: PredictedPair) -> None:
    axes.set_axis_off()
    models = {figure.baseline: pair.baseline, figure.better: pair.better}
    rows = [["Two runs", "same class", "both right", "\N{GREEK SMALL LETTER KAPPA}"]]
    for one, other in [*((name, name) for name in models), (figure.baseline, figure.better)]:
        same, both_right, kappa = agreement(models[one], models[other], pair.labels)
        rows.append([f"{one}, {other}", f"{100 * same:.1f} %", f"{100 * both_right:.1f} %", f"{kappa:.2f}"])
    widths = (0.37, 0.24, 0.24, 0.15)
    table = axes.table(rows, edges="horizontal", cellLoc="left", bbox=Bbox.unit(), colWidths=widths)
    table.auto_set_font_size(False)
    table.set_fontsize(8)
