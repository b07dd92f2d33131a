"""Attention maps of a network before and after its training, as a file that figures are drawn from.

``maps.safetensors`` holds, with the numbers of layers as LL and "before" or "after" as WHEN:

    images            (4, height, width, 3) uint8
    WHEN/LL/images    (4, H, rows, columns)  what the central query pays to each patch, on each of these images
    WHEN/LL/central   (H, rows, columns)     the same, averaged over the images
    WHEN/LL/queries   (H, Q, rows, columns)  averages for other queries too: the central one, in the upper left
                                             quarter, at the upper edge and in the lower right corner
    WHEN/LL/corner    (H, n, n)              upper left corner of the averaged map between patches, n at most 48
    WHEN/LL/centers   (H, 2)                 where a head looks on average, (rows, columns), key - query
    WHEN/LL/gates     (H,)                   of GPSA layers
    WHEN/LL/gaussian_centers (H, 2), WHEN/LL/gaussian_precision (H, 2, 2)   of quadratic encodings
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from imagesets.loader import ImageLoader
from suite.files import write_atomically
from suite.models.probes import (
    attention_centers,
    attention_layers,
    between_patches,
    gating_values,
    gaussian_heads,
    probe,
    token_grid,
)

NUM_IMAGES = 100  # Figure 15 of arXiv:2103.10697 and Figure 6 of arXiv:1911.03584 average over as many
_SHOWN = 4
_CHUNK = 20
_CORNER = 48


def record_maps(before: nn.Module, after: nn.Module, images: ImageLoader, path: Path) -> None:
    """Write the maps of both networks on the first test images."""
    device = next(after.parameters()).device
    batch = images.test_batch(0, NUM_IMAGES).images.to(device)
    tensors = {f"{when}/{key}": value for when, network in (("before", before), ("after", after))
               for key, value in describe_maps(network, batch).items()}  # fmt: skip
    tensors["images"] = images.test_pixels(_SHOWN)
    rows, columns = _grid(after, batch)
    about = {
        "layers": list(attention_layers(after)),
        "grid": [rows, columns],
        "num_images": len(batch),
        "queries": choose_queries(rows, columns),
    }
    metadata = {key: json.dumps(value) for key, value in about.items()}
    write_atomically(path, save({name: value.contiguous().cpu() for name, value in tensors.items()}, metadata))


def choose_queries(rows: int, columns: int) -> list[tuple[int, int]]:
    """(row, column) of the queries whose averages are recorded, the central one first."""
    return [(rows // 2, columns // 2), (rows // 4, columns // 4), (0, columns // 2), (rows - 1, columns - 1)]


def describe_maps(network: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """The tensors of one network, without their WHEN."""
    rows, columns = _grid(network, images)
    queries = [row * columns + column for row, column in choose_queries(rows, columns)]

    def cut(map_BHNN: Tensor) -> Tensor:
        """Of each image the queries' rows, and the corner: (B, H, Q * L + n * n)."""
        patches_BHLL = between_patches(map_BHNN, rows * columns)
        corner = patches_BHLL[:, :, :_CORNER, :_CORNER].flatten(2)
        return torch.cat([patches_BHLL[:, :, queries].flatten(2), corner], -1)

    found: dict[str, Tensor] = {}
    cuts = [probe(network, chunk, cut) for chunk in images.split(_CHUNK)]
    centers = [attention_centers(network, chunk) for chunk in images.split(_CHUNK)]
    for number, (name, layer) in enumerate(attention_layers(network).items()):
        cut_BHK = torch.cat([part[name] for part in cuts])
        shape = (len(queries), rows, columns)
        single_BHQRC = cut_BHK[..., : prod(shape)].unflatten(-1, shape)
        side = min(_CORNER, rows * columns)
        found[f"{number:02d}/images"] = single_BHQRC[:_SHOWN, :, 0]
        found[f"{number:02d}/central"] = single_BHQRC[:, :, 0].mean(0)
        found[f"{number:02d}/queries"] = single_BHQRC.mean(0)
        found[f"{number:02d}/corner"] = cut_BHK[..., prod(shape) :].mean(0).unflatten(-1, (side, side))
        found[f"{number:02d}/centers"] = torch.stack([part[name] for part in centers]).mean(0)
        found |= {f"{number:02d}/{key}": value for key, value in _parameters(layer).items()}
    return {key: value.float() for key, value in found.items()}


def _parameters(layer: nn.Module) -> dict[str, Tensor]:
    """What a layer itself says of where it looks."""
    found = {"gates": gating_values(layer)[""]} if gating_values(layer) else {}
    for centers_H2, precision_H22 in gaussian_heads(layer).values():
        found |= {"gaussian_centers": centers_H2, "gaussian_precision": precision_H22}
    return found


def _grid(network: nn.Module, images: Tensor) -> tuple[int, int]:
    """(rows, columns) of patches, from the first layer's map of one image."""
    sizes = probe(network, images[:1], lambda map_BHNN: torch.tensor(map_BHNN.shape[-1]))
    return token_grid(network, int(next(iter(sizes.values()))))
