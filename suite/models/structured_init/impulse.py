"""Impulse initialization: query and key weights whose attention shifts the image (arXiv:2404.01139, Algorithm 1).

Shape legend: L layers, N patches (rows * columns, row-major), D width, H heads, E = D / H, C = H * E = D columns of
all heads side by side, M rank of the pseudo-input.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

LAYER_NORM_EPS = 1e-6  # the blocks' own
RENORMALIZE_EVERY = 100  # steps


@dataclass(frozen=True)
class ImpulseProblem:
    """All that decides a solution; equal problems have equal solutions.

    Attributes:
        filter_size: side f of the window from which each head draws its shift, odd.
        pseudo_input: "PE" (sinusoidal encoding), "U" (uniform on [-1, 1]), "G" (standard normal), or a sum: "PE+U",
            "PE+G".
        num_layers: independent solutions, each with its own shifts, start and random pseudo-input.
        renormalize: see ``renormalize_as_the_code``.
    """

    grid: tuple[int, int]
    dim: int
    num_heads: int
    filter_size: int
    pseudo_input: str = "PE"
    num_layers: int = 1
    steps: int = 10_000
    learning_rate: float = 1e-4
    renormalize: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Start:
    """A problem's random draws: pseudo-input, shifts (row, column) and first weights."""

    x_LND: Tensor  # one pseudo-input (1, N, D) for all layers unless it is random
    shift_LH2: Tensor
    q_LDC: Tensor
    k_LDC: Tensor


def sinusoidal_encoding(grid: tuple[int, int], dim: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """(N, D): sin(row b_i), sin(column b_i), cos(row b_i), cos(column b_i), b_i = 10000^(-i / (D/4)), i < D/4."""
    bands = 10_000 ** (-torch.arange(dim // 4, dtype=torch.float64) / (dim // 4))
    row_N, column_N = (torch.arange(n, dtype=torch.float64) for n in grid)
    angle = [t.flatten()[:, None] * bands for t in torch.meshgrid(row_N, column_N, indexing="ij")]
    return torch.cat([a.sin() for a in angle] + [a.cos() for a in angle], dim=1).to(dtype)


def draw(problem: ImpulseProblem) -> Start:
    """The start of Algorithm 1: x = LayerNorm(pseudo-input) without affine, Q and K from U(+-1/sqrt(D))."""
    generator = torch.Generator("cpu").manual_seed(problem.seed)
    layers, dim, half = problem.num_layers, problem.dim, problem.filter_size // 2
    x_LND = sinusoidal_encoding(problem.grid, dim)[None]
    if problem.pseudo_input != "PE":
        shape = (layers, x_LND.shape[1], dim)
        if problem.pseudo_input.endswith("G"):
            noise_LND = torch.randn(shape, generator=generator, dtype=torch.float64)
        else:
            noise_LND = torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1
        x_LND = x_LND + noise_LND if problem.pseudo_input.startswith("PE") else noise_LND
    shift_LH2 = torch.randint(-half, half + 1, (layers, problem.num_heads, 2), generator=generator)
    q_LDC, k_LDC = (torch.rand(2, layers, dim, dim, generator=generator, dtype=torch.float32) * 2 - 1) * dim**-0.5
    return Start(F.layer_norm(x_LND, (dim,), eps=LAYER_NORM_EPS), shift_LH2, q_LDC, k_LDC)


def shifted_patch(grid: tuple[int, int], shift_LH2: Tensor) -> tuple[Tensor, Tensor]:
    """The one of each row of the target map: its key patch and whether it lies in the image, both (L, H, N)."""
    place_N2 = torch.cartesian_prod(*(torch.arange(n) for n in grid))
    key_LHN2 = shift_LH2[:, :, None] + place_N2
    inside_LHN = ((key_LHN2 >= 0) & (key_LHN2 < torch.tensor(grid))).all(-1)
    return (key_LHN2 * torch.tensor([grid[1], 1])).sum(-1).where(inside_LHN, 0), inside_LHN


def factor(x_LND: Tensor) -> tuple[Tensor | None, Tensor]:
    """X = W V with W (L, N, M) and orthonormal rows V (L, M, D), to float32's precision; W is None if V is X itself.

    The sinusoidal encoding is a function of the row plus one of the column, so its rank is below rows + columns,
    whatever D; its smallest singular values vanish in float32 too. All products with Q and K shrink to that rank.
    """
    u_LNM, s_LM, v_LMD = torch.linalg.svd(x_LND, full_matrices=False)
    rank = int((s_LM > s_LM[:, :1] * torch.finfo(torch.float32).eps).sum(-1).max())
    if 2 * rank > x_LND.shape[1]:
        return None, x_LND.float()
    return (u_LNM * s_LM[:, None])[..., :rank].float().contiguous(), v_LMD[:, :rank].float().contiguous()


class ImpulseLoss:
    """Eq. 8 averaged over the heads, and its gradient, for all heads and layers at once.

        G = (V Q)(V K)^T / sqrt(E);  P = softmax(W G W^T);  loss = sum (P - T)^2 / (H N^2)
        dS = 2 / (H N^2) P * (P - T - r), r = sum_keys P * (P - T);  dG = W^T dS W
        dQ = V^T dG (V K) / sqrt(E);  dK = V^T dG^T (V Q) / sqrt(E)

    By hand, because T has at most a single one per row (none if the shifted patch lies outside the image) and is
    never built, and because autograd would keep and revisit each of the large maps.
    """

    def __init__(self, start: Start, problem: ImpulseProblem) -> None:
        self.num_heads, self.scale = problem.num_heads, (problem.dim // problem.num_heads) ** -0.5
        w_LNM, self.v_LMD = factor(start.x_LND)
        self.w_L1NM = None if w_LNM is None else w_LNM[:, None]
        key_LHN, inside_LHN = shifted_patch(problem.grid, start.shift_LH2)
        self.key_LHN1, self.inside_LHN1 = key_LHN[..., None], inside_LHN[..., None].float()
        patches = key_LHN.shape[-1]
        self.norm = problem.num_heads * patches**2
        # The two large maps are allocated once: fresh pages at every step cost as much as the arithmetic on them.
        self.map_LHNN, self.spare_LHNN = torch.empty(2, *key_LHN.shape, patches, dtype=torch.float32)

    def heads(self, weight_LDC: Tensor) -> Tensor:
        """V times each head's weights: (L, H, M, E)."""
        return (self.v_LMD @ weight_LDC).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def attention(self, q_LHME: Tensor, k_LHME: Tensor) -> Tensor:
        """P: (L, H, N, N), valid until the next call."""
        g_LHMM = q_LHME @ (k_LHME * self.scale).mT
        if self.w_L1NM is None:
            return torch.softmax(g_LHMM, -1, out=self.map_LHNN)
        torch.matmul(self.w_L1NM, g_LHMM @ self.w_L1NM.mT, out=self.spare_LHNN)
        return torch.softmax(self.spare_LHNN, -1, out=self.map_LHNN)

    def gradients(self, q_LDC: Tensor, k_LDC: Tensor) -> tuple[Tensor, Tensor]:
        """dloss/dQ and dloss/dK."""
        q_LHME, k_LHME = self.heads(q_LDC), self.heads(k_LDC)
        p_LHNN = self.attention(q_LHME, k_LHME)
        hit_LHN1 = p_LHNN.gather(-1, self.key_LHN1) * self.inside_LHN1
        r_LHN1 = torch.linalg.vector_norm(p_LHNN, dim=-1, keepdim=True).square() - hit_LHN1
        ds_LHNN = torch.sub(p_LHNN, r_LHN1, out=self.spare_LHNN)
        ds_LHNN.scatter_add_(-1, self.key_LHN1, -self.inside_LHN1).mul_(p_LHNN)
        dg_LHMM = ds_LHNN if self.w_L1NM is None else self.w_L1NM.mT @ ds_LHNN @ self.w_L1NM
        dg_LHMM = dg_LHMM * (2 * self.scale / self.norm)
        return self.pull_back(dg_LHMM @ k_LHME), self.pull_back(dg_LHMM.mT @ q_LHME)

    def pull_back(self, grad_LHME: Tensor) -> Tensor:
        """V^T grad, heads side by side: (L, D, C)."""
        return self.v_LMD.mT @ grad_LHME.transpose(1, 2).flatten(2)

    def __call__(self, q_LDC: Tensor, k_LDC: Tensor) -> Tensor:
        """The loss of each layer: (L,)."""
        p_LHNN = self.attention(self.heads(q_LDC), self.heads(k_LDC))
        error_LHNN = p_LHNN.scatter_add(-1, self.key_LHN1, -self.inside_LHN1)
        return error_LHNN.square().sum((1, 2, 3)) / self.norm


def renormalize_as_the_code(q_LDC: Tensor, k_LDC: Tensor, norm_L11: Tensor, num_heads: int) -> None:
    """Give every column of a head's Q (D,), and every row of a head's K (E,), Q's first mean column norm, in place.

    The authors' code does so before steps 0, 100, 200...; the paper does not mention it. It holds the attention soft.

    Args:
        norm_L11: the mean column norm of each layer's Q before its first step.
    """
    q_LDC.mul_(norm_L11 / q_LDC.norm(dim=1, keepdim=True))
    k_LDHE = k_LDC.unflatten(-1, (num_heads, -1))
    k_LDHE.mul_(norm_L11[..., None] / k_LDHE.norm(dim=-1, keepdim=True))


@torch.no_grad()
def solve(problem: ImpulseProblem) -> tuple[Tensor, Tensor]:
    """Algorithm 1: Adam on Q and K until each head's attention on the pseudo-input is its shift.

    Returns:
        Q and K, each (L, H, D, E), float32 on the CPU wherever the model lives, so that all devices start alike.

    Differs: nothing but the order of the arithmetic: Adam sees the full Q and K, so its iterates are Algorithm 1's.
    """
    with torch.device("cpu"):
        start = draw(problem)
        loss = ImpulseLoss(start, problem)
        q_LDC, k_LDC = start.q_LDC.clone().requires_grad_(), start.k_LDC.clone().requires_grad_()
        norm_L11 = q_LDC.norm(dim=1).mean(-1)[:, None, None]
        adam = torch.optim.Adam([q_LDC, k_LDC], lr=problem.learning_rate, fused=True)
        for step in range(problem.steps):
            if problem.renormalize and step % RENORMALIZE_EVERY == 0:
                renormalize_as_the_code(q_LDC, k_LDC, norm_L11, problem.num_heads)
            q_LDC.grad, k_LDC.grad = loss.gradients(q_LDC, k_LDC)
            adam.step()
    q_LHDE, k_LHDE = (t.detach().unflatten(-1, (problem.num_heads, -1)).transpose(1, 2) for t in (q_LDC, k_LDC))
    return q_LHDE, k_LHDE
