"""ConViT: a ViT whose first layers are gated positional self-attention (arXiv:2103.10697).

Shape legend: B batch, N patches (rows * columns, row-major), R rows, C columns, D width, H heads, E = D / H.
The module tree, and so the state dict, is that of timm's ``convit_*``: published weights load with ``strict=True``.
"""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from timm.layers import DropPath, Mlp, PatchEmbed, trunc_normal_
from torch import Tensor, nn

from suite.errors import SpecError
from suite.models.layers import SelfAttention, check_divides


class GatedPositionalSelfAttention(nn.Module):
    """GPSA, Eqs. 6 and 7 of arXiv:2103.10697.

        A_h = (1 - sigmoid(gate_h)) softmax(q_h k_h^T / sqrt(E)) + sigmoid(gate_h) softmax(w_h . r)
        out = concat_h(A_h V_h) W_out + b_out

    with the relative position r = (dx, dy, dx^2 + dy^2), d = key - query in patches.

    Because w_h . r is a sum of a term in dx and a term in dy, its softmax over a whole grid is the outer product
    of a softmax over columns and one over rows. It is applied to the values as two small matrix products and
    never materialised; likewise the content half by fused attention. The paper's outer ``normalize`` is the
    identity, since both halves have rows that sum to one.
    """

    def __init__(self, dim: int, num_heads: int, locality_strength: float = 1.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.locality_strength = locality_strength
        self.qk = nn.Linear(dim, 2 * dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.pos_proj = nn.Linear(3, num_heads)
        self.gating_param = nn.Parameter(torch.ones(num_heads))

    def init_as_convolution(self) -> None:
        """Eq. 5: head h attends to the patch at its kernel offset; values pass unchanged.

        Head h has the offset (row, column) = (h mod k, h div k) - (k - 1) / 2 with k = sqrt(heads). For an even k
        the offsets lie between patches, and a head shares its attention among the four nearest.
        """
        side = math.isqrt(self.num_heads)
        if side * side != self.num_heads:
            raise SpecError(f"a convolutional initialization needs a square number of heads, found {self.num_heads}")
        head_H = torch.arange(self.num_heads)
        center_H2 = torch.stack([head_H // side, head_H % side], 1) - (side - 1) / 2  # (column, row)
        with torch.no_grad():
            nn.init.eye_(self.v.weight)
            weight_H3 = torch.cat([2 * center_H2, -torch.ones(self.num_heads, 1)], 1)
            self.pos_proj.weight.copy_(self.locality_strength * weight_H3)
            nn.init.zeros_(self.pos_proj.bias)
            nn.init.ones_(self.gating_param)

    def position_softmaxes(self, grid: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """The position attention's factors: (H, R, R) over rows and (H, C, C) over columns, [query, key]."""
        slope_x_H11, slope_y_H11, square_H11 = self.pos_proj.weight[:, :, None, None].unbind(1)

        def softmax(length: int, slope_H11: Tensor) -> Tensor:
            place = torch.arange(length, device=slope_H11.device, dtype=slope_H11.dtype)
            offset = place[None, :] - place[:, None]
            logits = slope_H11 * offset + square_H11 * offset**2
            return (logits + self.pos_proj.bias[:, None, None] / 2).softmax(-1)  # constant: no effect, as in the paper

        return softmax(grid[0], slope_y_H11), softmax(grid[1], slope_x_H11)

    def mix_by_position(self, v_BHNE: Tensor, grid: tuple[int, int]) -> Tensor:
        """softmax(w . r) V as two products: first along the columns, then along the rows."""
        rows_HRR, columns_HCC = self.position_softmaxes(grid)
        batch, heads, _, width = v_BHNE.shape
        v_BHRCE = v_BHNE.reshape(batch, heads, *grid, width)
        mixed = columns_HCC[:, None].to(v_BHNE.dtype) @ v_BHRCE
        mixed = rows_HRR.to(v_BHNE.dtype) @ mixed.reshape(batch, heads, grid[0], -1)
        return mixed.reshape(v_BHNE.shape)

    def forward(self, x_BND: Tensor, grid: tuple[int, int]) -> Tensor:
        batch, patches, dim = x_BND.shape
        q_BHNE, k_BHNE = self.qk(x_BND).reshape(batch, patches, 2, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        v_BHNE = self.v(x_BND).reshape(batch, patches, self.num_heads, -1).transpose(1, 2)
        content_BHNE = F.scaled_dot_product_attention(q_BHNE, k_BHNE, v_BHNE)
        position_BHNE = self.mix_by_position(v_BHNE, grid)
        gate_H11 = self.gating_param.sigmoid().to(content_BHNE.dtype)[:, None, None]
        mixed_BHNE = torch.lerp(content_BHNE, position_BHNE, gate_H11)
        return self.proj(mixed_BHNE.transpose(1, 2).reshape(batch, patches, dim))


class Block(nn.Module):
    """Pre-LN block: x + attention(LN(x)), then x + MLP(LN(x)), both with stochastic depth."""

    def __init__(self, dim: int, attention: nn.Module, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = attention
        self.drop_path = DropPath(drop_path)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, hidden_features=4 * dim)

    def forward(self, x_BND: Tensor, *grid: tuple[int, int]) -> Tensor:
        x_BND = x_BND + self.drop_path(self.attn(self.norm1(x_BND), *grid))
        return x_BND + self.drop_path(self.mlp(self.norm2(x_BND)))


class ConViT(nn.Module):
    """arXiv:2103.10697, Fig. 4: ``num_gpsa_layers`` GPSA blocks on the patches, then the class token joins them
    for the remaining self-attention blocks; its last state is classified.

    Args:
        image_size, patch_size: pixels; the patch must divide the image.
        locality_strength: alpha of Eq. 5.

    forward: images (B, 3, image_size, image_size) -> logits (B, num_classes).

    Differs: nothing from the paper. Like the authors' code, and unlike the paper's text, a patch has 16x16 pixels
    and there are 14x14 of them.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: int,
        dim: int,
        num_heads: int,
        patch_size: int = 16,
        depth: int = 12,
        num_gpsa_layers: int = 10,
        locality_strength: float = 1.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        check_divides("patch_size", patch_size, "image_size", image_size)
        check_divides("num_heads", num_heads, "dim", dim)
        if not 0 <= num_gpsa_layers <= depth:
            raise SpecError(f"num_gpsa_layers is {num_gpsa_layers}, expected 0 to depth = {depth}")
        self.num_gpsa_layers = num_gpsa_layers
        self.patch_embed = PatchEmbed(image_size, patch_size, 3, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.num_patches, dim))
        rates = torch.linspace(0, drop_path, depth, device="cpu").tolist()
        self.blocks = nn.ModuleList(
            Block(
                dim,
                GatedPositionalSelfAttention(dim, num_heads, locality_strength)
                if layer < num_gpsa_layers
                else SelfAttention(dim, num_heads, qkv_bias=False),
                rate,
            )
            for layer, rate in enumerate(rates)
        )
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, num_classes)
        self.init_weights()

    def init_weights(self) -> None:
        """Truncated normal 0.02 for linear weights and embeddings, then Eq. 5 for the GPSA layers."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        trunc_normal_(self.pos_embed, std=0.02)
        trunc_normal_(self.cls_token, std=0.02)
        for module in self.modules():
            if isinstance(module, GatedPositionalSelfAttention):
                module.init_as_convolution()

    def no_weight_decay(self) -> set[str]:
        """Parameters exempt from weight decay beside biases and other 1-D ones."""
        return {"pos_embed", "cls_token"}

    def forward(self, images: Tensor) -> Tensor:
        x_BND = self.patch_embed(images) + self.pos_embed
        for block in self.blocks[: self.num_gpsa_layers]:
            x_BND = block(x_BND, self.patch_embed.grid_size)
        x_BND = torch.cat([self.cls_token.expand(len(x_BND), -1, -1), x_BND], dim=1)
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
