"""The impulse solver against a slow transcription of Algorithm 1, its cache, and the other initializations."""

import threading
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from timm.layers import Attention as TimmAttention

from suite.models.convit.probes import attention_map
from suite.models.structured_init import initializations
from suite.models.structured_init.impulse import ImpulseLoss, ImpulseProblem, draw, sinusoidal_encoding, solve
from suite.models.structured_init.initializations import cached_solution, init_impulse, init_mimetic, solution_path
from suite.models.structured_init.vit import ViT

SMALL = ImpulseProblem(grid=(4, 5), dim=16, num_heads=2, filter_size=3, steps=50, seed=3)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUITE_CACHE_DIR", str(tmp_path))


@pytest.fixture
def solved(monkeypatch):
    """Counts the problems that were solved rather than read."""
    problems = []

    def counting(problem):
        problems.append(problem)
        return solve(problem)

    monkeypatch.setattr(initializations, "solve", counting)
    return problems


def impulse_map(grid, shift):
    """The convolution matrix of one impulse, entry by entry; a row whose shifted patch is outside stays zero."""
    rows, columns = grid
    target = torch.zeros(rows * columns, rows * columns, dtype=torch.float64)
    for r in range(rows):
        for c in range(columns):
            to_r, to_c = r + int(shift[0]), c + int(shift[1])
            if 0 <= to_r < rows and 0 <= to_c < columns:
                target[r * columns + c, to_r * columns + to_c] = 1
    return target


def transcribed_loss(problem, start, q_DC, k_DC, layer=0):
    """Eq. 8 of one layer, the mean over its heads, with dense maps in float64."""
    x = start.x_LND[min(layer, len(start.x_LND) - 1)]
    width, total = problem.dim // problem.num_heads, 0
    for head in range(problem.num_heads):
        q, k = (w[:, head * width : (head + 1) * width] for w in (q_DC, k_DC))
        attention = (x @ q @ k.T @ x.T * width**-0.5).softmax(-1)
        target = impulse_map(problem.grid, start.shift_LH2[layer, head])
        total += (attention - target).square().mean() / problem.num_heads
    return total


def transcribed_algorithm_1(problem, start, layer, head):
    """One head with autograd and torch's Adam, in float64: Q and K (D, E) and the final attention map."""
    width = problem.dim // problem.num_heads
    x = start.x_LND[min(layer, len(start.x_LND) - 1)]
    part = slice(head * width, (head + 1) * width)
    q, k = (w[layer].double()[:, part].clone().requires_grad_() for w in (start.q_LDC, start.k_LDC))
    norm = start.q_LDC[layer].double().norm(dim=0).mean()
    target = impulse_map(problem.grid, start.shift_LH2[layer, head])
    adam = torch.optim.Adam([q, k], lr=1e-4)
    for step in range(problem.steps):
        if problem.renormalize and step % 100 == 0:
            with torch.no_grad():
                for column in q.T:
                    column.mul_(norm / column.norm())
                for row in k:
                    row.mul_(norm / row.norm())
        attention = (x @ q @ k.T @ x.T * width**-0.5).softmax(-1)
        loss = F.mse_loss(attention, target) / problem.num_heads  # the mean over all heads' maps
        adam.zero_grad()
        loss.backward()
        adam.step()
    return q.detach(), k.detach()


@pytest.mark.parametrize("pseudo_input", ["PE", "U", "PE+G"])
@pytest.mark.parametrize("renormalize", [False, True])
def test_the_batched_solver_follows_algorithm_1_of_every_head_and_layer(pseudo_input, renormalize):
    problem = replace(SMALL, pseudo_input=pseudo_input, num_layers=2, renormalize=renormalize, steps=150)
    start, (q_LHDE, k_LHDE) = draw(problem), solve(problem)
    assert q_LHDE.shape == k_LHDE.shape == (2, 2, 16, 8)
    for layer in range(2):
        for head in range(2):
            q, k = transcribed_algorithm_1(problem, start, layer, head)
            for ours, theirs in ((q_LHDE[layer, head], q), (k_LHDE[layer, head], k)):
                # Adam moves a weight by up to 1e-4 a step, 1.5e-2 in all; float32 rounding moves it a hundredth of one
                torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("pseudo_input", ["PE", "U"])
def test_the_gradient_by_hand_is_autograds(pseudo_input):
    problem = replace(SMALL, pseudo_input=pseudo_input, num_layers=3, filter_size=5)
    start = draw(problem)
    q, k = 8 * start.q_LDC, 8 * start.k_LDC
    q_64, k_64 = (w.double().requires_grad_() for w in (q, k))
    total = sum(transcribed_loss(problem, start, q_64[layer], k_64[layer], layer) for layer in range(3))
    gradients = ImpulseLoss(start, problem).gradients(q, k)
    for ours, expected in zip(gradients, torch.autograd.grad(total, (q_64, k_64)), strict=True):
        torch.testing.assert_close(ours.double(), expected, rtol=1e-4, atol=1e-7)


def test_the_loss_is_the_mean_squared_error_over_all_heads_maps():
    start = draw(SMALL)
    expected = transcribed_loss(SMALL, start, start.q_LDC[0].double(), start.k_LDC[0].double())
    assert ImpulseLoss(start, SMALL)(start.q_LDC, start.k_LDC).item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_pseudo_input_of_vit_has_a_rank_far_below_its_width():
    problem = ImpulseProblem(grid=(16, 16), dim=384, num_heads=6, filter_size=3)
    loss = ImpulseLoss(draw(problem), problem)
    assert loss.v_LMD.shape[1] < 32
    rebuilt = loss.w_L1NM[:, 0] @ loss.v_LMD
    torch.testing.assert_close(rebuilt.double(), draw(problem).x_LND, rtol=0, atol=3e-6)


def test_every_shift_of_the_window_is_drawn_equally_often():
    shifts = draw(ImpulseProblem(grid=(1, 1), dim=4, num_heads=1, filter_size=3, num_layers=9000)).shift_LH2
    _, counts = shifts.flatten(0, 1).unique(dim=0, return_counts=True)
    assert len(counts) == 9
    assert counts.min() > 850
    assert draw(replace(SMALL, filter_size=5, num_layers=99)).shift_LH2.unique().tolist() == [-2, -1, 0, 1, 2]


@pytest.mark.parametrize(("pseudo_input", "fourth_moment"), [("G", 3.0), ("PE+G", None), ("U", 1.8), ("PE+U", None)])
def test_noise_is_normal_or_uniform_alone_or_on_top_of_the_position(pseudo_input, fourth_moment):
    x_LND = draw(replace(SMALL, dim=64, pseudo_input=pseudo_input, num_layers=400)).x_LND
    if fourth_moment:
        assert x_LND.pow(4).mean().item() == pytest.approx(fourth_moment, rel=0.05)
        expected = torch.zeros(x_LND.shape[1], 64, dtype=torch.float64)
    else:  # over many layers the noise averages out
        position = sinusoidal_encoding(SMALL.grid, 64)
        expected = F.layer_norm(position, (64,))
        variance = 1.0 if pseudo_input == "PE+G" else 1 / 3
        expected = expected * (1 + variance / position.var(-1, correction=0, keepdim=True)) ** -0.5
    torch.testing.assert_close(x_LND.mean(0), expected, rtol=0, atol=0.25)
    assert (x_LND.mean(0) - expected).square().mean().sqrt() < 0.06  # 1 / sqrt(400) = 0.05


def test_the_start_is_uniform_and_the_pseudo_input_normalized():
    start = draw(replace(SMALL, dim=256, pseudo_input="PE+U", num_layers=2))
    for weights in (start.q_LDC, start.k_LDC):
        assert weights.abs().max() <= 1 / 16
        assert weights.std().item() == pytest.approx(1 / 16 / 3**0.5, rel=0.02)
    torch.testing.assert_close(start.x_LND.mean(-1), torch.zeros(2, 20).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(start.x_LND.var(-1, unbiased=False), torch.ones(2, 20).double(), atol=1e-4, rtol=0)


def test_the_built_layers_attend_to_their_shifted_patch():
    torch.manual_seed(1)
    model = ViT(num_classes=2, image_size=(10, 12), dim=64, num_heads=4, depth=2, initialization="impulse_3",
                impulse_steps=1500)  # fmt: skip
    torch.manual_seed(1)
    problem = ImpulseProblem((5, 6), 64, 4, 3, steps=1500, seed=int(torch.randint(2**31 - 1, ())))
    x = F.layer_norm(sinusoidal_encoding((5, 6), 64, torch.float32), (64,))
    for block in model.blocks:
        for head, attention in enumerate(attention_map(block.attn, x[None])[0]):
            target = impulse_map((5, 6), draw(problem).shift_LH2[0, head])
            inside = target.sum(-1) > 0
            assert (attention.argmax(-1) == target.argmax(-1))[inside].float().mean() > 0.95
            assert attention[target > 0].mean() > 0.4  # uniform: 0.03


def test_a_problem_is_solved_once_and_read_back_identically(solved):
    first, second = cached_solution(SMALL), cached_solution(replace(SMALL))
    assert len(solved) == 1
    for ours, theirs in zip(first, second, strict=True):
        assert torch.equal(ours, theirs)


def test_processes_that_want_the_same_solution_wait_for_the_first(solved):
    workers = [threading.Thread(target=cached_solution, args=(SMALL,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(solved) == 1


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-9], lambda data: data.replace(b"key", b"kex")]
)
def test_a_corrupt_cache_file_is_reported_and_solved_again(solved, damage):
    expected = cached_solution(SMALL)
    path = solution_path(SMALL)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match="solving it again"):
        again = cached_solution(SMALL)
    assert len(solved) == 2
    assert all(torch.equal(a, b) for a, b in zip(again, expected, strict=True))
    cached_solution(SMALL)
    assert len(solved) == 2


def test_a_cache_file_of_another_problem_is_solved_again(solved):
    other = replace(SMALL, num_heads=4)
    cached_solution(other)
    solution_path(other).rename(solution_path(SMALL))
    with pytest.warns(UserWarning, match="tensors that cannot be"):
        assert cached_solution(SMALL)[0].shape == (1, 2, 16, 8)


def test_a_solution_that_is_there_is_read_where_nothing_can_be_written(solved, monkeypatch):
    def acquire(lock, *_, **__):
        raise PermissionError(13, "Permission denied", lock.lock_file)

    expected = cached_solution(SMALL)
    monkeypatch.setattr(initializations.filelock.FileLock, "acquire", acquire)
    assert all(torch.equal(a, b) for a, b in zip(cached_solution(SMALL), expected, strict=True))
    with pytest.raises(initializations.RunError, match="Set SUITE_CACHE_DIR"):
        cached_solution(replace(SMALL, seed=4))


def test_a_cache_folder_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SUITE_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(initializations.RunError, match="Set SUITE_CACHE_DIR"):
        cached_solution(SMALL)


@pytest.mark.parametrize(
    "change",
    [
        {"grid": (5, 4)},
        {"dim": 32},
        {"num_heads": 4},
        {"filter_size": 5},
        {"pseudo_input": "U"},
        {"num_layers": 2},
        {"steps": 51},
        {"learning_rate": 1e-3},
        {"renormalize": True},
        {"seed": 4},
    ],
)
def test_every_part_of_a_problem_is_part_of_its_cache_key(change):
    assert solution_path(replace(SMALL, **change)) != solution_path(SMALL)


def test_an_edited_solver_another_pytorch_or_other_instructions_find_no_solution_of_the_former(monkeypatch, tmp_path):
    former = solution_path(SMALL)
    edited = tmp_path / "impulse.py"
    edited.write_bytes(initializations.SOLVER.read_bytes().replace(b"steps: int = 10_000", b"steps: int = 20_000"))
    with monkeypatch.context() as patch:
        patch.setattr(initializations, "SOLVER", edited)
        assert solution_path(SMALL) != former
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "9.9.9")
        assert solution_path(SMALL) != former
    with monkeypatch.context() as patch:
        patch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "SVE256")
        assert solution_path(SMALL) != former
    assert solution_path(SMALL) == former


def test_seeds_decide_the_solution_and_the_model_draws_its_own(solved):
    def build(seed, num_classes=2):
        torch.manual_seed(seed)
        return ViT(num_classes=num_classes, image_size=8, dim=16, num_heads=2, depth=2, initialization="impulse_3",
                   impulse_steps=5)  # fmt: skip

    first, again, other = build(0), build(0, num_classes=7), build(1)
    weights = [model.blocks[0].attn.qkv.weight[:32] for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert len(solved) == 2  # the number of classes does not matter


def test_the_layers_after_the_first_are_solved_from_the_next_seed(solved):
    layers = [TimmAttention(16, 2, qkv_bias=True) for _ in range(3)]
    init_impulse(layers, replace(SMALL, steps=2, seed=7), "U", same_for_all_layers=True)
    assert [(problem.pseudo_input, problem.seed) for problem in solved] == [("PE", 7), ("U", 8)]


def test_layers_share_one_solution_or_have_their_own(solved):
    def queries(following, same):
        layers = [TimmAttention(16, 2, qkv_bias=True) for _ in range(3)]
        init_impulse(layers, replace(SMALL, steps=2), following, same)
        return [layer.qkv.weight[:16] for layer in layers]

    first, second, third = queries("PE", same=True)
    assert torch.equal(first, second)
    assert torch.equal(second, third)
    first, second, third = queries("U", same=True)
    assert not torch.equal(first, second)
    assert torch.equal(second, third)
    for following in ("PE", "PE+U"):
        first, second, third = queries(following, same=False)
        assert not torch.equal(first, second)
        assert not torch.equal(second, third)
    inputs = [(problem.pseudo_input, problem.num_layers) for problem in solved]
    assert inputs == [("PE", 1), ("U", 1), ("PE", 3), ("PE+U", 2)]  # the first layer's alone was solved before


def test_an_impulse_leaves_biases_values_and_projections_alone():
    layer = TimmAttention(16, 2, qkv_bias=True)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    init_impulse([layer], replace(SMALL, steps=2), "PE", True)
    after = layer.state_dict()
    assert torch.equal(after["qkv.weight"][32:], before["qkv.weight"][32:])
    assert not torch.equal(after["qkv.weight"][:32], before["qkv.weight"][:32])
    assert all(torch.equal(after[name], before[name]) for name in ("qkv.bias", "proj.weight", "proj.bias"))


@pytest.mark.parametrize("initialization", ["impulse_5", "mimetic"])
def test_nothing_is_solved_on_the_meta_device(monkeypatch, initialization):
    monkeypatch.setattr(initializations, "solve", pytest.fail)
    monkeypatch.setattr(torch.linalg, "svd", pytest.fail)
    with torch.device("meta"):
        model = ViT(num_classes=2, image_size=32, dim=192, num_heads=3, initialization=initialization)
        assert model(torch.empty(2, 3, 32, 32)).shape == (2, 2)


def products(layer):
    """Of a mimetic layer: each head's Q K^T (H, D, D), and V W_proj (D, D), for row vectors."""
    query, key, value = (w.unflatten(0, (layer.num_heads, -1)) for w in layer.qkv.weight.detach().chunk(3))
    return query.mT @ key, value.flatten(0, 1).T @ layer.proj.weight.detach().T


@pytest.mark.parametrize("port", [False, True])
def test_mimetic_query_and_key_multiply_to_noise_plus_identity(port):
    torch.manual_seed(0)
    layer = TimmAttention(256, 1, qkv_bias=True)
    init_mimetic([layer], port)
    (product,), _ = products(layer)
    noise = product - 0.7 * torch.eye(256)
    assert product.diagonal().mean().item() == pytest.approx(0.7, abs=0.02)
    assert noise.std().item() == pytest.approx(0.7 / 16, rel=0.02)
    assert (noise.abs().max() < 0.7 / 16 * 3**0.5 + 1e-4) == port  # the port's noise is uniform, the paper's normal


def test_mimetic_heads_are_the_best_approximation_of_their_rank():
    layer = TimmAttention(96, 3, qkv_bias=True)
    torch.manual_seed(0)
    init_mimetic([layer], port=False)
    torch.manual_seed(0)
    matrices = 0.7 * 96**-0.5 * torch.empty(3, 96, 96).normal_() + 0.7 * torch.eye(96)
    kept, _ = products(layer)
    for product, matrix in zip(kept, matrices, strict=True):
        values = torch.linalg.svdvals(matrix)
        torch.testing.assert_close(torch.linalg.svdvals(product)[:32], values[:32], rtol=1e-4, atol=1e-4)
        assert torch.linalg.norm(matrix - product).item() == pytest.approx(values[32:].norm().item(), rel=1e-4)
    assert kept.diagonal(dim1=1, dim2=2).mean() > 0.2
    assert not torch.allclose(kept[0], kept[1])


def test_mimetic_value_and_projection_multiply_to_noise_minus_identity_but_not_in_the_port():
    torch.manual_seed(0)
    ours, port = (TimmAttention(256, 2, qkv_bias=True) for _ in range(2))
    init_mimetic([ours], port=False)
    init_mimetic([port], port=True)
    _, product = products(ours)
    assert product.diagonal().mean().item() == pytest.approx(-0.4, abs=0.01)
    assert (product + 0.4 * torch.eye(256)).std().item() == pytest.approx(0.4 / 16, rel=0.02)
    torch.testing.assert_close(torch.linalg.svdvals(ours.proj.weight), torch.linalg.svdvals(ours.qkv.weight[512:]))
    _, missing_transpose = products(port)
    value, projection = port.qkv.weight[512:], port.proj.weight
    assert (value @ projection).diagonal().mean().item() == pytest.approx(-0.4, abs=0.01)  # the intended matrix
    diagonal = missing_transpose.diagonal()  # about the singular values, in their order, instead of -0.4 throughout
    assert diagonal[:8].mean() < -0.7
    assert diagonal[-8:].mean() > -0.1


def test_trunc_normal_is_timms_and_kaiming_uniform_pytorchs():
    torch.manual_seed(0)
    shape = {"num_classes": 10, "image_size": 8, "dim": 128, "num_heads": 2, "depth": 1}
    timms, pytorchs = (ViT(**shape, initialization=name) for name in ("trunc_normal", "kaiming_uniform"))
    for name, module in timms.named_modules():
        if isinstance(module, torch.nn.Linear):
            assert module.weight.std().item() == pytest.approx(0.02, rel=0.1), name
            assert not module.bias.any(), name
    weight, bias = pytorchs.blocks[0].attn.qkv.weight, pytorchs.blocks[0].attn.qkv.bias
    assert weight.abs().max() <= 128**-0.5
    assert weight.std().item() == pytest.approx(128**-0.5 / 3**0.5, rel=0.02)
    assert bias.abs().max() > 0.9 * 128**-0.5
