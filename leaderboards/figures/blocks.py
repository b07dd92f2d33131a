"""Recorded maps -> blocks of tiles and the sentence that explains them: one way for each kind of ``MapsFigure``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from matplotlib.colors import to_hex

from leaderboards.figures.recorded import Array, Recorded, When
from leaderboards.figures.tiles import GAP_IN, Block, Box, Tile

MOST_LAYERS, MOST_HEADS, HEADS_IN_CORNER = 12, 9, 3
REACH = 3  # tokens around the query that the zoom shows
_MAP_IN, _CORNER_IN = 0.66, 1.7

Blocks = tuple[list[Block], str]


@dataclass(frozen=True)
class Source:
    """Whose maps a block shows: a model before or after its training."""

    title: str
    when: When
    maps: Recorded

    def heads(self, layer: int, what: str) -> Array | list[Array]:
        """One layer's tensor; no heads where there is no such layer."""
        found = self.maps.of_layer(self.when, layer, what)
        return [] if found is None else found


# -- what the central query pays to each patch of single images


def image_blocks(sources: Sequence[Source]) -> Blocks:
    """The pictures with the query in a red box, then for each source the heads of an early and a late layer."""
    layers = compared_layers(sources)
    pictures = sources[0].maps.arrays["images"]
    inputs = Block("Input", [""] * len(pictures), [""], len(layers) * (_MAP_IN + GAP_IN) - GAP_IN)
    inputs.tiles = {(i, 0): _picture(picture, sources[0].maps) for i, picture in enumerate(pictures)}
    blocks = [inputs]
    for source in sources:
        tiles = {}
        for row, (image, layer) in enumerate((i, layer) for i in range(len(pictures)) for layer in layers):
            for head, pixels in enumerate(_of_image(source, layer, image)[:MOST_HEADS]):
                tiles[row, head] = Tile(pixels, note=_gate_note(source, layer, head))
        labels = [f"Layer {layer + 1}" for layer in layers] * len(pictures)
        blocks.append(Block(source.title, labels, _head_labels(tiles), _MAP_IN, tiles))
    gated = any(tile.note for block in blocks for tile in block.tiles.values())
    gates = "Numbers: the gate, from white (content) to red (position)." if gated else ""
    cut = _name_cut(len(_of_image(source, layer, 0)) for source in sources for layer in layers)
    return blocks, " ".join(filter(None, ("Red box: the query patch.", gates, cut)))


def compared_layers(sources: Sequence[Source]) -> list[int]:
    """The second layer, and the last one that has gates in any of the models; without gates the last of all."""
    depth = max(len(source.maps.layers) for source in sources)
    gated = [i for i in range(depth) if any(len(source.heads(i, "gates")) for source in sources)]
    last = gated[-1] if gated and gated[-1] > 1 else depth - 1
    return sorted({min(1, depth - 1), last})


def _of_image(source: Source, layer: int, image: int) -> Array | list[Array]:
    found = source.maps.of_layer(source.when, layer, "images")
    return [] if found is None else found[image]


def _picture(picture: Array, maps: Recorded) -> Tile:
    height, width = picture.shape[0] / maps.grid[0], picture.shape[1] / maps.grid[1]
    row, column = maps.query
    return Tile(picture, (Box(row * height, column * width, height, width, "red"),))


def _gate_note(source: Source, layer: int, head: int) -> tuple[str, str] | None:
    gates = source.heads(layer, "gates")
    if not len(gates):
        return None
    gate = float(gates[head])
    fade = 1 - 0.7 * gate  # pure red cannot be read on black
    return f"{gate:.2f}", to_hex((1.0, fade, fade))


# -- the same, averaged over images


def average_blocks(sources: Sequence[Source]) -> Blocks:
    """A grid of layers and heads for each source."""
    return _averages(sources, frame)


def zoomed_blocks(sources: Sequence[Source]) -> Blocks:
    """The same, zoomed to the tokens around the query."""
    return _averages(sources, zoom)


def query_blocks(sources: Sequence[Source]) -> Blocks:
    """The same as averages, for each source and each of its recorded queries."""
    blocks = []
    for source in sources:
        layers = [source.heads(i, "queries") for i in range(len(source.maps.layers))]
        for number, (row, column) in enumerate(source.maps.queries):
            title = f"{source.title}, query in row {row + 1}, column {column + 1}"
            of_query = [[of_head[number] for of_head in heads] for heads in layers]
            blocks.append(_average_block(title, of_query, (row, column), frame))
    return blocks, _explain_averages(sources, "queries")


def frame(pixels: Array, query: tuple[int, int]) -> Tile:
    """The whole map."""
    return Tile(pixels, (Box(*query, 1, 1, "black"),))


def zoom(pixels: Array, query: tuple[int, int]) -> Tile:
    """At most 7 x 7 tokens: fewer where the map ends."""
    top, left = max(0, query[0] - REACH), max(0, query[1] - REACH)
    near = pixels[top : query[0] + REACH + 1, left : query[1] + REACH + 1]
    return Tile(near, (Box(query[0] - top, query[1] - left, 1, 1, "black"),))


def _averages(sources: Sequence[Source], make_tile: Callable[[Array, tuple[int, int]], Tile]) -> Blocks:
    blocks = []
    for source in sources:
        layers = [source.heads(i, "central") for i in range(len(source.maps.layers))]
        blocks.append(_average_block(source.title, layers, source.maps.query, make_tile))
    return blocks, _explain_averages(sources, "central")


def _average_block(
    title: str,
    layers: Sequence[Array | list[Array]],
    query: tuple[int, int],
    make_tile: Callable[[Array, tuple[int, int]], Tile],
) -> Block:
    """A row for each layer, whose heads are given with their maps."""
    tiles = {
        (layer, head): make_tile(pixels, query)
        for layer, heads in enumerate(layers[:MOST_LAYERS])
        for head, pixels in enumerate(heads[:MOST_HEADS])
    }
    labels = [f"Layer {layer + 1}" for layer in range(len(layers[:MOST_LAYERS]))]
    return Block(title, labels, _head_labels(tiles), _MAP_IN, tiles)


def _explain_averages(sources: Sequence[Source], what: str) -> str:
    cut = _name_cut(len(source.heads(i, what)) for source in sources for i in range(len(source.maps.layers)))
    note = f"Means over {sources[0].maps.num_images} images. Black square: the query patch."
    return " ".join(filter(None, (note, cut)))


def _head_labels(tiles: dict[tuple[int, int], Tile]) -> list[str]:
    num_heads = 1 + max((head for _, head in tiles), default=0)
    return ["Head 1", *(str(head) for head in range(2, num_heads + 1))]


def _name_cut(nums_heads: Iterable[int]) -> str:
    most = max(nums_heads)
    return f"The first {MOST_HEADS} of {most} heads." if most > MOST_HEADS else ""


# -- the corner of the average map between patches


def corner_blocks(sources: Sequence[Source]) -> Blocks:
    """A column for each source: its first, middle and last layer; white squares mark where a row of patches looks at
    itself."""
    blocks, sides = [], set()
    for source in sources:
        layers = spread_layers(len(source.maps.layers))
        tiles = {}
        for row, layer in enumerate(layers):
            heads = source.heads(layer, "corner")[:HEADS_IN_CORNER]
            if len(heads):
                corner = np.mean(heads, axis=0)
                tiles[row, 0] = Tile(corner, _diagonal(len(corner), source.maps))
                sides.add(len(corner))
        blocks.append(Block(source.title, [f"Layer {layer + 1}" for layer in layers], [""], _CORNER_IN, tiles))
    note = (
        f"From patch (down) to patch (right): the first {max(sides, default=0)} of {prod(sources[0].maps.grid)}. Means "
        f"over {sources[0].maps.num_images} images and the first {HEADS_IN_CORNER} heads. White squares: a row of "
        "patches and itself."
    )
    return blocks, note


def spread_layers(num_layers: int) -> list[int]:
    """First, middle and last: of twelve the 1st, 6th and 12th, as the paper shows."""
    return sorted({0, (num_layers - 1) // 2, num_layers - 1})


def _diagonal(side: int, maps: Recorded) -> tuple[Box, ...]:
    columns = maps.grid[1]
    return tuple(Box(i, i, columns, columns, "white") for i in range(0, side - columns + 1, columns))
