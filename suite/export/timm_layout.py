"""A network -> the arguments and weights by which timm's own class is the same function of the images.

Where timm has no such network, or its registered names cannot be given these sizes, there is no layout.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from suite.models.convit.gpsa import GatedPositionalSelfAttention
from suite.models.convit.network import ConViT
from suite.models.custom import build_timm
from suite.models.deit import DeiT
from suite.models.structured_init.convmixer import ConvMixer
from suite.models.structured_init.vit import ViT
from suite.spec.experiment import Experiment

# timm fixes a ConvMixer's sizes by its name: width, depth, kernel and patch. Its convmixer_768_32 has a ReLU.
_CONVMIXERS = {(1536, 20, 9, 7): "convmixer_1536_20", (1024, 20, 9, 14): "convmixer_1024_20_ks9_p14"}
_TRANSFORMER = {"first_conv": "patch_embed.proj", "classifier": "head", "fixed_input_size": True}


@dataclass(frozen=True)
class TimmLayout:
    """Timm's name of a network, and what makes it this one.

    Attributes:
        arguments: keyword arguments of ``timm.create_model`` beside the number of classes.
        weights: the state dict under timm's names.
        layers: fields of ``pretrained_cfg``: which layers see images and classify, and whether images have one size.
    """

    architecture: str
    arguments: dict[str, Any]
    weights: dict[str, Tensor]
    layers: dict[str, Any]


def find_layout(network: nn.Module) -> TimmLayout | None:
    """Lay a network out as timm has it; None where timm has none like it."""
    if isinstance(network, DeiT):
        return TimmLayout("deit_tiny_patch16_224", _sizes(network), network.state_dict(), _TRANSFORMER)
    if isinstance(network, ViT):
        return _lay_out_vit(network)
    if isinstance(network, ConViT):
        return _lay_out_convit(network)
    if isinstance(network, ConvMixer):
        return _lay_out_convmixer(network)
    return None


def lay_out_own(experiment: Experiment, network: nn.Module) -> TimmLayout:
    """Lay out a model of timm's own, which the experiment names."""
    assert experiment.model_source is not None
    with torch.device("meta"):
        _, arguments = build_timm(experiment.model_source, 1, experiment.image_size, dict(experiment.model_options))
    known: dict[str, Any] = network.pretrained_cfg  # type: ignore[assignment]  # all of timm's have one
    layers = {name: known[name] for name in ("first_conv", "classifier") if isinstance(known.get(name), str)}
    layers = _TRANSFORMER | layers | {"fixed_input_size": "img_size" in arguments}
    return TimmLayout(experiment.model_source.name, arguments, network.state_dict(), layers)


def _sizes(network: Any) -> dict[str, Any]:
    """Name the sizes that all of our transformers have as timm's do."""
    embedding = network.patch_embed
    return {
        "img_size": list(embedding.img_size),
        "patch_size": embedding.patch_size[0],
        "embed_dim": embedding.proj.out_channels,
        "depth": len(network.blocks),
        "num_heads": network.blocks[0].attn.num_heads,
    }


def _lay_out_vit(network: ViT) -> TimmLayout:
    """timm's ViT keeps any position as a parameter, and calls the norm behind an average "fc_norm"."""
    weights = {**network.state_dict(), "pos_embed": network.pos_embed.detach()}
    arguments = _sizes(network)
    if network.cls_token is None:
        arguments |= {"class_token": False, "global_pool": "avg"}
        weights |= {f"fc_{name}": weights.pop(name) for name in ("norm.weight", "norm.bias")}
    else:
        arguments |= {"no_embed_class": True}
    return TimmLayout("vit_tiny_patch16_224", arguments, weights, _TRANSFORMER)


def _lay_out_convit(network: ConViT) -> TimmLayout | None:
    """timm's ConViT has gates, a square grid, and a class token only from a block behind the positional ones on."""
    positional = [block.attn for block in network.blocks[: network.num_gpsa_layers]]
    is_gated = all(isinstance(layer, GatedPositionalSelfAttention) for layer in positional)
    if not is_gated or len(positional) == len(network.blocks) or network.grid[0] != network.grid[1]:
        return None
    arguments = _sizes(network) | {"local_up_to_layer": len(positional)}
    arguments["embed_dim"] //= arguments["num_heads"]  # of one head
    arguments["img_size"] = arguments["img_size"][0]
    return TimmLayout("convit_tiny", arguments, network.state_dict(), _TRANSFORMER)


def _lay_out_convmixer(network: ConvMixer) -> TimmLayout | None:
    stem, spatial = network.stem[0], network.blocks[0][0].fn[0]
    sizes = (stem.out_channels, len(network.blocks), spatial.kernel_size[0], stem.kernel_size[0])
    name = _CONVMIXERS.get(sizes)
    return TimmLayout(name, {}, network.state_dict(), _TRANSFORMER | {"first_conv": "stem.0"}) if name else None
