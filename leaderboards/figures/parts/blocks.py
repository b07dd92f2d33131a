"""Recorded maps -> blocks of tiles and the sentence that explains them: one way for each kind of ``MapsFigure``."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from matplotlib.colors import to_hex

from leaderboards.boards.recorded import Array, Recorded, When
from leaderboards.figures.parts.tiles import GAP_IN, Box, MapBlock, Tile

MOST_LAYERS, MOST_HEADS = 12, 9
CORNER = 48
REACH = 3  # tokens around the query that the zoom shows
_MAP_IN = 0.66
_BETWEEN_IN = 1.6  # a dot of the PNG for each of 256 patches
_PAPER_DEPTH = 12  # layers of every network whose maps a paper shows by number

Blocks = tuple[list[MapBlock], str]


@dataclass(frozen=True)
class ShownMaps:
    """The maps that a block shows: of a model before or after its training."""

    title: str
    when: When
    maps: Recorded
    paper_layers: tuple[int, ...] = ()  # that the paper shows of twelve, from 1; () leaves it to the kind of figure
    num_images: int = 4  # the first ones are shown

    @property
    def layers(self) -> list[int]:
        """Those of ``paper_layers`` in this model, counted from 0: at the same share of its depth."""
        last = len(self.maps.layers) - 1
        return sorted({round((layer - 1) / (_PAPER_DEPTH - 1) * last) for layer in self.paper_layers})

    def heads(self, layer: int, what: str, *image: int) -> Array | list[Array]:
        """One layer's tensor, or its part for an image; no heads where there is no such layer."""
        found = self.maps.of_layer(self.when, layer, what)
        return [] if found is None else found[image]


def image_blocks(shown: Sequence[ShownMaps]) -> Blocks:
    """The pictures with the query in a red box, then each model's heads in the paper's layers, else in an early and a
    late one."""
    layers = shown[0].layers or compared_layers(shown)
    pictures = shown[0].maps.arrays["images"][: shown[0].num_images]
    inputs = MapBlock("Input", [""] * len(pictures), [""], len(layers) * (_MAP_IN + GAP_IN) - GAP_IN)
    inputs.tiles = {(i, 0): _picture(picture, shown[0].maps) for i, picture in enumerate(pictures)}
    blocks = [inputs]
    for one in shown:
        tiles = {}
        for row, (image, layer) in enumerate((i, layer) for i in range(len(pictures)) for layer in layers):
            for head, pixels in enumerate(one.heads(layer, "images", image)[:MOST_HEADS]):
                tiles[row, head] = Tile(pixels, note=_gate_note(one, layer, head))
        labels = [f"Layer {layer + 1}" for layer in layers] * len(pictures)
        blocks.append(MapBlock(one.title, labels, _head_labels(tiles), _MAP_IN, tiles))
    gated = any(tile.note for block in blocks for tile in block.tiles.values())
    gates = "Numbers: the gate, from white (content) to red (position)." if gated else ""
    cut = _name_cut(len(one.heads(layer, "images", 0)) for one in shown for layer in layers)
    return blocks, " ".join(filter(None, ("Red box: the query patch.", gates, cut)))


def compared_layers(shown: Sequence[ShownMaps]) -> list[int]:
    """The second layer, and the last one that has gates in any of the models; without gates the last of all."""
    depth = max(len(one.maps.layers) for one in shown)
    gated = [i for i in range(depth) if any(len(one.heads(i, "gates")) for one in shown)]
    last = gated[-1] if gated and gated[-1] > 1 else depth - 1
    return sorted({min(1, depth - 1), last})


def _picture(picture: Array, maps: Recorded) -> Tile:
    height, width = picture.shape[0] / maps.grid[0], picture.shape[1] / maps.grid[1]
    row, column = maps.query
    return Tile(picture, (Box(row * height, column * width, height, width, "red"),))


def _gate_note(one: ShownMaps, layer: int, head: int) -> tuple[str, str] | None:
    gates = one.heads(layer, "gates")
    if not len(gates):
        return None
    gate = float(gates[head])
    fade = 1 - 0.7 * gate  # pure red cannot be read on black
    return f"{gate:.2f}", to_hex((1.0, fade, fade))


def query_blocks(shown: Sequence[ShownMaps]) -> Blocks:
    """The heads' maps averaged over images, for each one and each of its recorded queries."""
    blocks = []
    for one in shown:
        layers = [one.heads(i, "queries") for i in range(min(MOST_LAYERS, len(one.maps.layers)))]
        for number, (row, column) in enumerate(one.maps.queries):
            title = f"{one.title}, query in row {row + 1}, column {column + 1}"
            of_query = [(layer, [of_head[number] for of_head in heads]) for layer, heads in enumerate(layers)]
            blocks.append(_average_block(title, of_query, (row, column), frame))
    return blocks, _explain_averages(shown, "queries")


def frame(pixels: Array, query: tuple[int, int]) -> Tile:
    return Tile(pixels, (Box(*query, 1, 1, "black"),))


def zoom(pixels: Array, query: tuple[int, int]) -> Tile:
    """At most 7 x 7 tokens: fewer where the map ends."""
    top, left = max(0, query[0] - REACH), max(0, query[1] - REACH)
    near = pixels[top : query[0] + REACH + 1, left : query[1] + REACH + 1]
    return Tile(near, (Box(query[0] - top, query[1] - left, 1, 1, "black"),))


def average_blocks(shown: Sequence[ShownMaps], make_tile: Callable[[Array, tuple[int, int]], Tile] = frame) -> Blocks:
    """A grid of layers and heads for each one: whole maps, or by ``zoom`` the tokens around the query."""
    blocks = []
    for one in shown:
        layers = one.layers or range(min(MOST_LAYERS, len(one.maps.layers)))
        heads = [(layer, one.heads(layer, "central")) for layer in layers]
        blocks.append(_average_block(one.title, heads, one.maps.query, make_tile))
    return blocks, _explain_averages(shown, "central")


def _average_block(
    title: str,
    layers: Sequence[tuple[int, Array | list[Array]]],
    query: tuple[int, int],
    make_tile: Callable[[Array, tuple[int, int]], Tile],
) -> MapBlock:
    """A row for each layer, given by its number from 0 and the maps of its heads."""
    tiles = {
        (row, head): make_tile(pixels, query)
        for row, (_, heads) in enumerate(layers)
        for head, pixels in enumerate(heads[:MOST_HEADS])
    }
    return MapBlock(title, [f"Layer {layer + 1}" for layer, _ in layers], _head_labels(tiles), _MAP_IN, tiles)


def _explain_averages(shown: Sequence[ShownMaps], what: str) -> str:
    cut = _name_cut(len(one.heads(i, what)) for one in shown for i in range(len(one.maps.layers)))
    note = f"Means over {shown[0].maps.num_images} images. Black square: the query patch."
    return " ".join(filter(None, (note, cut)))


def _head_labels(tiles: dict[tuple[int, int], Tile]) -> list[str]:
    num_heads = 1 + max((head for _, head in tiles), default=0)
    return ["Head 1", *(str(head) for head in range(2, num_heads + 1))]


def _name_cut(nums_heads: Iterable[int]) -> str:
    most = max(nums_heads)
    return f"The first {MOST_HEADS} of {most} heads." if most > MOST_HEADS else ""


def between_blocks(shown: Sequence[ShownMaps], corner: int = 0) -> Blocks:
    """A column for each one, a row for each layer. With a ``corner``, so many patches in the upper left of each map are
    enlarged, with white squares where a row of patches looks at itself."""
    blocks, sides = [], set()
    for one in shown:
        num_layers, columns = len(one.maps.layers), one.maps.grid[1]
        tiles = {}
        for row in range(num_layers):
            if len(pixels := np.asarray(one.heads(row, "between"), np.float32)):
                sides.add(len(pixels))
                is_cut = 0 < corner < len(pixels)
                tiles[row, 0] = Tile(pixels, (Box(0, 0, corner, corner, "red"),) if is_cut else ())
                if is_cut:
                    squares = (Box(i, i, columns, columns, "white") for i in range(0, corner - columns + 1, columns))
                    tiles[row, 1] = Tile(pixels[:corner, :corner], tuple(squares))
        heads = ["All patches", f"The first {corner}"] if (0, 1) in tiles else [""]
        blocks.append(MapBlock(one.title, [f"Layer {row + 1}" for row in range(num_layers)], heads, _BETWEEN_IN, tiles))
    return blocks, _explain(shown[0].maps, max(sides, default=0), corner)


def _explain(maps: Recorded, side: int, corner: int) -> str:
    num_patches = prod(maps.grid)
    part = f"the first {side} of {num_patches}" if side < num_patches else f"all {num_patches}"
    boxes = "Red boxes are enlarged beside; white squares: a row of patches and itself." if 0 < corner < side else ""
    note = f"From patch (down) to patch (right), {part}. Means over {maps.num_images} images and a layer's heads."
    return " ".join(filter(None, (note, boxes)))
