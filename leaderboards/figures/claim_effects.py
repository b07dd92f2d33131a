"""Judged claims at one scale -> a forest plot: the effect of each with its interval, ours and the paper's.

Claims have many units. An effect is therefore divided by its standard deviation over our seeds (of one seed), and so is
the paper's, as no paper gives its own.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from leaderboards.figures.parts import style
from leaderboards.judged_claims import JudgedClaim
from leaderboards.text.notation import format_signed

LIMIT = 8.0  # of the axis; what lies beyond is an arrow at its edge
SAME, OPPOSITE, OPEN = style.COLORS[1], style.COLORS[0], "#777777"
COLORS = {  # of the verdicts that are drawn
    "same direction": SAME, "reproduced": SAME, "reproduced, smaller": style.COLORS[4],
    "opposite direction": OPPOSITE, "contradicted": OPPOSITE, "unresolved": OPEN, "undecided": OPEN,
}  # fmt: skip
_ARROW = 1.7  # width of an arrow and its number
_BAND = "#e4e4e4"  # of a margin
_NOTES = """\
Each effect is divided by its standard deviation over our seeds (of one seed), and the paper's by the same number; of a
claim of several effects it is the one that decides. Lines are 95 % intervals of one effect; verdicts are adjusted over
a paper's claims. Arrows stand for what lies beyond the axis. Bold: a paper's primary claim."""


@dataclass(frozen=True)
class EffectRow:
    """The deciding effect of a claim in standard deviations."""

    judged: JudgedClaim
    ours: float
    interval: tuple[float, float]
    paper: float | None
    margin: tuple[float, float] | None  # in which "equal" and "no worse" hold

    def count_beyond(self, side: float) -> int:
        """The number of its effects, ours and the paper's, beyond the axis on the side -1 or 1."""
        return sum(effect is not None and side * effect > LIMIT for effect in (self.ours, self.paper))


def draw_effects(claims: Sequence[JudgedClaim]) -> Canvas | None:
    """The figure of the claims at one scale; None where none of them is judged or unresolved."""
    lines: list[EffectRow | str] = []  # a row, or a paper's title above its rows
    for title, of_paper in groupby(claims, lambda judged: judged.paper.title):
        found = filter(None, map(standardize, of_paper))
        if of_title := sorted(found, key=lambda row: not row.judged.is_primary):
            lines += [title, *of_title]
    rows = {y: line for y, line in enumerate(lines) if isinstance(line, EffectRow)}
    if not rows:
        return None
    title = f"What the papers claim, and what our runs find at {claims[0].scale} scale"
    canvas = style.titled_canvas(title, [_NOTES], 9.2, 0.19 * len(lines) + 1)
    axes = canvas.add_subplot()
    _lay_out(axes, rows, len(lines), count_others(claims))
    for y, line in enumerate(lines):
        if isinstance(line, EffectRow):
            _draw_row(axes, y, line)
        else:
            axes.axhspan(y - 0.5, y + 0.5, color="white", zorder=3)
            axes.text(-LIMIT, y, line, fontsize=8, fontweight="bold", va="center", zorder=4)
    verdicts = {row.judged.verdict for row in rows.values()}
    marks = [(f"ours, {verdict}", (color, "o")) for verdict, color in COLORS.items() if verdict in verdicts]
    paper = {"label": "the paper's", "color": style.BLACK, "marker": "D", "markerfacecolor": "white", "linestyle": ""}
    band = {"label": 'margin of "equal" or "no worse"', "color": _BAND, "linewidth": 7}
    style.add_legend(
        canvas, style.legend_entries(marks), [paper, band] if any(row.margin for row in rows.values()) else [paper]
    )
    return canvas


def standardize(judged: JudgedClaim) -> EffectRow | None:
    """Divide a claim's effect by its deviation; None where it is not judged, or where its seeds do not differ."""
    shown, estimate = judged.shown, judged.shown.estimate
    sd, mean, interval = estimate.sd, estimate.mean, estimate.interval
    if judged.verdict not in COLORS or not sd or mean is None or interval is None:
        return None
    low, high = shown.limits
    paper = None if shown.paper is None else shown.paper / sd
    reach = interval.low / sd, interval.high / sd
    return EffectRow(judged, mean / sd, reach, paper, None if shown.relation == "greater" else (low / sd, high / sd))


def count_others(claims: Sequence[JudgedClaim]) -> str:
    """``Not drawn: 20 not testable here, 3 no runs (of 66 claims).``; "" where all are drawn."""
    others = [judged.verdict for judged in claims if standardize(judged) is None]
    told = Counter("the same in all seeds" if verdict in COLORS else verdict for verdict in others)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in told.most_common())
    return f"Not drawn: {counts} (of {len(claims)} claims)." if others else ""


def name_claim(judged: JudgedClaim) -> str:
    """The claim's name as a sentence, with ConViT and the like spelt as the paper's claims spell them."""
    words = re.findall("[A-Za-z]+", " ".join(claim.statement for claim in judged.paper.claims))
    proper = (word for word in words if (word.isupper() and word != "A") or re.search(".[A-Z]", word))
    spelt = {word.lower() + plural: word + plural for word in proper for plural in ("", "s")}
    name = re.sub("[a-z]+", lambda word: spelt.get(word[0], word[0]), judged.claim.name).replace("_", " ")
    return name[0].upper() + name[1:]


def _lay_out(axes: Axes, rows: Mapping[int, EffectRow], num_lines: int, below: str) -> None:
    """Draw the axis with the rows' labels on the left and their seeds on the right."""
    left, right = (LIMIT + _ARROW * max(row.count_beyond(side) for row in rows.values()) for side in (-1, 1))
    axes.set_xlim(-left - 0.2, right + 0.2)
    axes.set_ylim(num_lines - 0.4, -0.5)
    axes.set_xticks(range(-int(LIMIT), int(LIMIT) + 1, 2))
    axes.set_xlabel(f"Effect in standard deviations of one seed\n{below}", fontsize=9)
    axes.grid(axis="x", color=style.GRID, linewidth=0.7)
    axes.axvline(0, color=style.NEUTRAL, linewidth=0.9, zorder=2)
    axes.set_axisbelow(True)
    axes.set_yticks(list(rows), labels=[name_claim(row.judged) for row in rows.values()])
    for label, row in zip(axes.get_yticklabels(), rows.values(), strict=True):
        label.set_fontweight("bold" if row.judged.is_primary else "normal")
    seeds = axes.twinx()
    seeds.set_ylim(axes.get_ylim())
    seeds.set_yticks([0, *rows], labels=["Seeds", *(str(row.judged.shown.num_seeds) for row in rows.values())])
    for side in (axes, seeds):
        side.tick_params(axis="y", length=0, labelsize=8)
        side.spines[["top", "left", "right"]].set_visible(False)


def _draw_row(axes: Axes, y: int, row: EffectRow) -> None:
    color = COLORS[row.judged.verdict]
    for ends, ends_color, width, zorder in ((row.margin, _BAND, 9, 1), (row.interval, color, 1.8, 4)):
        low, high = (max(ends[0], -LIMIT), min(ends[1], LIMIT)) if ends else (0, 0)
        if low < high:
            axes.plot([low, high], [y, y], color=ends_color, linewidth=width, solid_capstyle="butt", zorder=zorder)
    _draw_mark(axes, row.ours, y, "o", color, color)
    if row.paper is not None:
        is_second = row.count_beyond(math.copysign(1, row.paper)) == 2
        _draw_mark(axes, row.paper, y, "D", style.BLACK, "white", _ARROW * is_second)


def _draw_mark(axes: Axes, x: float, y: int, marker: str, color: str, face: str, shift: float = 0.0) -> None:
    """Draw a mark, or beyond the axis an arrow with its number, ``shift`` from the edge."""
    side = math.copysign(1, x)
    if abs(x) > LIMIT:
        number, align = format_signed(x, 1), "left" if x > 0 else "right"
        x, marker = side * (LIMIT + 0.3 + shift), ">" if x > 0 else "<"
        axes.text(x + 0.25 * side, y, number, fontsize=7, color=color, ha=align, va="center_baseline")
    axes.plot([x], [y], color=color, marker=marker, markersize=5, zorder=6, markerfacecolor=face)
