"""Networks of attention alone, and the pruning of their heads (arXiv:1911.03584).

Shape legend: B batch, N tokens (rows * columns, row-major), R rows, C columns, D width, H heads, P patch side.
"""

import inspect
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from suite.base.errors import SpecError, check_name
from suite.models.cordonnier.attention import GeneralizedQuadraticAttention, QuadraticAttention
from suite.models.cordonnier.learned import ContentAttention, LearnedAttention
from suite.models.layers import ImageSize, patch_grid

ENCODINGS: dict[str, type[nn.Module]] = {
    "quadratic": QuadraticAttention,
    "quadratic_generalized": GeneralizedQuadraticAttention,
    "learned": LearnedAttention,
    "learned_content": ContentAttention,
}


class SpaceToDepth(nn.Module):
    """Invertible downsampling (Section 4.1) and a Linear: a patch's pixels, (row, column, RGB), become its token.

    forward: (B, 3, R * P, C * P) -> (B, N, D).
    """

    def __init__(self, patch_size: int, dim: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Linear(3 * patch_size**2, dim)

    def forward(self, images: Tensor) -> Tensor:
        pixels_BKN = F.pixel_unshuffle(images, self.patch_size).flatten(2)  # K = (RGB, row, column)
        pixels_BCKN = pixels_BKN.unflatten(1, (3, -1))
        return self.proj(pixels_BCKN.permute(0, 3, 2, 1).flatten(2))


class PostNormBlock(nn.Module):
    """BERT's block: x = LN(x + dropout(W attention(x))), then x = LN(x + dropout(W_2 gelu(W_1 x)))."""

    def __init__(self, dim: int, hidden_dim: int, attention: nn.Module, dropout: float) -> None:
        super().__init__()
        self.attention = attention
        self.proj = nn.Linear(dim, dim)
        self.norm1 = nn.LayerNorm(dim, eps=1e-12)
        self.hidden = nn.Linear(dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, dim)
        self.norm2 = nn.LayerNorm(dim, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BND: Tensor) -> Tensor:
        x_BND = self.norm1(x_BND + self.dropout(self.proj(self.attention(x_BND))))
        return self.norm2(x_BND + self.dropout(self.output(F.gelu(self.hidden(x_BND)))))


class SelfAttentionNetwork(nn.Module):
    """Section 4.1: ``depth`` attention blocks on 2 x 2 patches, the mean of the tokens, a linear classifier.

    Args:
        image_size: pixels, a square's side or (rows, columns); ``patch_size`` must divide it.
        encoding: a name of ``ENCODINGS``.
        num_heads: per layer, of width ``dim`` each.
        heads_per_layer: instead of ``num_heads``, after pruning: numbers such as "7,5,8,7,3,9".
        dropout, attention_dropout: probabilities, of the hidden states and of the attention map.
        center_std, spread_std, position_dim: options of the encoding; None takes the encoding's default.

    forward: images (B, 3, rows, columns) -> logits (B, num_classes).

    Raises:
        SpecError: sizes that do not fit, an unknown encoding, or an option that the encoding does not have.

    Differs: the paper's text leaves the block open; it is the authors' code's, as are the Linear between the heads'
    output and the residual, and PyTorch's default initialization. No position is added to the input.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: ImageSize,
        encoding: str,
        num_heads: int = 9,
        heads_per_layer: str = "",
        depth: int = 6,
        dim: int = 400,
        hidden_dim: int = 512,
        patch_size: int = 2,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        center_std: float | None = None,
        spread_std: float | None = None,
        position_dim: int | None = None,
    ) -> None:
        super().__init__()
        for name, rate in {"dropout": dropout, "attention_dropout": attention_dropout}.items():
            if not 0 <= rate < 1:
                raise SpecError(f"{name} is {rate}, expected a probability from 0 to below 1")
        self.encoding, self.num_heads, self.heads_per_layer = encoding, num_heads, heads_per_layer
        self.grid = patch_grid(image_size, patch_size)
        encoding_options = {"center_std": center_std, "spread_std": spread_std, "position_dim": position_dim}
        build_attention = attention_builder(encoding, encoding_options)
        self.patch_embed = SpaceToDepth(patch_size, dim)
        self.blocks = nn.ModuleList(
            PostNormBlock(dim, hidden_dim, build_attention(dim, heads, self.grid, attention_dropout), dropout)
            for heads in read_heads(heads_per_layer, num_heads, depth)
        )
        self.head = nn.Linear(dim, num_classes)

    def no_weight_decay(self) -> set[str]:
        """The heads' spreads and centers."""
        return {name for name, _ in self.named_parameters() if name.endswith((".spreads", ".centers_H2"))}

    def forward(self, images: Tensor) -> Tensor:
        x_BND = self.patch_embed(images)
        for block in self.blocks:
            x_BND = block(x_BND)
        return self.head(x_BND.mean(1))


def attention_builder(encoding: str, options: dict[str, Any]) -> partial[nn.Module]:
    """The encoding's layer with those options that are not None."""
    check_name("encoding", encoding, ENCODINGS)
    given = {name: value for name, value in options.items() if value is not None}
    layer = ENCODINGS[encoding]
    valid = set(options) & set(inspect.signature(layer).parameters)
    for name in given:
        if name not in valid:
            raise SpecError(
                f"{name} is no option of the encoding {encoding!r}; it has: {', '.join(sorted(valid)) or 'none'}"
            )
    return partial(layer, **given)


def read_heads(heads_per_layer: str, num_heads: int, depth: int) -> list[int]:
    """Heads of each layer, from "7,5,8,7,3,9" or, where that is empty, the same number for all."""
    if not heads_per_layer:
        if num_heads < 1:
            raise SpecError(f"num_heads is {num_heads}, expected at least 1; a pruned model gives heads_per_layer")
        return [num_heads] * depth
    numbers = heads_per_layer.split(",")
    if len(numbers) != depth or not all(number.strip().isdecimal() for number in numbers):
        raise SpecError(f"heads_per_layer is {heads_per_layer!r}, expected depth = {depth} numbers like '7,5,8,7,3,9'")
    return [int(number) for number in numbers]


# Sections 4.2 and 4.3 and Appendix A.1; the 16 heads of Appendix A.2 are sa_quadratic with num_heads=16.
MODELS = {
    "sa_quadratic": partial(SelfAttentionNetwork, encoding="quadratic"),
    "sa_quadratic_generalized": partial(SelfAttentionNetwork, encoding="quadratic_generalized"),
    "sa_learned": partial(SelfAttentionNetwork, encoding="learned"),
    "sa_learned_content": partial(SelfAttentionNetwork, encoding="learned_content"),
}
WITHOUT_EFFECT_ON_FLOPS = ("center_std", "spread_std", "dropout", "attention_dropout")
PAPER_INPUT = (32, 10)  # image side in pixels, classes
