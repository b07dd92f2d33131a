"""ConViT: a ViT whose first layers are positional self-attention (arXiv:2103.10697).

Shape legend: B batch, N patches (rows * columns, row-major), R rows, C columns, D width, H heads, E = D / H.
The module tree, and so the state dict, is that of timm's ``convit_*``: published weights load with ``strict=True``.
"""

from functools import partial
from typing import Literal

import torch
from timm.layers import Attention as TimmAttention
from timm.layers import PatchEmbed, trunc_normal_
from torch import Tensor, nn

from suite.base.errors import SpecError, check_name
from suite.models.convit.gpsa import GatedPositionalSelfAttention, PositionalSelfAttention
from suite.models.layers import Block, ImageSize, check_divides, check_positive, init_linears, patch_grid

Attention = Literal["gated", "summed"]
_ATTENTIONS = {"gated": GatedPositionalSelfAttention, "summed": PositionalSelfAttention}


class ConViT(nn.Module):
    """arXiv:2103.10697, Fig. 4: ``num_gpsa_layers`` positional blocks on the patches, then the class token joins them
    for the remaining self-attention blocks; its last state is classified.

    Args:
        image_size, patch_size: pixels; the patch must divide the image, whose grid need not be square.
        attention: "gated" (GPSA, Eq. 7) or "summed" (vanilla PSA, Eq. 4; Fig. 9).
        locality_strength: alpha of Eq. 5 (Fig. 8).
        conv_init: start the positional layers as convolutions (Eq. 5); off: as any linear layer (Table 3, c, d, g).
        train_gates: off: gates frozen at 0, so that content and position weigh the same (Table 3, b, d, f, g).
        train_gpsa: off: positional attention and the norm before it frozen, "leaving only the FFNs to be trained"
            (Sec. 4, Table 3, f, g).
        weight_std: deviation of linear weights at the start; for what a narrow model needs, see ``DeiT``.

    forward: images (B, 3, height, width) -> logits (B, num_classes).

    Differs: nothing from the paper's equations. The paper's text swaps the numbers of the grid: a patch has 16x16
    pixels and there are 14x14 of them. Vanilla PSA keeps W_qry and W_key random where Eq. 5 sets them to zero: at zero
    both would have zero gradient for ever.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: ImageSize,
        dim: int,
        num_heads: int,
        patch_size: int = 16,
        depth: int = 12,
        num_gpsa_layers: int = 10,
        attention: Attention = "gated",
        locality_strength: float = 1.0,
        conv_init: bool = True,
        train_gates: bool = True,
        train_gpsa: bool = True,
        weight_std: float = 0.02,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.grid = patch_grid(image_size, patch_size)  # rows, columns
        check_divides("num_heads", num_heads, "dim", dim)
        check_positive("weight_std", weight_std)
        if not 0 <= num_gpsa_layers <= depth:
            raise SpecError(f"num_gpsa_layers is {num_gpsa_layers}, expected 0 to depth = {depth}")
        check_name("attention of ConViT", attention, _ATTENTIONS)
        self.num_gpsa_layers = num_gpsa_layers
        self.patch_embed = PatchEmbed(image_size, patch_size, 3, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.num_patches, dim))
        positional = [_ATTENTIONS[attention](dim, num_heads) for _ in range(num_gpsa_layers)]
        plain = [TimmAttention(dim, num_heads, qkv_bias=False) for _ in range(depth - num_gpsa_layers)]
        rates = torch.linspace(0, drop_path, depth, device="cpu").tolist()
        self.blocks = nn.ModuleList(Block(dim, a, rate) for a, rate in zip([*positional, *plain], rates, strict=True))
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, num_classes)
        init_linears(self, weight_std)
        trunc_normal_(self.pos_embed, std=0.02)
        trunc_normal_(self.cls_token, std=0.02)
        for layer in positional:
            if conv_init:
                layer.init_as_convolution(locality_strength)
            layer.freeze(gates=not train_gates, everything=not train_gpsa)
        for block in self.blocks[:num_gpsa_layers]:
            block.norm1.requires_grad_(train_gpsa)

    def no_weight_decay(self) -> set[str]:
        """Parameters exempt from weight decay beside biases and other 1-D ones."""
        return {"pos_embed", "cls_token"}

    def forward(self, images: Tensor) -> Tensor:
        x_BND = self.patch_embed(images) + self.pos_embed
        for block in self.blocks[: self.num_gpsa_layers]:
            x_BND = block(x_BND, self.grid)
        x_BND = torch.cat([self.cls_token.expand(x_BND.shape[0], -1, -1), x_BND], dim=1)
        for block in self.blocks[self.num_gpsa_layers :]:
            x_BND = block(x_BND)
        return self.head(self.norm(x_BND)[:, 0])


# Table 1; "+" keeps 64 dimensions per head. The micro size is ours: minutes on a laptop, at 32 pixels.
MODELS = {
    "convit_ti": partial(ConViT, num_heads=4, dim=192),
    "convit_s": partial(ConViT, num_heads=9, dim=432),
    "convit_b": partial(ConViT, num_heads=16, dim=768),
    "convit_ti_plus": partial(ConViT, num_heads=4, dim=256),
    "convit_s_plus": partial(ConViT, num_heads=9, dim=576),
    "convit_b_plus": partial(ConViT, num_heads=16, dim=1024),
    "convit_micro": partial(ConViT, num_heads=9, dim=54, depth=3, num_gpsa_layers=2, patch_size=8),
}
WITHOUT_EFFECT_ON_FLOPS = ("locality_strength", "conv_init", "train_gates", "train_gpsa", "drop_path")
PAPER_INPUT = (224, 1000)  # image side in pixels, classes
