"""How a ViT's attention weights start: mimetic (arXiv:2305.09828) and impulse (arXiv:2404.01139), with its cache.

Every function writes into timm's freshly built ``Attention`` layers; values and biases that it does not name keep
PyTorch's defaults. On the meta device there is nothing to write, so nothing is solved.
Shape legend: L layers, D width, H heads, E = D / H.
"""

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import filelock
import safetensors.torch
import torch
from safetensors import SafetensorError
from timm.layers import Attention as TimmAttention
from torch import Tensor

from suite.base.errors import RunError
from suite.base.files import cache_folder, write_atomically
from suite.models.structured_init import impulse
from suite.models.structured_init.impulse import ImpulseProblem, solve

FILTER_SIZES = {"impulse_3": 3, "impulse_5": 5}
SOLVER = Path(impulse.__file__)


def scaled_svd(alpha: float, beta: float, count: int, like: Tensor, uniform: bool) -> tuple[Tensor, Tensor]:
    """Factor alpha Z + beta I, with Z of mean 0 and variance 1 / D, by its singular values.

    Args:
        like: tensor that gives D, its last axis, and the device and type.
        uniform: true for a uniform Z, false for a normal one.

    Returns:
        U S^(1/2) and V S^(1/2), each (count, D, D).
    """
    dim = like.shape[-1]
    z = like.new_empty(count, dim, dim)
    z = z.uniform_(-(3**0.5), 3**0.5) if uniform else z.normal_()
    u, s, vh = torch.linalg.svd(alpha * dim**-0.5 * z + beta * torch.eye(dim, device=like.device, dtype=like.dtype))
    root = s.sqrt()[:, None]
    return u * root, vh.mT * root


@torch.no_grad()
def init_mimetic(layers: Sequence[TimmAttention], port: bool) -> None:
    """Mimetic initialization, arXiv:2305.09828, Sec. 4: a fresh draw per head and layer.

        Q_h K_h^T ~ 0.7 Z + 0.7 I (best approximation of rank E),  V W_proj = 0.4 Z - 0.4 I,  Z ~ N(0, 1/D)

    for maps x -> x W of row vectors; a Linear holds W^T. With U S V^T = svd(A): Q_h = U S^(1/2)[:, :E],
    K_h = V S^(1/2)[:, :E]; V = U S^(1/2), W_proj = S^(1/2) V^T.

    Args:
        port: true for the port of arXiv:2404.01139's authors, for their tables: V and W_proj are copied into the
            Linears without transposing them, so that V W_proj is another matrix; and Z is uniform.
    """
    if layers[0].qkv.weight.is_meta:
        return
    for layer in layers:
        query, key, value = layer.qkv.weight.chunk(3)
        width = query.shape[1] // layer.num_heads
        q_HDD, k_HDD = scaled_svd(0.7, 0.7, layer.num_heads, query, uniform=port)
        query.copy_(q_HDD[..., :width].mT.flatten(0, 1))
        key.copy_(k_HDD[..., :width].mT.flatten(0, 1))
        (left_DD,), (right_DD,) = scaled_svd(0.4, -0.4, 1, query, uniform=port)
        value.copy_(left_DD if port else left_DD.T)
        layer.proj.weight.copy_(right_DD.T if port else right_DD)


@torch.no_grad()
def init_impulse(
    layers: Sequence[TimmAttention], problem: ImpulseProblem, following: str, same_for_all_layers: bool
) -> None:
    """Algorithm 1 of arXiv:2404.01139 into the query and key weights; their biases stay PyTorch's random ones.

    Args:
        problem: the first layer's problem.
        following: pseudo-input of the other layers (Table 6).
        same_for_all_layers: true for one solution for all layers of a pseudo-input, false for one for each layer.
    """
    if layers[0].qkv.weight.is_meta:
        return
    depth = len(layers)
    num_first = depth if following == problem.pseudo_input else 1
    solutions = [spread(problem, num_first, same_for_all_layers)]
    if num_first < depth:
        others = replace(problem, pseudo_input=following, seed=problem.seed + 1)
        solutions.append(spread(others, depth - num_first, same_for_all_layers))
    q_LHDE, k_LHDE = (torch.cat(parts) for parts in zip(*solutions, strict=True))
    for layer, q_HDE, k_HDE in zip(layers, q_LHDE, k_LHDE, strict=True):
        query, key, _ = layer.qkv.weight.chunk(3)
        query.copy_(q_HDE.mT.flatten(0, 1))
        key.copy_(k_HDE.mT.flatten(0, 1))


def spread(problem: ImpulseProblem, num_layers: int, same: bool) -> tuple[Tensor, Tensor]:
    """Q and K for ``num_layers`` layers, each (L, H, D, E): one solution for all of them, or one for each."""
    q_LHDE, k_LHDE = cached_solution(replace(problem, num_layers=1 if same else num_layers))
    return q_LHDE.expand(num_layers, -1, -1, -1), k_LHDE.expand(num_layers, -1, -1, -1)


def solution_path(problem: ImpulseProblem) -> Path:
    """Where the problem's solution is kept: under ``$SUITE_CACHE_DIR``, or else the user's cache folder.

    Its name stands for the solver's source, PyTorch's version and the CPU's instructions too: others may give another
    solution, and nodes that share the folder may differ.
    """
    solver = hashlib.sha256(SOLVER.read_bytes()).hexdigest()
    basis = {"solver": solver, "torch": torch.__version__, "cpu": torch.backends.cpu.get_cpu_capability()}
    text = json.dumps({**asdict(problem), **basis}, sort_keys=True)
    return cache_folder("suite-init") / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.safetensors"


def cached_solution(problem: ImpulseProblem) -> tuple[Tensor, Tensor]:
    """``solve``, once for all processes that share the cache folder: the others wait for the first. One that is there
    needs no right to write; RunError where it has to be written and cannot be."""
    path = solution_path(problem)
    try:
        if (found := read_solution(path, problem)) is not None:
            return found
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path.with_suffix(".lock")):
            found = read_solution(path, problem)
            if found is None:
                found = solve(problem)
                tensors = {name: tensor.contiguous() for name, tensor in zip(("query", "key"), found, strict=True)}
                write_atomically(path, safetensors.torch.save(tensors))
            return found
    except (OSError, RunError) as error:
        reason = error.__cause__ or error
        raise RunError(f"cannot write {path}: {reason}. Set SUITE_CACHE_DIR to a folder with space.") from error


def read_solution(path: Path, problem: ImpulseProblem) -> tuple[Tensor, Tensor] | None:
    """The kept solution; None if there is none, or with a warning if the file is broken, so that it is solved again."""
    dim, heads = problem.dim, problem.num_heads
    try:
        kept = safetensors.torch.load(path.read_bytes())
        found = kept["query"], kept["key"]
    except FileNotFoundError:
        return None
    except (SafetensorError, KeyError) as error:
        warnings.warn(f"{path} is no solution of an initialization ({error!r}): solving it again", stacklevel=2)
        return None
    if any(t.shape != (problem.num_layers, heads, dim, dim // heads) or not t.isfinite().all() for t in found):
        warnings.warn(f"{path} holds tensors that cannot be: solving it again", stacklevel=2)
        return None
    return found
