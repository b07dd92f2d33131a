"""Attention maps of a network before and after its training, as a file that figures are drawn from.

``maps.safetensors`` holds, with the numbers of layers as LL and "before" or "after" (of one that was trained) as WHEN:

    images            (4, height, width, 3) uint8
    WHEN/LL/images    (4, H, rows, columns)  what the central query pays to each patch, on each of these images
    WHEN/LL/central   (H, rows, columns)     the same, averaged over the images
    WHEN/LL/queries   (H, Q, rows, columns)  averages for other queries too: the central one, in the upper left
                                             quarter, at the upper edge and in the lower right corner
    WHEN/LL/between   (n, n) float16         from patch to patch, averaged over images and heads: of the first n
                                             patches, which are all of them where these are at most 256
    WHEN/LL/centers   (H, 2)                 where a head looks on average, (rows, columns), key - query
    WHEN/LL/gates     (H,)                   of GPSA layers
    WHEN/LL/gaussian_centers (H, 2), WHEN/LL/gaussian_precision (H, 2, 2)   of quadratic encodings
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from imagesets.loader import ImageLoader
from suite.base.files import write_atomically
from suite.models.convit import probes

NUM_IMAGES = 100  # Figure 15 of arXiv:2103.10697 and Figure 6 of arXiv:1911.03584 average over as many
_SHOWN = 4
_CHUNK = 20
_MOST_PATCHES = 256


def record_maps(networks: Mapping[str, nn.Module], images: ImageLoader, path: Path) -> str:
    """Write the maps of networks of one shape, by WHEN, on test images of all classes; returns the file's SHA-256."""
    network = next(iter(networks.values()))
    device = next(network.parameters()).device
    batch = images.spread_batch(NUM_IMAGES).images.to(device)
    found = {when: describe_maps(one, batch) for when, one in networks.items()}
    tensors = {f"{when}/{key}": value for when, described in found.items() for key, value in described.items()}
    tensors["images"] = images.spread_pixels(NUM_IMAGES)[:_SHOWN]
    rows, columns = _grid(network, batch)
    about = {
        "layers": list(probes.attention_layers(network)),
        "grid": [rows, columns],
        "num_images": len(batch),
        "queries": choose_queries(rows, columns),
    }
    metadata = {"about": json.dumps(about)}  # one entry: of several, safetensors writes one or another first
    data = save({name: value.contiguous().cpu() for name, value in tensors.items()}, metadata)
    write_atomically(path, data)
    return hashlib.sha256(data).hexdigest()


def choose_queries(rows: int, columns: int) -> list[tuple[int, int]]:
    """(row, column) of the queries whose averages are recorded, the central one first."""
    return [(rows // 2, columns // 2), (rows // 4, columns // 4), (0, columns // 2), (rows - 1, columns - 1)]


def describe_maps(network: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """The tensors of one network, without their WHEN."""
    rows, columns = _grid(network, images)
    queries = [row * columns + column for row, column in choose_queries(rows, columns)]

    def measure(map_BHNN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of each image the queries' rows (B, H, Q, L); from patch to patch (n, n), summed over the images, since a
        chunk may be smaller, and averaged over the heads; and the centers (H, 2)."""
        patches_BHLL = probes.between_patches(map_BHNN, rows * columns)
        between_LL = patches_BHLL[:, :, :_MOST_PATCHES, :_MOST_PATCHES].mean(1).sum(0)
        return patches_BHLL[:, :, queries], between_LL, probes.attention_centers(patches_BHLL, (rows, columns))

    found: dict[str, Tensor] = {}
    parts = [probes.probe(network, chunk, measure) for chunk in images.split(_CHUNK)]
    for number, (name, layer) in enumerate(probes.attention_layers(network).items()):
        cuts, sums, centers = zip(*(part[name] for part in parts), strict=True)
        single_BHQRC = torch.cat(cuts).unflatten(-1, (rows, columns))
        found[f"{number:02d}/images"] = single_BHQRC[:_SHOWN, :, 0]
        found[f"{number:02d}/central"] = single_BHQRC[:, :, 0].mean(0)
        found[f"{number:02d}/queries"] = single_BHQRC.mean(0)
        found[f"{number:02d}/between"] = torch.stack(sums).sum(0) / len(images)
        found[f"{number:02d}/centers"] = torch.stack(centers).mean(0)
        found |= {f"{number:02d}/{key}": value for key, value in _parameters(layer).items()}
    return {key: value.half() if key.endswith("/between") else value.float() for key, value in found.items()}


def _parameters(layer: nn.Module) -> dict[str, Tensor]:
    """Read where a layer looks from its own parameters."""
    found = {"gates": probes.gating_values(layer)[""]} if probes.gating_values(layer) else {}
    for centers_H2, precision_H22 in probes.gaussian_heads(layer).values():
        found |= {"gaussian_centers": centers_H2, "gaussian_precision": precision_H22}
    return found


def _grid(network: nn.Module, images: Tensor) -> tuple[int, int]:
    """(rows, columns) of patches, from the first layer's map of one image."""
    sizes = probes.probe(network, images[:1], lambda map_BHNN: torch.tensor(map_BHNN.shape[-1]))
    return probes.token_grid(network, int(next(iter(sizes.values()))))
