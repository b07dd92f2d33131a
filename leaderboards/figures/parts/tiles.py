"""Tiles of attention on a sheet measured in inches: blocks side by side where they fit, else below one another."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from leaderboards.boards.recorded import Array
from leaderboards.figures.parts import style

WIDEST_IN = 15.0
NARROWEST_IN = 5.6
GAP_IN = 0.06
_BLOCK_GAP_IN = 0.3
_TITLE_IN = 0.17  # a line
_HEADS_IN = 0.24
_LABELS_IN = 0.62
_LEAST_OWN_RATIO = 1.001  # of the most to the least attention: a block's own scale also shows nearly even maps


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


@dataclass
class MapBlock:
    """A model's tiles at (row, column), where a row is one layer (of one image)."""

    title: str
    row_labels: Sequence[str]
    column_labels: Sequence[str]
    tile_in: float
    tiles: dict[tuple[int, int], Tile] = field(default_factory=dict)
    has_own_scale: bool = False  # of colours, which the blocks of a sheet else share

    @property
    def maps(self) -> list[Array]:
        return [tile.pixels for tile in self.tiles.values() if tile.pixels.ndim == 2]

    @property
    def tiles_in(self) -> float:
        return len(self.column_labels) * (self.tile_in + GAP_IN)

    @property
    def width(self) -> float:
        return self.tiles_in + (_LABELS_IN if any(self.row_labels) else 0.0)

    @property
    def height(self) -> float:
        """Without the space above the tiles."""
        return len(self.row_labels) * (self.tile_in + GAP_IN) + (style.BAR_IN if self.has_own_scale else 0.0)

    @property
    def title_lines(self) -> list[str]:
        return textwrap.wrap(self.title, max(8, int(13 * self.tiles_in)))

    @property
    def head_in(self) -> float:
        """The space above the tiles."""
        return _TITLE_IN * len(self.title_lines) + (_HEADS_IN if any(self.column_labels) else 0.08)

    def draw(self, axes: Axes, x: float, top: float, norm: LogNorm) -> None:
        """Draw tiles and labels.

        Args:
            axes: axes in inches, downwards.
            x: the left end of the labels.
            top: the upper end of the tiles.
            norm: the scale of the maps' colours.
        """
        left = x + self.width - self.tiles_in
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


def sheet_size(blocks: Sequence[MapBlock]) -> tuple[float, float]:
    """(width, height) in inches, with the colour bars."""
    height = max(y + block.height for _, y, block in _arrange(blocks))
    return max(NARROWEST_IN, _width(blocks)), height + (style.BAR_IN if _shared_maps(blocks) else style.MARGIN_IN)


def _width(blocks: Sequence[MapBlock]) -> float:
    return max(x + block.width for x, _, block in _arrange(blocks)) + style.MARGIN_IN


def draw_sheet(canvas: Canvas, blocks: Sequence[MapBlock]) -> None:
    """Fill the canvas's lower ``sheet_size`` with the blocks, each scale of colours with its bar below."""
    width, height = sheet_size(blocks)
    canvas.set_layout_engine("none")
    axes = canvas.add_axes((0, 0, 1, height / canvas.get_figheight()))
    used = _width(blocks)
    axes.set(xlim=((used - width) / 2, (used + width) / 2), ylim=(height, 0), autoscale_on=False)
    axes.set_axis_off()
    shared = style.log_scale(_shared_maps(blocks))
    for x, y, block in _arrange(blocks):
        norm = style.log_scale(block.maps, _LEAST_OWN_RATIO) if block.has_own_scale else shared
        block.draw(axes, x, y, norm)
        if block.has_own_scale:
            at = x + block.width - block.tiles_in / 2, y + block.height - style.BAR_IN
            _add_bar(canvas, axes, at, 0.75 * block.tiles_in, norm)
    if _shared_maps(blocks):
        _add_bar(canvas, axes, (used / 2, height - style.BAR_IN), 3.0, shared)


def _add_bar(canvas: Canvas, axes: Axes, at: tuple[float, float], width: float, norm: LogNorm) -> None:
    """Add a bar below the place ``at`` of its upper middle, in inches of the sheet."""
    corner = axes.transData.transform((at[0] - width / 2, at[1] + style.BAR_BOTTOM_IN)) / canvas.dpi
    size = canvas.get_figwidth(), canvas.get_figheight()
    place = (corner[0] / size[0], corner[1] / size[1], width / size[0], style.THICKNESS_IN / size[1])
    style.draw_bar(canvas, canvas.add_axes(place), norm)


def _shared_maps(blocks: Iterable[MapBlock]) -> list[Array]:
    return [pixels for block in blocks if not block.has_own_scale for pixels in block.maps]


def _arrange(blocks: Sequence[MapBlock]) -> list[tuple[float, float, MapBlock]]:
    """The x of each block's labels and the y of its tiles, in rows at most as wide as a page."""
    places: list[tuple[float, float, MapBlock]] = []
    head = max(block.head_in for block in blocks)
    y = head
    for row in _rows(blocks):
        x = style.MARGIN_IN
        for block in row:
            places.append((x, y, block))
            x += block.width + _BLOCK_GAP_IN
        y += max(block.height for block in row) + _BLOCK_GAP_IN + head
    return places


def _rows(blocks: Sequence[MapBlock]) -> list[Sequence[MapBlock]]:
    """As few rows as fit a page's width, with about as many blocks in each."""
    for num_rows in range(1, len(blocks) + 1):
        in_row = ceil(len(blocks) / num_rows)
        rows = [blocks[first : first + in_row] for first in range(0, len(blocks), in_row)]
        if all(sum(block.width + _BLOCK_GAP_IN for block in row) <= WIDEST_IN for row in rows):
            break
    return rows


def _draw_tile(axes: Axes, tile: Tile, x: float, y: float, side: float, norm: LogNorm) -> None:
    """Draw a tile so that its longer side fills the place."""
    rows, columns = tile.pixels.shape[:2]
    scale = side / max(rows, columns)
    pixels = colormaps[style.DEPTH_COLORS](norm(tile.pixels), bytes=True) if tile.pixels.ndim == 2 else tile.pixels
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
