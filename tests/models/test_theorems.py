"""The papers' theorems: attention built to be a convolution, the lower bounds of heads, and Proposition 1.

    Cordonnier et al., arXiv:1911.03584     Lemmas 1, 2, Theorem 1   ``pixels_as_attention``
    Li et al., Can ViTs Perform Convolution Lemma 2, Theorem 1, A.2  ``patches_as_attention``
                                            Theorems 5 and 6         ``pixel_kernel_matrix``, ``patch_kernel_matrix``
    Structured Initialization for ViTs      Def. 1, Proposition 1    ``is_spanned``, ``channel_mixing``

The constructions stand against torch's convolution, the bounds and Proposition 1 against slow transcriptions. Legend as
in ``suite.models.theorems``, which holds the part of the second construction that ``suite.models.cmhsa`` trains with.

Differs: as there. With borders="literal" and a large alpha, Cordonnier's head attends to the nearest pixel: exact
replicate padding.
"""

import itertools
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from suite.models import theorems
from suite.models.theorems import Borders

EXACT = {"rtol": 1e-10, "atol": 1e-10}


@dataclass(frozen=True)
class AttentionLayer:
    """An MHSA layer whose attention ignores its input (W_Q = W_K = 0): Eq. 11 of arXiv:1911.03584.

        MHSA(X) = b + sum_h A_h X W_h,   W_h = W_V,h W_O,h

    Attributes:
        attention_HNN: [query, key]; rows sum to one, or to less where the null key takes the rest.
        weight_HDO: the value and output matrices of each head, merged.
        bias_O: the output bias.
    """

    attention_HNN: Tensor
    weight_HDO: Tensor
    bias_O: Tensor

    def __call__(self, x_BND: Tensor) -> Tensor:
        return torch.einsum("hqk,bkd,hdo->bqo", self.attention_HNN, x_BND, self.weight_HDO) + self.bias_O


def softmax_over_keys(scores_HNN: Tensor, null_score_HN: Tensor, borders: Borders) -> Tensor:
    """softmax over the keys, with the null key (and without its column) or literally: (H, N, N)."""
    if borders == "literal":
        return scores_HNN.softmax(-1)
    return torch.cat([scores_HNN, null_score_HN[..., None]], -1).softmax(-1)[..., :-1]


def quadratic_scores(grid: tuple[int, int], centers_H2: Tensor, alpha: float) -> Tensor:
    """Cordonnier's Eq. 9: v . r = -alpha (|delta|^2 - 2 delta . Delta), v = -alpha (1, -2 Delta_1, -2 Delta_2),
    r = (|delta|^2, delta_1, delta_2), which is -alpha |delta - Delta|^2 up to a constant of the head: (H, N, N).
    """
    place_N2 = theorems.positions(grid).to(centers_H2)
    delta_NN2 = place_N2[None, :] - place_N2[:, None]
    r_NN3 = torch.cat([delta_NN2.square().sum(-1, keepdim=True), delta_NN2], -1)
    v_H3 = -alpha * torch.cat([torch.ones_like(centers_H2[:, :1]), -2 * centers_H2], -1)
    return torch.einsum("hc,qkc->hqk", v_H3, r_NN3)


def pixels_as_attention(
    weight: Tensor,
    bias: Tensor,
    grid: tuple[int, int],
    *,
    dilation: int = 1,
    alpha: float = 40.0,
    borders: Borders = "null_key",
) -> AttentionLayer:
    """Build Cordonnier's Theorem 1: K^2 heads on pixels; head (a, b) attends to its tap and W_h is the kernel at it.

    The error is at most the sum of exp(-alpha |delta - Delta|^2) over the other pixels, about 4 exp(-alpha).

    Args:
        weight: the convolution's (D_out, D_in, K, K).
        bias: (D_out,).
        grid: rows and columns of pixels.
        dilation: pixels between the kernel's taps.
        alpha: the locality strength, by which a head looks sharply.
        borders: the treatment of a head whose tap lies outside the image.
    """
    offsets_H2 = theorems.head_offsets(weight.shape[-1], 1, dilation)
    scores_HNN = quadratic_scores(grid, offsets_H2.to(weight), alpha)
    target_score_H1 = alpha * offsets_H2.square().sum(-1, keepdim=True)
    null_score_HN = torch.where(theorems.targets_outside(grid, offsets_H2), target_score_H1, -torch.inf).to(weight)
    attention_HNN = softmax_over_keys(scores_HNN, null_score_HN, borders)
    return AttentionLayer(attention_HNN, weight.permute(2, 3, 1, 0).flatten(0, 1), bias)


def patches_as_attention(
    weight: Tensor,
    bias: Tensor,
    grid: tuple[int, int],
    *,
    patch_size: int,
    stride: int = 1,
    dilation: int = 1,
    strength: float = 40.0,
    borders: Borders = "null_key",
) -> AttentionLayer:
    """Build Li's Theorem 1: a head per offset of ``patch_offsets`` squared; W_V = I, so that W_h = W_O,h.

    An entry of the attention is wrong by at most N exp(-M); the paper's M = ``strength`` = 40 is float64's precision.

    Args:
        weight: the convolution's (D_out, D_in, K, K).
        bias: (D_out,).
        grid: rows and columns of patches.
        patch_size: side of a patch in pixels.
        stride, dilation: the convolution's.
        strength: M, how sharply a head looks.
        borders: the treatment of a head whose patch lies outside the image.
    """
    offsets_H2 = theorems.head_offsets(weight.shape[-1], patch_size, dilation)
    weight_HDO = theorems.output_projection(weight, patch_size, stride, dilation)
    scores_HNN = theorems.bias_table(grid, offsets_H2, strength).flatten(1)[:, theorems.table_index(grid)]
    null_score_HN = torch.where(theorems.targets_outside(grid, offsets_H2), strength, -torch.inf)
    attention_HNN = softmax_over_keys(scores_HNN.to(weight), null_score_HN.to(weight), borders)
    return AttentionLayer(attention_HNN, weight_HDO, bias.repeat((patch_size // stride) ** 2))


def pixel_kernel_matrix(weight: Tensor) -> Tensor:
    """Theorem 5, Eq. 8: the kernel as (K^2, D_in * D_out).

    Each head contributes a matrix a_h w_h^T of rank one, so a convolution takes as many heads as this has rank.
    """
    return weight.permute(2, 3, 1, 0).flatten(2).flatten(0, 1)


def patch_kernel_matrix(weight: Tensor, patch_size: int) -> Tensor:
    """Theorem 6, Eq. 20: one column per offset, one row per (target pixel p, source pixel q).

    W A = W^C with as many columns of W as heads, so again a convolution takes as many heads as this has rank. If
    P >= K, a row has at most one entry, hence the columns are orthogonal; for K >= 3 and no zero tap all nine differ
    from zero. ``(P^2 D_out * P^2 D_in, H)``.
    """
    return theorems.output_projection(weight, patch_size).permute(2, 1, 0).flatten(0, 1)


def distance_with_heads(matrix: Tensor, heads: int) -> float:
    """Frobenius distance (Eckart-Young) from a kernel's matrix to what ``heads`` heads can reach at best."""
    return float(torch.linalg.svdvals(matrix)[heads:].square().sum().sqrt())


def mixing_system(a_kD: Tensor, filters_Dff: Tensor) -> Tensor:
    """Eq. 10's matrix, channel i's column being a_i (x) h_i: (k * f * f, D). With W: the filters on X's basis."""
    return (a_kD[:, None, :] * filters_Dff.flatten(1).T).flatten(0, 1)


def is_spanned(filters_Dff: Tensor, dimension: int, copies: int) -> bool:
    """Definition 1: can the filters be split into ``copies`` (k) subsets that each span the same M = ``dimension``?

    Such a split exists exactly if the columns a_i (x) h_i have rank k * M for generic a_i (the union of k linear
    matroids), so one rank with random a decides it, without a search; it is also the system of Proposition 1.
    """
    unit_Dff = F.normalize(filters_Dff.double().cpu().flatten(1)).view_as(filters_Dff)
    a_kD = torch.randn(copies, len(filters_Dff), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rank = int(torch.linalg.matrix_rank(unit_Dff.flatten(1)))
    return rank == dimension and int(torch.linalg.matrix_rank(mixing_system(a_kD, unit_Dff))) == copies * dimension


def channel_mixing(x_ND: Tensor, filters_Dff: Tensor, other_Dff: Tensor, other_DD: Tensor) -> tuple[Tensor, float]:
    """Proposition 1: the W with [H_1 x_1 ... H_D x_D] W = [H'_1 x_1 ... H'_D x_D] W', for any padding.

    With X = Z A of rank k this is linear: (a_i (x) h_i) W = (a_i (x) h'_i) W'.

    Differs: the paper promises W for every X of rank k. That holds for almost every X, not for all: where channels
    repeat a direction of A, k copies of a basis may meet the same a. Hence the second value.

    Args:
        x_ND: the input; filters_Dff: H, fixed; other_Dff: H'; other_DD: W'.

    Returns:
        The W (D, D) nearest to a solution, and its relative error: zero up to rounding if W is one.
    """
    _, sigma, v_DD = torch.linalg.svd(x_ND, full_matrices=False)
    rank = int(torch.linalg.matrix_rank(x_ND))
    a_kD = sigma[:rank, None] * v_DD[:rank]
    wanted = mixing_system(a_kD, other_Dff) @ other_DD
    system = mixing_system(a_kD, filters_Dff)
    weight_DD = torch.linalg.pinv(system) @ wanted
    return weight_DD, float((system @ weight_DD - wanted).norm() / wanted.norm())


def random_convolution(kernel_size, d_in, d_out):
    torch.manual_seed(kernel_size + 10 * d_in + 100 * d_out)
    weight = torch.randn(d_out, d_in, kernel_size, kernel_size, dtype=torch.float64)
    return weight, torch.randn(d_out, dtype=torch.float64)


def attend_to_patches(images, weight, bias, patch_size, stride=1, **options):
    grid = (images.shape[2] // patch_size, images.shape[3] // patch_size)
    layer = patches_as_attention(weight, bias, grid, patch_size=patch_size, stride=stride, **options)
    return theorems.to_images(layer(theorems.to_patches(images, patch_size)), grid, patch_size // stride)


@pytest.mark.parametrize(
    ("kernel_size", "patch_size", "heads"),
    [
        *[(1, 1, 1), (3, 1, 9), (5, 1, 25), (7, 1, 49)],
        *[(3, 2, 9), (5, 2, 9), (7, 2, 25)],
        *[(1, 16, 1), (3, 16, 9), (33, 16, 9), (35, 16, 25)],
    ],
)
def test_theorem_1_counts_the_heads(kernel_size, patch_size, heads):
    assert theorems.num_heads(kernel_size, patch_size) == heads


@pytest.mark.parametrize(
    ("kernel_size", "patch_size", "dilation"), list(itertools.product((1, 3, 5, 7), (1, 2, 3, 4), (1, 2, 3, 5, 8)))
)
def test_heads_are_the_patches_that_hold_a_pixel_of_the_receptive_field(kernel_size, patch_size, dilation):
    half = kernel_size // 2
    taps = range(-half * dilation, half * dilation + 1, dilation)
    offsets = sorted({(pixel + tap) // patch_size for pixel in range(patch_size) for tap in taps})
    assert theorems.patch_offsets(kernel_size, patch_size, dilation) == offsets
    if dilation <= patch_size:
        ceiling = -(-dilation * (kernel_size - 1) // (2 * patch_size))
        assert theorems.num_heads(kernel_size, patch_size, dilation) == (2 * ceiling + 1) ** 2


@pytest.mark.parametrize(("kernel_size", "patch_size"), list(itertools.product((1, 3, 5, 7), (1, 2, 4))))
@pytest.mark.parametrize(
    ("d_in", "d_out", "grid", "dilation"), [(1, 1, (3, 3), 1), (3, 2, (2, 5), 1), (2, 3, (4, 3), 2)]
)
def test_attention_on_patches_is_the_convolution(kernel_size, patch_size, d_in, d_out, grid, dilation):
    weight, bias = random_convolution(kernel_size, d_in, d_out)
    images = torch.randn(2, d_in, grid[0] * patch_size, grid[1] * patch_size, dtype=torch.float64)
    for stride in (s for s in (1, 2, 4) if patch_size % s == 0):
        attended = attend_to_patches(images, weight, bias, patch_size, stride, dilation=dilation)
        padding = dilation * (kernel_size // 2)
        expected = F.conv2d(images, weight, bias, stride=stride, padding=padding, dilation=dilation)
        torch.testing.assert_close(attended, expected, **EXACT)


@pytest.mark.parametrize(("kernel_size", "patch_size", "dilation"), [(5, 16, 1), (3, 3, 7), (3, 1, 5), (35, 16, 1)])
def test_patches_of_the_paper_and_taps_beyond_the_image_are_no_exception(kernel_size, patch_size, dilation):
    weight, bias = random_convolution(kernel_size, 3, 3)
    images = torch.randn(1, 3, 2 * patch_size, 3 * patch_size, dtype=torch.float64)
    expected = F.conv2d(images, weight, bias, padding=dilation * (kernel_size // 2), dilation=dilation)
    torch.testing.assert_close(
        attend_to_patches(images, weight, bias, patch_size, dilation=dilation), expected, **EXACT
    )


def test_w_o_is_the_remark_of_appendix_a2():
    kernel_size, patch, d_in, d_out = 5, 3, 2, 2
    weight, _ = random_convolution(kernel_size, d_in, d_out)
    deltas = list(itertools.product((-1, 0, 1), repeat=2))
    pixels = list(itertools.product(range(patch), repeat=2))
    expected = torch.zeros(9 * patch**2 * d_in, patch**2 * d_out, dtype=torch.float64)
    for (r, delta), (s, source), (t, target) in itertools.product(*map(enumerate, (deltas, pixels, pixels))):
        x, y = (delta[a] * patch + source[a] - target[a] + kernel_size // 2 for a in (0, 1))
        if 0 <= x < kernel_size and 0 <= y < kernel_size:
            for i, j in itertools.product(range(d_in), range(d_out)):
                expected[r * patch**2 * d_in + s * d_in + i, t * d_out + j] = weight[j, i, x, y]
    assert torch.equal(theorems.output_projection(weight, patch).flatten(0, 1), expected)


@pytest.mark.parametrize("patch_size", [1, 4])
def test_with_the_papers_literal_borders_only_the_interior_is_the_convolution(patch_size):
    weight, bias = random_convolution(3, 2, 2)
    images = torch.randn(1, 2, 4 * patch_size, 5 * patch_size, dtype=torch.float64)
    attended = attend_to_patches(images, weight, bias, patch_size, borders="literal")
    difference = (attended - F.conv2d(images, weight, bias, padding=1)).abs()
    inside = (..., slice(patch_size, -patch_size), slice(patch_size, -patch_size))
    assert difference[inside].max() < 1e-10
    difference[inside] = 1
    assert (F.max_pool2d(difference, patch_size) > 1e-3).all()  # every patch at the border is wrong


@pytest.mark.parametrize("strength", [5.0, 10.0, 20.0])
def test_the_error_of_lemma_2_is_n_exp_minus_m(strength):
    weight, bias = random_convolution(3, 1, 1)
    sharp, soft = (
        patches_as_attention(weight, bias, (4, 5), patch_size=2, strength=m).attention_HNN for m in (1000.0, strength)
    )
    error = (sharp - soft).abs().amax(-1)
    assert set(sharp.unique().tolist()) == {0.0, 1.0}
    assert error.max() <= 20 * torch.tensor(-strength).exp()
    assert error.min() >= 0.5 * torch.tensor(-strength).exp()


def test_the_quadratic_encoding_is_minus_alpha_times_the_squared_distance_to_its_center():
    grid, alpha = (3, 4), 0.7
    centers = torch.tensor([[-1.0, 2.0], [0.5, 0.0]], dtype=torch.float64)
    scores = quadratic_scores(grid, centers, alpha)
    for h, query, key in itertools.product(range(2), range(12), range(12)):
        delta = torch.tensor([key // 4 - query // 4, key % 4 - query % 4], dtype=torch.float64)
        distance = (delta - centers[h]).square().sum() - centers[h].square().sum()
        assert scores[h, query, key].item() == pytest.approx(-alpha * distance.item(), abs=1e-12)


@pytest.mark.parametrize(
    ("kernel_size", "dilation", "grid"), [(1, 1, (3, 4)), (3, 1, (5, 4)), (5, 1, (4, 7)), (3, 3, (6, 5))]
)
@pytest.mark.parametrize(("borders", "mode"), [("null_key", "constant"), ("literal", "replicate")])
def test_attention_on_pixels_is_the_convolution_and_large_alpha_pads_with_the_nearest(
    kernel_size, dilation, grid, borders, mode
):
    weight, bias = random_convolution(kernel_size, 3, 2)
    images = torch.randn(2, 3, *grid, dtype=torch.float64)
    layer = pixels_as_attention(weight, bias, grid, dilation=dilation, borders=borders)
    attended = theorems.to_images(layer(theorems.to_patches(images, 1)), grid, 1)
    padded = F.pad(images, [dilation * (kernel_size // 2)] * 4, mode=mode)
    torch.testing.assert_close(attended, F.conv2d(padded, weight, bias, dilation=dilation), **EXACT)
    assert len(layer.attention_HNN) == kernel_size**2


@pytest.mark.parametrize(("kernel_size", "d_in"), [(3, 4), (3, 20), (5, 7)])
def test_theorem_5_a_generic_kernel_on_pixels_takes_as_many_heads_as_taps_or_channels(kernel_size, d_in):
    weight, _ = random_convolution(kernel_size, d_in, 1)
    matrix = pixel_kernel_matrix(weight)
    for row, (a, b) in enumerate(itertools.product(range(kernel_size), repeat=2)):
        assert torch.equal(matrix[row], weight[0, :, a, b])
    rank = min(kernel_size**2, d_in)
    assert torch.linalg.matrix_rank(matrix) == rank
    assert_no_fewer_rank_one_terms_reach(matrix, rank)


@pytest.mark.parametrize(("kernel_size", "patch_size"), [(3, 3), (3, 4), (5, 5)])
def test_theorem_6_a_kernel_on_patches_takes_nine_heads(kernel_size, patch_size):
    weight, _ = random_convolution(kernel_size, 1, 1)
    matrix = patch_kernel_matrix(weight, patch_size)
    pixels = list(itertools.product(range(patch_size), repeat=2))
    rows = []
    for p, q in itertools.product(pixels, pixels):  # Eq. 20: p in the query's patch, q in the patch at delta
        steps = [
            [d[a] * patch_size + q[a] - p[a] + kernel_size // 2 for a in (0, 1)]
            for d in itertools.product((-1, 0, 1), repeat=2)
        ]
        rows.append(
            [weight[0, 0, x, y].item() if min(x, y) >= 0 and max(x, y) < kernel_size else 0.0 for x, y in steps]
        )
    assert torch.equal(matrix, torch.tensor(rows, dtype=torch.float64))
    assert torch.linalg.matrix_rank(matrix) == 9 == theorems.num_heads(kernel_size, patch_size)
    assert_no_fewer_rank_one_terms_reach(matrix, 9)


def assert_no_fewer_rank_one_terms_reach(matrix, rank):
    u, s, v = torch.linalg.svd(matrix, full_matrices=False)
    for heads in (1, rank - 1):
        bound = distance_with_heads(matrix, heads)
        assert bound > 1e-2
        nearest = (u[:, :heads] * s[:heads]) @ v[:heads]
        assert (matrix - nearest).norm().item() == pytest.approx(bound)
        for _ in range(10):  # whatever the heads attend to, their best values cannot beat the bound
            basis, _ = torch.linalg.qr(torch.rand(len(matrix), heads, dtype=torch.float64))
            assert (matrix - basis @ (basis.T @ matrix)).norm() >= bound - 1e-9
    assert distance_with_heads(matrix, rank) < 1e-9


def test_a_kernel_of_low_rank_takes_fewer_heads():
    weight, _ = random_convolution(3, 6, 1)
    separable = weight[:, :1] * torch.randn(1, 6, 1, 1, dtype=torch.float64)
    assert torch.linalg.matrix_rank(pixel_kernel_matrix(separable)) == 1
    assert torch.linalg.matrix_rank(patch_kernel_matrix(random_convolution(1, 1, 1)[0], 4)) == 1


def convmixer_block(x, filters, weight, grid):
    """Eq. 3: [H_1 x_1 ... H_D x_D] W, with each circulant H_i written out."""
    tokens, side = grid[0] * grid[1], filters.shape[-1]
    mixed = torch.zeros_like(x)
    for i, h in enumerate(filters):
        matrix = torch.zeros(tokens, tokens, dtype=x.dtype)
        for row, column, a, b in itertools.product(*map(range, (*grid, side, side))):
            matrix[row * grid[1] + column, (row + a) % grid[0] * grid[1] + (column + b) % grid[1]] += h[a, b]
        mixed[:, i] = matrix @ x[:, i]
    return mixed @ weight


def impulses(width, side):
    return torch.eye(side**2, dtype=torch.float64).repeat(-(-width // side**2), 1)[:width].unflatten(1, (side, side))


def example_of_rank(rank, width, grid=(4, 5), side=3):
    torch.manual_seed(width)
    x = torch.randn(grid[0] * grid[1], rank, dtype=torch.float64) @ torch.randn(rank, width, dtype=torch.float64)
    return x, torch.randn(width, side, side, dtype=torch.float64), torch.randn(width, width, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["random", "impulse"])
def test_proposition_1_channel_mixing_alone_reaches_any_other_filters(kind):
    x, other, other_weight = example_of_rank(2, 20)
    filters = torch.randn_like(other) if kind == "random" else impulses(20, 3)
    assert is_spanned(filters, 9, 2)
    weight, error = channel_mixing(x, filters, other, other_weight)
    assert error < 1e-10
    expected = convmixer_block(x, other, other_weight, (4, 5))
    torch.testing.assert_close(convmixer_block(x, filters, weight, (4, 5)), expected, **EXACT)


@pytest.mark.parametrize("kind", ["box", "too few", "too few impulses of one kind"])
def test_filters_that_are_not_spanned_do_not_reach_them(kind):
    x, other, other_weight = example_of_rank(2, 17 if kind == "too few" else 20)
    filters = torch.ones_like(other) if kind == "box" else torch.randn_like(other)
    if kind == "too few impulses of one kind":
        filters = impulses(20, 3)
        filters[9] = filters[10]
        filters[18] = filters[10]  # one impulse is left at the first place, for a rank of two
    assert not is_spanned(filters, 9, 2)
    weight, error = channel_mixing(x, filters, other, other_weight)
    assert error > 1e-3
    difference = convmixer_block(x, filters, weight, (4, 5)) - convmixer_block(x, other, other_weight, (4, 5))
    assert difference.norm() > 1e-3


def test_box_filters_reach_other_averages_only():
    x, _, other_weight = example_of_rank(2, 20)
    box = torch.ones(20, 3, 3, dtype=torch.float64)
    assert is_spanned(box, 1, 20)
    assert channel_mixing(x, box, box * torch.randn(20, 1, 1, dtype=torch.float64), other_weight)[1] < 1e-10


def test_an_input_whose_channels_repeat_a_direction_escapes_proposition_1():
    h, v = torch.eye(2, dtype=torch.float64).unflatten(1, (1, 2))
    filters = torch.stack([h, v, h, v])
    assert is_spanned(filters, 2, 2)
    z = torch.randn(6, 2, dtype=torch.float64)
    x = z[:, [0, 0, 0, 1]]  # rank 2, but the second direction meets one filter only
    other = torch.randn(4, 1, 2, dtype=torch.float64)
    assert channel_mixing(x, filters, other, torch.eye(4, dtype=torch.float64))[1] > 1e-3


def test_being_spanned_is_decided_as_by_trying_every_split():
    generator = torch.Generator().manual_seed(1)
    answers = []
    for trial in range(30):
        copies, width, dimension = (2, 6, 3) if trial % 2 else (3, 6, 2)
        filters = torch.randint(0, 2, (width, 1, dimension), generator=generator).double()
        rank = int(torch.linalg.matrix_rank(filters.flatten(1)))
        ranks = {  # of every subset
            subset: int(torch.linalg.matrix_rank(filters[list(subset)].flatten(1)))
            for size in range(1, width + 1)
            for subset in itertools.combinations(range(width), size)
        }
        splits = itertools.product(range(copies), repeat=width)
        possible = any(
            all(ranks.get(tuple(i for i in range(width) if split[i] == part)) == rank for part in range(copies))
            for split in splits
        )
        answers.append(possible)
        assert is_spanned(filters, rank, copies) == possible
        assert not is_spanned(filters, rank + 1, copies)
    assert 5 < sum(answers) < 25


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ((4, 4), {}, "kernel_size is 4, expected an odd number"),
        ((3, 5), {}, "the kernel is 3 x 5, expected a square one"),
        ((3, 3), {"stride": 3}, r"stride 3 does not divide patch_size 4; allowed: \[1, 2, 4\]"),
        ((3, 3), {"dilation": 0}, "dilation 0, expected both to be at least 1"),
    ],
)
def test_what_is_no_such_convolution_is_refused(sizes, options, message):
    with pytest.raises(ValueError, match=message):
        patches_as_attention(torch.randn(2, 2, *sizes), torch.zeros(2), (3, 3), patch_size=4, **options)
