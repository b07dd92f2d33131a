"""ConvMixer (arXiv:2201.09792) with trained or frozen spatial filters, as in Table 4 of arXiv:2404.01139.

The module tree, and so the state dict, is that of timm's ``convmixer_*``.
Shape legend: D width, K kernel side.
"""

from functools import partial
from typing import Literal, get_args

import torch
from timm.models import convmixer as timm_convmixer
from torch import Tensor, nn

from suite.base.errors import SpecError, check_name
from suite.models.layers import ImageSize, patch_grid

Spatial = Literal["trained", "random", "impulse", "box"]


def spatial_filters(kind: str, like_D1KK: Tensor) -> Tensor:
    """One K x K filter per channel: a single 1 / sqrt(K) at a random place, or 1 / sqrt(K^3) everywhere."""
    dim, _, side, _ = like_D1KK.shape
    if kind == "box":
        return torch.full_like(like_D1KK, side**-1.5)
    place_D1 = torch.randint(side * side, (dim, 1), device=like_D1KK.device)
    return like_D1KK.new_zeros(dim, side * side).scatter_(1, place_D1, side**-0.5).view_as(like_D1KK)


class ConvMixer(timm_convmixer.ConvMixer):
    """timm's ConvMixer with filters that may be frozen.

        x = BN(gelu(conv_pxp(image)));  depth times: x = x + BN(gelu(depthwise_KxK(x))), x = BN(gelu(conv_1x1(x)))
        logits = W mean(x) + b

    Args:
        image_size, patch_size: pixels; the patch must divide the image.
        kernel_size: K. An even K pads one pixel more to the right and below than to the left and above.
        spatial: "trained" (PyTorch's default start, U(+-1/K)), or frozen with their biases: "random" (the same start),
            "impulse" (Corollary 2) or "box" (Corollary 3). Biases start at U(+-1/K).

    forward: images (B, 3, height, width) -> logits (B, num_classes).

    Differs: nothing. The amplitudes of impulse and box, which the paper does not give, are the authors' code's.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: ImageSize,
        dim: int,
        depth: int,
        kernel_size: int,
        patch_size: int,
        spatial: Spatial = "trained",
    ) -> None:
        patch_grid(image_size, patch_size)
        check_name("spatial of ConvMixer", spatial, get_args(Spatial))
        if min(dim, depth, kernel_size) < 1:
            raise SpecError(f"dim {dim}, depth {depth} and kernel_size {kernel_size} must be positive")
        super().__init__(dim, depth, kernel_size, patch_size, num_classes=num_classes)
        frozen = [block[0].fn[0] for block in self.blocks] if spatial != "trained" else []
        for convolution in frozen:
            if spatial != "random":
                convolution.weight = nn.Parameter(spatial_filters(spatial, convolution.weight.detach()))
            convolution.requires_grad_(False)


# Table 4, whose other rows override kernel_size (3, 5, 8) and dim (512).
MODELS = {"convmixer": partial(ConvMixer, dim=256, depth=8, kernel_size=5, patch_size=2)}
WITHOUT_EFFECT_ON_FLOPS = ("spatial",)
PAPER_INPUT = (32, 10)  # image side in pixels, classes
