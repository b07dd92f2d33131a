"""Tiles of attention on a sheet measured in inches: blocks side by side where they fit, else below one another."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullLocator

from leaderboards.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from leaderboards.figures.recorded import Array

WIDEST_IN = 15.0
NARROWEST_IN = 5.6
GAP_IN = 0.06
_BLOCK_GAP_IN = 0.3
_TITLE_IN = 0.17  # a line
_HEADS_IN = 0.24
_LABELS_IN = 0.62
_BAR_IN = 0.7
_DECADES = 4  # of the colour scale: what attends less is drawn as the least


@dataclass(frozen=True)
class Box:
    """An outline around some pixels of a tile; ``row`` and ``column`` are of its upper left corner."""

    row: float
    column: float
    height: float
    width: float
    color: str


@dataclass(frozen=True)
class Tile:
    """A map (rows, columns), or a picture (height, width, 3); ``note`` is (text, colour), written into it."""

    pixels: Array
    boxes: tuple[Box, ...] = ()
    note: tuple[str, str] | None = None

    @property
    def is_map(self) -> bool:
        return self.pixels.ndim == 2


@dataclass
class Block:
    """A model's tiles at (row, column), where a row is one layer (of one image)."""

    title: str
    row_labels: Sequence[str]
    column_labels: Sequence[str]
    tile_in: float
    tiles: dict[tuple[int, int], Tile] = field(default_factory=dict)

    @property
    def width(self) -> float:
        labels = _LABELS_IN if any(self.row_labels) else 0.0
        return labels + len(self.column_labels) * (self.tile_in + GAP_IN)

    @property
    def height(self) -> float:
        """Without the space above the tiles."""
        return len(self.row_labels) * (self.tile_in + GAP_IN)

    @property
    def title_lines(self) -> list[str]:
        return textwrap.wrap(self.title, max(8, int(13 * len(self.column_labels) * (self.tile_in + GAP_IN))))

    @property
    def head_in(self) -> float:
        """The space above the tiles."""
        return _TITLE_IN * len(self.title_lines) + (_HEADS_IN if any(self.column_labels) else 0.08)

    def draw(self, axes: Axes, x: float, top: float, norm: LogNorm) -> None:
        """Its labels begin at ``x``, its tiles at ``top``."""
        left = x + self.width - len(self.column_labels) * (self.tile_in + GAP_IN)
        step = self.tile_in + GAP_IN
        middle = (left + x + self.width) / 2
        above = top - (_HEADS_IN if any(self.column_labels) else 0.08)
        axes.text(middle, above, "\n".join(self.title_lines), ha="center", va="bottom", fontsize=10)
        for column, label in enumerate(self.column_labels):
            at = left + column * step + self.tile_in / 2, top - 0.05
            axes.text(*at, label, ha="center", va="bottom", fontsize=8, color=style.NEUTRAL)
        for row, label in enumerate(self.row_labels):
            at = left - 0.1, top + row * step + self.tile_in / 2
            axes.text(*at, label, ha="right", va="center", fontsize=8, color=style.NEUTRAL)
        for (row, column), tile in self.tiles.items():
            _draw_tile(axes, tile, left + column * step, top + row * step, self.tile_in, norm)


def sheet_size(blocks: Sequence[Block]) -> tuple[float, float]:
    """(width, height) in inches, with the colour bar."""
    places = _arrange(blocks)
    width = max(x + block.width for (x, _), block in zip(places, blocks, strict=True)) + style.MARGIN_IN
    height = max(y + block.height for (_, y), block in zip(places, blocks, strict=True)) + _BAR_IN
    return max(NARROWEST_IN, width), height


def draw_sheet(canvas: Canvas, blocks: Sequence[Block]) -> None:
    """Fill the canvas's lower ``sheet_size`` with the blocks, all in one colour scale, and the scale's bar."""
    width, height = sheet_size(blocks)
    norm = shared_scale(blocks)
    canvas.set_layout_engine("none")
    axes = canvas.add_axes((0, 0, 1, height / canvas.get_figheight()))
    used = max(x + block.width for (x, _), block in zip(_arrange(blocks), blocks, strict=True)) + style.MARGIN_IN
    axes.set_xlim((used - width) / 2, (used + width) / 2)
    axes.set_ylim(height, 0)
    axes.set_autoscale_on(False)
    axes.set_axis_off()
    for (x, y), block in zip(_arrange(blocks), blocks, strict=True):
        block.draw(axes, x, y, norm)
    total = canvas.get_figheight()
    _draw_bar(canvas, canvas.add_axes((0.5 - 1.5 / width, 0.48 / total, 3 / width, 0.1 / total)), norm)


def _draw_bar(canvas: Canvas, bar: Axes, norm: LogNorm) -> None:
    canvas.colorbar(ScalarMappable(norm, style.DEPTH_COLORS), cax=bar, orientation="horizontal", extend="min")
    lowest, highest = float(norm.vmin or 0), float(norm.vmax or 1)
    if highest < 10 * lowest:  # within a decade a logarithmic axis labels every digit, one over the other
        bar.set_xticks(np.geomspace(lowest, highest, 4))
        bar.xaxis.set_major_formatter("{x:.2g}")
        bar.xaxis.set_minor_locator(NullLocator())
    bar.set_xlabel("Attention (probability)", fontsize=8, labelpad=1)
    bar.tick_params(labelsize=8, pad=1)


def shared_scale(blocks: Sequence[Block]) -> LogNorm:
    """Logarithmic, up to the largest attention on the sheet and down by at most four decades."""
    maps = [tile.pixels[np.isfinite(tile.pixels)] for block in blocks for tile in block.tiles.values() if tile.is_map]
    values = np.concatenate([np.zeros(0), *(array.ravel() for array in maps)])
    values = values[values > 0]
    highest = float(values.max()) if len(values) else 1.0
    lowest = float(values.min()) if len(values) else highest
    return LogNorm(min(max(lowest, highest * 10.0**-_DECADES), highest / 2), highest, clip=True)


def _arrange(blocks: Sequence[Block]) -> list[tuple[float, float]]:
    """Of each block: where its labels begin and where its tiles do, in rows at most as wide as a page."""
    places: list[tuple[float, float]] = []
    head = max(block.head_in for block in blocks)
    y = head
    for row in _rows(blocks):
        x = style.MARGIN_IN
        for block in row:
            places.append((x, y))
            x += block.width + _BLOCK_GAP_IN
        y += max(block.height for block in row) + _BLOCK_GAP_IN + head
    return places


def _rows(blocks: Sequence[Block]) -> list[Sequence[Block]]:
    """As few rows as fit a page's width, with about equally many blocks."""
    for num_rows in range(1, len(blocks) + 1):
        in_row = ceil(len(blocks) / num_rows)
        rows = [blocks[first : first + in_row] for first in range(0, len(blocks), in_row)]
        if all(sum(block.width + _BLOCK_GAP_IN for block in row) <= WIDEST_IN for row in rows):
            break
    return rows


def _draw_tile(axes: Axes, tile: Tile, x: float, y: float, side: float, norm: LogNorm) -> None:
    """Not square where the map is not: the longer side fills the place."""
    rows, columns = tile.pixels.shape[:2]
    scale = side / max(rows, columns)
    pixels = colormaps[style.DEPTH_COLORS](norm(tile.pixels), bytes=True) if tile.is_map else tile.pixels
    extent = (x, x + columns * scale, y + rows * scale, y)
    axes.imshow(pixels, extent=extent, interpolation="nearest", aspect="auto")
    halo = [withStroke(linewidth=2.0, foreground="white")]
    for box in tile.boxes:
        corner = x + box.column * scale, y + box.row * scale
        outline = Rectangle(corner, box.width * scale, box.height * scale, fill=False, edgecolor=box.color)
        outline.set(linewidth=1.2, joinstyle="miter", path_effects=halo if box.color == "black" else [])
        axes.add_patch(outline)
    if tile.note is not None:
        text, color = tile.note
        at: dict[str, Any] = {"x": x + 0.04, "y": y + 0.04, "ha": "left", "va": "top", "fontsize": 6.5}
        shade = {"facecolor": "black", "alpha": 0.65, "edgecolor": "none", "pad": 1.2}
        axes.text(s=text, color=color, bbox=shade, **at)
