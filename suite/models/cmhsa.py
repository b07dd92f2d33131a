"""CMHSA: a convolution is trained, moved into attention, and trained on (Li et al., Can ViTs Perform Convolution?).

Legend: B batch, N patches (R rows * C columns, row-major), D = 3 P^2 width (row in patch, column in patch, channel),
H heads, each of width D, K kernel side, P patch side, M bias strength.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from suite.base.errors import SpecError, check_name
from suite.models import layers, theorems

Initialization = Literal["random", "convolution"]
Layer = TypeVar("Layer", bound=nn.Module)
ABSENT = -1e4  # the null key's bias where there is none; finite, so that averaging weights makes no NaN of it


class PatchConvolution(nn.Module):
    """Phase 1's mixing (Eq. 1): patches -> image, K x K convolution 3 -> 3 without bias, zero padding -> patches."""

    def __init__(self, grid: tuple[int, int], patch_size: int, kernel_size: int) -> None:
        super().__init__()
        theorems.check_kernel_size(kernel_size)
        self.grid = grid
        self.patch_size = patch_size
        self.conv = nn.Conv2d(3, 3, kernel_size, padding=kernel_size // 2, bias=False)

    def forward(self, x_BND: Tensor) -> Tensor:
        images = theorems.to_images(x_BND, self.grid, self.patch_size)
        return theorems.to_patches(self.conv(images), self.patch_size)


class RelativeBiasAttention(nn.Module):
    """Phase 2's mixing, Eqs. 2 to 4: heads as wide as the tokens, and a free bias b per head and offset.

        MHSA(X) = sum_h softmax(q_h k_h^T / sqrt(D) + B_h) V_h W_O,h,   B_h[q, k] = b_h[k - q]

    Differs: b is indexed by key - query. The paper leaves open what a head does whose target lies outside the image.
    ``borders="null_key"``: after ``init_as_convolution`` such a query has one more key, of value 0 and bias M, which
    makes it exact against zero padding; before, there is none. ``borders="literal"``: it attends uniformly.
    """

    index_NN: Tensor  # where a pair's offset lies in the flattened position bias
    null_bias_HN: Tensor

    def __init__(
        self, grid: tuple[int, int], patch_size: int, num_heads: int, bias_strength: float, borders: theorems.Borders
    ) -> None:
        super().__init__()
        check_name("borders", borders, get_args(theorems.Borders))
        self.grid, self.patch_size, self.num_heads = grid, patch_size, num_heads
        self.bias_strength, self.borders = bias_strength, borders
        dim = 3 * patch_size**2
        self.qk = nn.Linear(dim, 2 * num_heads * dim, bias=False)
        self.v = nn.Linear(dim, num_heads * dim, bias=False)
        self.proj = nn.Linear(num_heads * dim, dim, bias=False)
        self.position_bias = nn.Parameter(torch.zeros(num_heads, 2 * grid[0] - 1, 2 * grid[1] - 1))
        self.register_buffer("index_NN", theorems.table_index(grid), persistent=False)
        self.register_buffer("null_bias_HN", torch.full((num_heads, grid[0] * grid[1]), ABSENT))

    @torch.no_grad()
    def init_as_convolution(self, weight: Tensor) -> None:
        """Theorem 1 from a kernel (3, 3, K, K): W_V = I, W_O from the kernel, b = M at each head's offset and 0
        elsewhere.

        Differs: W_Q and W_K stay small and random where the paper sets them to zero: zeros have no gradient, ever.
        """
        needed = theorems.num_heads(weight.shape[-1], self.patch_size)
        if self.num_heads != needed:
            raise SpecError(f"num_heads is {self.num_heads}; kernel_size {weight.shape[-1]} takes {needed}")
        offsets_H2 = theorems.head_offsets(weight.shape[-1], self.patch_size)
        outside_HN = theorems.targets_outside(self.grid, offsets_H2)
        self.v.weight.copy_(torch.eye(self.v.in_features).repeat(self.num_heads, 1))
        self.proj.weight.copy_(theorems.output_projection(weight, self.patch_size).flatten(0, 1).T)
        self.position_bias.copy_(theorems.bias_table(self.grid, offsets_H2, self.bias_strength))
        self.null_bias_HN.copy_(torch.where(outside_HN, self.bias_strength, ABSENT))

    def extra_repr(self) -> str:
        return f"num_heads={self.num_heads}, bias_strength={self.bias_strength}, borders={self.borders!r}"

    def split(self, x_BND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query (B, H, N, D), key and value (B, H, N or N + 1, D) of each head."""
        tokens, dim = x_BND.shape[1:]
        if self.borders == "null_key":
            x_BND = F.pad(x_BND, (0, 0, 0, 1))  # without biases, a token of zeros has key and value zero
        q, k = self.qk(x_BND).unflatten(-1, (2, self.num_heads, dim)).permute(2, 0, 3, 1, 4)
        v = self.v(x_BND).unflatten(-1, (self.num_heads, dim)).transpose(1, 2)
        return q[:, :, :tokens], k, v

    def bias(self) -> Tensor:
        """B, the null key's in its last column: (H, N, N or N + 1)."""
        bias_HNN = self.position_bias.flatten(1)[:, self.index_NN]
        return bias_HNN if self.borders == "literal" else torch.cat([bias_HNN, self.null_bias_HN[..., None]], -1)

    def attention_map(self, x_BND: Tensor) -> Tensor:
        """The map that ``forward`` applies: (B, H, N, N); a row sums to less than one by the null key's share."""
        q_BHND, k_BHND, _ = self.split(x_BND)
        return (layers.content_logits(q_BHND, k_BHND) + self.bias()).softmax(-1)[..., : x_BND.shape[1]]

    def forward(self, x_BND: Tensor) -> Tensor:
        q, k, v = self.split(x_BND)
        mixed_BHND = F.scaled_dot_product_attention(q, k, v, attn_mask=layers.position_mask(self.bias(), q.dtype)[None])
        return self.proj(mixed_BHND.transpose(1, 2).flatten(2))


class PatchTransformer(nn.Module):
    """The body of both phases: flattened patches as they are, pre-LN blocks, LN, mean over patches, linear classifier.

    forward: images (B, 3, rows, columns) -> logits (B, num_classes).
    """

    def __init__(
        self,
        make_layer: Callable[[tuple[int, int]], nn.Module],
        num_classes: int,
        image_size: layers.ImageSize,
        patch_size: int,
        depth: int,
        drop_path: float,
        weight_std: float,
    ) -> None:
        super().__init__()
        dim = 3 * patch_size**2
        self.grid = layers.patch_grid(image_size, patch_size)
        self.patch_size = patch_size
        rates = torch.linspace(0, drop_path, depth, device="cpu").tolist()
        self.blocks = nn.ModuleList(layers.Block(dim, make_layer(self.grid), rate) for rate in rates)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, num_classes)
        layers.check_positive("weight_std", weight_std)
        layers.init_linears(self, weight_std)  # as DeiT; convolutions keep PyTorch's default

    def forward(self, images: Tensor) -> Tensor:
        expected = (self.grid[0] * self.patch_size, self.grid[1] * self.patch_size)
        if images.shape[-2:] != expected:  # a transposed grid has as many patches: nothing else would notice
            raise SpecError(f"images are {tuple(images.shape[-2:])}, expected {expected}, the model's image_size")
        x_BND = theorems.to_patches(images, self.patch_size)
        for block in self.blocks:
            x_BND = block(x_BND)
        return self.head(self.norm(x_BND).mean(1))


class ConvolutionPhase(PatchTransformer):
    """Phase 1, Section 4.1: each block convolves the re-assembled image, then an FFN sees the flattened patches.

        x = x + conv(LN(x));  x = x + FFN(LN(x));  logits = W mean_N(LN(x)) + b

    Args:
        image_size, patch_size: pixels; the patch must divide the image.
        kernel_size: K, odd.
        weight_std: deviation of linear weights at the start; for what a narrow model needs, see ``DeiT``.

    Differs: where the paper is silent, this is DeiT's: pre-LN with a last LN, eps 1e-6, GELU, FFN 4 D = 3072 wide,
    truncated normal 0.02. "Patch projection fixed as identity" with D = 768 = 3 * 16^2 admits one reading: a 3 -> 3
    convolution on pixels. Nothing encodes absolute position, the convolution has no bias.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: layers.ImageSize,
        kernel_size: int = 3,
        patch_size: int = 16,
        depth: int = 6,
        weight_std: float = 0.02,
        drop_path: float = 0.0,
    ) -> None:
        make_layer = partial(PatchConvolution, patch_size=patch_size, kernel_size=kernel_size)
        super().__init__(make_layer, num_classes, image_size, patch_size, depth, drop_path, weight_std)


class AttentionPhase(PatchTransformer):
    """Phase 2, Section 4.1: the same blocks with attention, alone (Table 1's "2nd phase") or after ``transfer``.

    M, the bias strength, trades exactness for plasticity. After ``transfer`` an attention weight is wrong by at most
    N exp(-M + 2 L), with L the largest |q k^T / sqrt(D)|, and the gradients of W_Q, W_K and b carry the factor
    exp(-M) too. The paper's M = 40 is exact in float64, but such gradients are far below AdamW's epsilon of 1e-8:
    attention is frozen, and phase 2 trains W_V, W_O and the FFN. M = 20 is exact in float32 and still frozen; M = 10
    lets attention learn and costs about 1 % of a weight. With ``borders="literal"`` the queries at the border attend
    uniformly and so pass a gradient at any M. The authors' M is not stated; ``print(model)`` says which one is used.

    Args:
        image_size, patch_size: pixels; the patch must divide the image.
        num_heads: number of heads; a convolution takes ``theorems.num_heads(K, patch_size)``.
        bias_strength: M.
        borders: treatment of a target outside the image, see ``RelativeBiasAttention``.
        initialization: "random", or "convolution": at once Theorem 1's form of a fresh convolution.
        kernel_size: K of that fresh convolution; unused by "random".
        weight_std: deviation of the other linear weights at the start; see ``ConvolutionPhase``.
        query_key_std: deviation of W_Q and W_K at their start; 0 is the paper's, whose gradient is zero for ever.

    Differs: as ``ConvolutionPhase``, and see ``RelativeBiasAttention``. No linear map of attention has a bias. Weight
    decay reaches the position biases, as DeiT's rule spares biases of one dimension only.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: layers.ImageSize,
        patch_size: int = 16,
        depth: int = 6,
        num_heads: int = 9,
        bias_strength: float = 40.0,
        borders: theorems.Borders = "null_key",
        initialization: Initialization = "random",
        kernel_size: int = 3,
        weight_std: float = 0.02,
        query_key_std: float = 0.02,
        drop_path: float = 0.0,
    ) -> None:
        check_name("initialization", initialization, get_args(Initialization))
        make_layer = partial(
            RelativeBiasAttention,
            patch_size=patch_size,
            num_heads=num_heads,
            bias_strength=bias_strength,
            borders=borders,
        )
        super().__init__(make_layer, num_classes, image_size, patch_size, depth, drop_path, weight_std)
        for layer in _layers(self, RelativeBiasAttention):
            nn.init.normal_(layer.qk.weight, std=query_key_std)
            if initialization == "convolution":
                layer.init_as_convolution(PatchConvolution(self.grid, patch_size, kernel_size).conv.weight)


def transfer(phase_1: ConvolutionPhase, phase_2: AttentionPhase) -> None:
    """Give phase 2 the function of phase 1 (Section 4.1): Theorem 1 for each convolution, a copy of all the rest.

    The two may differ in image size; SpecError where they differ in more, or the kernel takes another number of heads.
    """
    shared, own = _outside_attention(phase_1), _outside_attention(phase_2)
    first, second = ({name: value.shape for name, value in state.items()} for state in (shared, own))
    differing = {name for name, _ in first.items() ^ second.items()}
    if differing:
        raise SpecError(f"the phases differ in {sorted(differing)}; give both the same num_classes, patch_size, depth")
    pairs = zip(_layers(phase_1, PatchConvolution), _layers(phase_2, RelativeBiasAttention), strict=True)
    for convolution, attention in pairs:
        attention.init_as_convolution(convolution.conv.weight)
    phase_2.load_state_dict(shared, strict=False)


def _layers(model: nn.Module, kind: type[Layer]) -> list[Layer]:
    return [module for module in model.modules() if isinstance(module, kind)]


def _outside_attention(model: nn.Module) -> dict[str, Tensor]:
    return {name: value for name, value in model.state_dict().items() if ".attn." not in name}


# Table 1. The micro sizes are ours: minutes on a laptop, at 32 pixels.
MODELS: dict[str, partial[Any]] = {
    "cmhsa_conv": partial(ConvolutionPhase),
    "cmhsa": partial(AttentionPhase),
    "cmhsa_conv_micro": partial(ConvolutionPhase, patch_size=8, depth=3),
    "cmhsa_micro": partial(AttentionPhase, patch_size=8, depth=3),
}
WITHOUT_EFFECT_ON_FLOPS = ("initialization", "bias_strength", "weight_std", "query_key_std", "drop_path")
PAPER_INPUT = (224, 100)  # image side in pixels, classes
