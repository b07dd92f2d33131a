"""The small ViT of "Structured Initialization for Attention in Vision Transformers" (arXiv:2404.01139).

Shape legend: B batch, N tokens (patches in row-major order, after the class token if there is one), D width.
"""

from functools import partial
from typing import Literal, get_args

import torch
from timm.layers import Attention as TimmAttention
from timm.layers import PatchEmbed, trunc_normal_
from torch import Tensor, nn

from suite.base.errors import SpecError, check_name
from suite.models.layers import (
    Block,
    ImageSize,
    check_divides,
    check_positive,
    init_linears,
    patch_grid,
    scale_linears,
)
from suite.models.structured_init.impulse import ImpulseProblem, sinusoidal_encoding
from suite.models.structured_init.initializations import FILTER_SIZES, init_impulse, init_mimetic

Pooling = Literal["average", "class_token"]
Position = Literal["sinusoidal", "learned"]
Initialization = Literal["kaiming_uniform", "trunc_normal", "mimetic", "impulse_3", "impulse_5"]
PseudoInput = Literal["PE", "U", "PE+U", "G", "PE+G"]


class ViT(nn.Module):
    """A pre-LN ViT (arXiv:2010.11929, Eqs. 1 to 4) with the initializations that arXiv:2404.01139 compares.

        x_0 = patches W + position;  x = x + MHSA(LN(x));  x = x + MLP(LN(x));  logits = W LN(pool(x))

    Args:
        image_size, patch_size: pixels; the patch must divide the image, whose grid need not be square.
        pooling: the mean over all patches, or the state of a class token, which has no position (Table 1).
        position: a fixed sinusoidal encoding of row and column, or a learned one (Table 1).
        initialization: PyTorch's default; timm's; mimetic; or impulse with a window of 3x3 or 5x5 (Table 2).
        pseudo_input_first, pseudo_input_following: input that the impulse is solved on, for the first and the other
            layers (Table 6): "PE" is the sinusoidal encoding, also if the position is learned, U uniform and G normal
            noise.
        same_for_all_layers: true for a single impulse solution, false for another one for each layer (Table 6).
        impulse_steps: adam steps of Algorithm 1.
        renormalize: the authors' code's way of solving it, see ``impulse.renormalize_as_the_code``.
        weight_scale: factor on the deviation of the linear weights that the initialization draws; solved queries and
            keys keep theirs. Truncated normal has a deviation of 0.02 at any width, the others' follows the width.
        mimetic_port: the authors' port of the mimetic initialization, see ``initializations.init_mimetic``.

    forward: images (B, 3, height, width) -> logits (B, num_classes).

    Differs: nothing from the paper. By default Algorithm 1 is solved literally; the authors' code also renormalizes.
    Where the paper is silent we do as the code: shifts out of the image have no target, the solved layers keep their
    random biases, values and projections, and the mean is normalized rather than each token before it.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: ImageSize,
        dim: int,
        num_heads: int,
        depth: int = 12,
        patch_size: int = 2,
        pooling: Pooling = "average",
        position: Position = "sinusoidal",
        initialization: Initialization = "trunc_normal",
        pseudo_input_first: PseudoInput = "PE",
        pseudo_input_following: PseudoInput = "PE",
        same_for_all_layers: bool = True,
        impulse_steps: int = 10_000,
        renormalize: bool = False,
        mimetic_port: bool = False,
        weight_scale: float = 1.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        check_divides("num_heads", num_heads, "dim", dim)
        if dim % 4:
            raise SpecError(f"dim is {dim}, expected a multiple of 4, for sine and cosine of row and column")
        check_positive("weight_scale", weight_scale)
        check_name("pooling", pooling, get_args(Pooling))
        check_name("position", position, get_args(Position))
        check_name("initialization", initialization, get_args(Initialization))
        check_name("pseudo_input_first", pseudo_input_first, get_args(PseudoInput))
        check_name("pseudo_input_following", pseudo_input_following, get_args(PseudoInput))
        if depth < 1 or impulse_steps < 0:
            raise SpecError(f"depth is {depth} and impulse_steps {impulse_steps}, expected at least 1 and 0")
        grid = patch_grid(image_size, patch_size)
        # Before any other draw, so that models that differ in their classes or layers share solutions.
        impulse_seed = int(torch.randint(2**31 - 1, (), device="cpu")) if initialization in FILTER_SIZES else 0

        self.patch_embed = PatchEmbed(image_size, patch_size, 3, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim)) if pooling == "class_token" else None
        if position == "learned":
            self.pos_embed = nn.Parameter(torch.zeros(1, grid[0] * grid[1], dim))
        else:
            encoding_ND = sinusoidal_encoding(grid, dim, torch.get_default_dtype())
            self.register_buffer("pos_embed", encoding_ND[None], persistent=False)
        rates = torch.linspace(0, drop_path, depth, device="cpu").tolist()
        layers = [TimmAttention(dim, num_heads, qkv_bias=True) for _ in rates]
        self.blocks = nn.ModuleList(Block(dim, layer, rate) for layer, rate in zip(layers, rates, strict=True))
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, num_classes)

        if isinstance(self.pos_embed, nn.Parameter):  # as timm
            trunc_normal_(self.pos_embed, std=0.02)
        if self.cls_token is not None:
            nn.init.normal_(self.cls_token, std=1e-6)
        if initialization == "trunc_normal":
            init_linears(self, std=0.02)
        scale_linears(self, weight_scale)
        if initialization == "mimetic":
            init_mimetic(layers, mimetic_port)
        elif initialization in FILTER_SIZES:
            problem = ImpulseProblem(
                grid,
                dim,
                num_heads,
                FILTER_SIZES[initialization],
                pseudo_input_first,
                steps=impulse_steps,
                renormalize=renormalize,
                seed=impulse_seed,
            )
            init_impulse(layers, problem, pseudo_input_following, same_for_all_layers)

    def no_weight_decay(self) -> set[str]:
        """Parameters exempt from weight decay beside biases and other 1-D ones."""
        return {"pos_embed", "cls_token"}

    def forward(self, images: Tensor) -> Tensor:
        x_BND = self.patch_embed(images) + self.pos_embed
        if self.cls_token is not None:
            x_BND = torch.cat([self.cls_token.expand(x_BND.shape[0], -1, -1), x_BND], dim=1)
        for block in self.blocks:
            x_BND = block(x_BND)
        pooled_BD = x_BND.mean(1) if self.cls_token is None else x_BND[:, 0]
        return self.head(self.norm(pooled_BD))


# Sec. 5.1: patches of 2x2 pixels on 32x32 images. Tables 5 and 7 override dim, num_heads and depth.
MODELS = {
    "vit_t": partial(ViT, dim=192, num_heads=3),
    "vit_s": partial(ViT, dim=384, num_heads=6),
}
WITHOUT_EFFECT_ON_FLOPS = (
    "initialization", "pseudo_input_first", "pseudo_input_following", "same_for_all_layers", "impulse_steps",
    "renormalize", "mimetic_port", "weight_scale", "drop_path",
)  # fmt: skip
PAPER_INPUT = (32, 10)  # image side in pixels, classes
