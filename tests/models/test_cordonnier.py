"""Networks of attention alone against a step-by-step transcription of the paper, and its published sizes."""

import pytest
import timm
import torch
import torch.nn.functional as F

from suite.models.cordonnier.attention import GeneralizedQuadraticAttention, PositionAttention, QuadraticAttention
from suite.models.cordonnier.head_pruning import count_pruned_heads, prune_heads
from suite.models.cordonnier.learned import LearnedAttention
from suite.models.cordonnier.network import ENCODINGS, MODELS
from suite.models.cordonnier.separable_mixing import GroupByGroup, mix_by_axes, mix_densely, mix_whole_batch
from suite.models.flops import count_flops
from suite.models.registry import build_model
from suite.models.resnet import MODELS as RESNETS

NAMES = sorted(MODELS)
POSITION_ONLY = [name for name in NAMES if name != "sa_learned_content"]
GRID = (3, 5)


def small(name, **options):
    """Like the published model, in all but its size; random everywhere."""
    torch.manual_seed(0)
    sizes = {"num_classes": 10, "image_size": (6, 10), "num_heads": 4, "depth": 2, "dim": 8, "hidden_dim": 12}
    return MODELS[name](**{**sizes, **options})


def random_layer(encoding, dim=8, heads=3, attention_dropout=0.0):
    torch.manual_seed(0)
    layer = ENCODINGS[encoding](dim, heads, GRID, attention_dropout).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, mean=0.2, std=0.5)
    return layer


def random_tokens(batch=2, dim=8, dtype=torch.float64):
    return torch.randn(batch, GRID[0] * GRID[1], dim, dtype=dtype, generator=torch.Generator().manual_seed(1)) + 0.5


def transcribed_attention(x, heads, score, weight, bias):
    """Eqs. 1 and 4 for one image, a query and a head at a time; score(head, query, key, row offset, column offset)."""
    n, dim = x.shape
    out = bias.expand(n, -1).clone()
    for h in range(heads):
        for q in range(n):
            scores = [score(h, q, k, k // GRID[1] - q // GRID[1], k % GRID[1] - q % GRID[1]) for k in range(n)]
            probabilities = torch.stack(scores).softmax(0)
            mean = sum(probabilities[k] * x[k] for k in range(n))
            out[q] += weight[:, h * dim : (h + 1) * dim] @ mean
    return out


def quadratic_score(layer, x):
    def score(h, q, k, row, column):
        delta = torch.tensor([row, column], dtype=x.dtype)
        alpha = layer.spreads[h] ** 2 / 2
        return -alpha * ((delta - layer.centers_H2[h]) ** 2).sum()

    return score


def quadratic_generalized_score(layer, x):
    def score(h, q, k, row, column):
        shifted = torch.tensor([row, column], dtype=x.dtype) - layer.centers_H2[h]
        return -0.5 * shifted @ (layer.spreads[h] @ layer.spreads[h].T) @ shifted

    return score


def learned_score(layer, x):
    def score(h, q, k, row, column):
        row_embedding = layer.positions.rows[row + GRID[0] - 1]
        column_embedding = layer.positions.columns[column + GRID[1] - 1]
        return layer.row_scores.weight[h] @ row_embedding + layer.column_scores.weight[h] @ column_embedding

    return score


def learned_content_score(layer, x):
    dim = x.shape[1]

    def score(h, q, k, row, column):
        part = slice(h * dim, (h + 1) * dim)
        query = layer.query.weight[part] @ x[q] + layer.query.bias[part]
        key = layer.key.weight[part] @ x[k] + layer.key.bias[part]
        r = torch.cat([layer.positions.rows[row + GRID[0] - 1], layer.positions.columns[column + GRID[1] - 1]])
        return (query @ key + query @ r) / dim**0.5

    return score


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_each_attention_equals_the_paper_step_by_step(encoding):
    layer, x = random_layer(encoding), random_tokens()
    make_score = globals()[f"{encoding}_score"]
    with torch.no_grad():
        expected = torch.stack(
            [transcribed_attention(i, 3, make_score(layer, i), layer.out.weight, layer.out.bias) for i in x]
        )
        torch.testing.assert_close(layer.train()(x), expected, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(layer.eval()(x), expected, rtol=1e-10, atol=1e-10)


def test_long_thin_heads_in_fp32_have_the_map_and_the_gradients_of_float64():
    torch.manual_seed(0)
    layer = GeneralizedQuadraticAttention(4, 9, (16, 16), 0.0)
    turns = torch.linalg.qr(torch.randn(2, 9, 2, 2)).Q
    with torch.no_grad():  # S S^T has the condition number 1e5
        layer.spreads.copy_(turns[0] @ torch.diag(3 * 10 ** torch.tensor([1.25, -1.25])) @ turns[1])
    parameters = [layer.centers_H2, layer.spreads]
    centers, spreads = (parameter.detach().double().requires_grad_() for parameter in parameters)
    place = torch.cartesian_prod(torch.arange(16), torch.arange(16)).double()
    shifted = place[None, None] - place[None, :, None] - centers[:, None, None]
    exact = (-torch.einsum("hqka,hab,hcb,hqkc->hqk", shifted, spreads, spreads, shifted) / 2).softmax(-1)
    weights = torch.randn(9, 256, 256)
    found = layer.position_map()
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=1e-4)
    expected_gradients = torch.autograd.grad(exact, [centers, spreads], weights.double())
    for gradient, expected in zip(torch.autograd.grad(found, parameters, weights), expected_gradients, strict=True):
        assert float((gradient - expected).norm() / expected.norm()) < 5e-5


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_attention_map_is_the_one_that_forward_applies(encoding):
    layer, x = random_layer(encoding), random_tokens()
    map_BHNN = layer.attention_map(x)
    assert map_BHNN.shape == (2, layer.num_heads, 15, 15)
    torch.testing.assert_close(map_BHNN.sum(-1), torch.ones(2, 3, 15, dtype=torch.float64))
    mixed = torch.einsum("bhqk,bkd->bqhd", map_BHNN, x).flatten(2)
    torch.testing.assert_close(layer(x), layer.out(mixed), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layer_type", [QuadraticAttention, LearnedAttention])
def test_the_separable_product_equals_the_dense_map_with_all_gradients(layer_type):
    torch.manual_seed(0)
    layer = layer_type(6, 9, (16, 12), 0.0)
    x = (torch.randn(3, 192, 6) + 0.5).requires_grad_()
    grad = torch.randn(3, 192, 54)
    separable, dense = layer.mix(x), PositionAttention.mix(layer, x)
    torch.testing.assert_close(separable, dense, rtol=0, atol=1e-6)
    inputs = [x, *(p for name, p in layer.named_parameters() if not name.startswith("out"))]
    for ours, theirs in zip(
        torch.autograd.grad(separable, inputs, grad), torch.autograd.grad(dense, inputs, grad), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6 * float(theirs.abs().max()))


@pytest.mark.parametrize("mix", [GroupByGroup.apply, mix_whole_batch])
def test_the_maps_gradients_in_bf16_are_within_a_percent_of_those_in_fp32_over_a_large_batch(mix):
    torch.manual_seed(0)
    layer = QuadraticAttention(16, 9, (16, 16), 0.0)
    x_BRK, weights_BRCHD = torch.randn(400, 16, 16 * 16) + 0.5, torch.randn(400, 16, 16, 9, 16)

    def gradients(precision):
        maps = (scores.softmax(-1).to(precision) for scores in layer.axis_scores())
        mixed = mix(x_BRK.to(precision), *maps)
        return torch.autograd.grad(mixed, [layer.centers_H2, layer.spreads], weights_BRCHD.to(precision))

    for exact, rounded in zip(gradients(torch.float32), gradients(torch.bfloat16), strict=True):
        assert float((rounded - exact).norm() / exact.norm()) < 0.01


@pytest.mark.parametrize("heads", [1, 3, 0])
@pytest.mark.parametrize("images_at_once", [1, 2, 3, 8])
def test_the_products_group_by_group_equal_those_over_the_whole_batch(heads, images_at_once, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: images_at_once)
    torch.manual_seed(0)
    rows, columns = torch.rand(heads, 3, 3).double(), torch.rand(heads, 5, 5).double()
    x = random_tokens(batch=5, dim=2).transpose(1, 2).contiguous().transpose(1, 2)  # not contiguous
    mixed = mix_by_axes(x, rows, columns)
    x_BRK = x.reshape(5, 3, 5 * 2)
    torch.testing.assert_close(mixed, mix_whole_batch(x_BRK, rows, columns).reshape(mixed.shape))
    dense = torch.einsum("hrs,hct->hrcst", rows, columns).reshape(heads, 15, 15)
    torch.testing.assert_close(mixed, mix_densely(x, dense))
    inputs = [t.requires_grad_() for t in (x_BRK, rows, columns)]
    assert torch.autograd.gradcheck(GroupByGroup.apply, inputs, fast_mode=True)


@pytest.mark.parametrize("name", POSITION_ONLY)
def test_one_dropout_mask_serves_the_batch_and_changes_from_step_to_step(name):
    layer = small(name, attention_dropout=0.5).blocks[0].attention
    x = random_tokens(1, dtype=torch.float32).expand(3, -1, -1)
    first, second = layer.train()(x), layer(x)
    torch.testing.assert_close(first[0], first[2])
    assert not torch.allclose(first, second)
    torch.testing.assert_close(layer.eval()(x), layer(x), rtol=0, atol=0)


def test_attention_to_content_draws_a_mask_for_each_image():
    layer = small("sa_learned_content", attention_dropout=0.5).blocks[0].attention
    out = layer.train()(random_tokens(1, dtype=torch.float32).expand(2, -1, -1))
    assert not torch.allclose(out[0], out[1])


@pytest.mark.parametrize("name", POSITION_ONLY)
def test_dropout_removes_entries_of_the_map_and_scales_the_rest(name):
    layer = small(name, attention_dropout=0.25, dim=15).blocks[0].attention
    with torch.no_grad():
        dropped = layer.train().mix(torch.eye(15)[None]).view(15, 4, 15).transpose(0, 1)  # identity: the map itself
        scaled = layer.position_map() / 0.75
    torch.testing.assert_close(dropped, torch.where(dropped == 0, 0, scaled))
    assert 0.15 < (dropped == 0).float().mean() < 0.35


def test_a_head_of_great_precision_looks_at_its_center():
    layer = QuadraticAttention(4, 2, (5, 5), 0.0)
    with torch.no_grad():
        layer.spreads.fill_(9.0)
        layer.centers_H2.copy_(torch.tensor([[1.0, -2.0], [0.0, 1.0]]))
    map_BHNN = layer.attention_map(torch.zeros(1, 25, 4))
    middle = 2 * 5 + 2
    assert map_BHNN[0, :, middle].argmax(-1).tolist() == [(2 + 1) * 5 + (2 - 2), 2 * 5 + 3]


@pytest.mark.parametrize("name", NAMES)
def test_the_network_around_the_attention_equals_the_paper_step_by_step(name):
    model = small(name, dropout=0.0, attention_dropout=0.0).double()
    images = torch.randn(2, 3, 6, 10, dtype=torch.float64) + 0.3
    tokens = [
        torch.stack([images[:, c, 2 * r + i, 2 * s + j] for i in (0, 1) for j in (0, 1) for c in range(3)], 1)
        for r in range(3)
        for s in range(5)
    ]
    x = torch.stack(tokens, 1) @ model.patch_embed.proj.weight.T + model.patch_embed.proj.bias
    for block in model.blocks:
        inner = block.attention(x) @ block.proj.weight.T + block.proj.bias
        x = F.layer_norm(x + inner, (8,), block.norm1.weight, block.norm1.bias, 1e-12)
        hidden = x @ block.hidden.weight.T + block.hidden.bias
        hidden = hidden * (1 + torch.erf(hidden / 2**0.5)) / 2
        inner = hidden @ block.output.weight.T + block.output.bias
        x = F.layer_norm(x + inner, (8,), block.norm2.weight, block.norm2.bias, 1e-12)
    expected = x.mean(1) @ model.head.weight.T + model.head.bias
    torch.testing.assert_close(model(images), expected, rtol=1e-10, atol=1e-10)


PUBLISHED = {  # parameters and 1e9 multiply-adds of the linear layers, at 10 classes and 32 pixels
    "resnet18_cifar": (11_173_962, 0.558, {}),
    "sa_quadratic": (12_086_844, 3.088, {}),
    "sa_quadratic_generalized": (12_087_006, 3.088, {}),
    "sa_quadratic_generalized, pruned": (9_686_916, 2.474, {"heads_per_layer": "7,5,8,7,3,9"}),
    "sa_learned": (12_278_682, 3.088, {}),
    "sa_learned_content": (29_484_282, 7.512, {}),
    "sa_quadratic, 16 heads": (18_806_970, 4.808, {"num_heads": 16}),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_multiply_adds_are_the_published_ones(name):
    parameters, gmac, options = PUBLISHED[name]
    given = {"num_classes": 10, "image_size": 32, **options}
    with torch.device("meta"):
        model = build_model(name.split(",")[0], **given)
    assert sum(p.numel() for p in model.parameters()) == parameters
    linear = count_flops(name.split(",")[0], **given).linear
    # 0.5 %: the known count of the ResNet includes its batch norms, the counter only matrix products and convolutions
    assert linear / 2e9 == pytest.approx(gmac, rel=5e-3)


@pytest.mark.parametrize("name", [*NAMES, "resnet18_cifar"])
@pytest.mark.parametrize("attention_dropout", [0.0, 0.1])
def test_every_parameter_gets_a_gradient(name, attention_dropout):
    if name == "resnet18_cifar":
        model = RESNETS[name](num_classes=10, image_size=(6, 10), width=4)
    else:
        model = small(name, attention_dropout=attention_dropout)
    F.cross_entropy(model(torch.randn(4, 3, 6, 10)), torch.arange(4)).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        if not parameter_name.endswith("key.bias"):  # adds the same to all of a query's scores: its gradient is zero
            assert parameter.grad.any(), parameter_name


def test_centers_start_as_the_paper_says_and_by_option_as_the_code_does():
    def deviation(name, parameter, **options):
        layer = small(name, num_heads=20_000, depth=1, dim=1, **options).blocks[0].attention
        return float(getattr(layer, parameter).detach().std(0).mean())

    assert deviation("sa_quadratic", "centers_H2") == pytest.approx(2**0.5, rel=0.02)
    assert deviation("sa_quadratic", "centers_H2", center_std=2.0) == pytest.approx(2, rel=0.02)
    assert deviation("sa_quadratic", "spreads") == pytest.approx(0.1, rel=0.02)
    assert deviation("sa_quadratic_generalized", "spreads", spread_std=0.01) == pytest.approx(0.01, rel=0.02)


def test_spreads_and_centers_are_exempt_from_weight_decay():
    for name in ("sa_quadratic", "sa_quadratic_generalized"):
        expected = {f"blocks.{i}.attention.{key}" for i in (0, 1) for key in ("spreads", "centers_H2")}
        assert small(name).no_weight_decay() == expected
    assert small("sa_learned").no_weight_decay() == set()


def with_degenerate_heads():
    """Four heads: in layer 0, head 1 is a stripe and head 2 sees all alike; layer 1 has only degenerate heads."""
    model = small("sa_quadratic_generalized")
    first, second = (block.attention.spreads for block in model.blocks)
    with torch.no_grad():
        first[1] = torch.tensor([[1.0, 2.0], [2.0, 4.0]])  # singular
        first[2] = 1e-3 * torch.eye(2)
        first[3] = torch.diag(torch.tensor([1.0, 0.02]))  # condition number 2500
        second.zero_()
        second[:2, 0, 0] = torch.tensor([1e-4, 1.0])
    return model


def test_pruning_removes_what_the_pruned_heads_gave_and_nothing_else():
    model = with_degenerate_heads()
    pruned = prune_heads(model)
    assert [block.attention.num_heads for block in pruned.blocks] == [2, 0]
    assert pruned.heads_per_layer == "2,0"
    assert (count_pruned_heads(model), count_pruned_heads(pruned)) == ((), (2, 4))
    images = torch.randn(2, 3, 6, 10) + 0.3
    before = model.eval()(images)
    with torch.no_grad():
        for block, gone in zip(model.blocks, ([1, 2], [0, 1, 2, 3]), strict=True):
            block.attention.out.weight.unflatten(1, (4, -1))[:, gone] = 0
    torch.testing.assert_close(pruned.eval()(images), model(images), rtol=1e-6, atol=1e-6)
    assert not torch.allclose(before, model(images))
    torch.testing.assert_close(pruned.blocks[0].attention.centers_H2, model.blocks[0].attention.centers_H2[[0, 3]])


def test_the_codes_threshold_prunes_more_than_the_papers():
    pruned = prune_heads(with_degenerate_heads(), max_condition_number=1000)
    assert [block.attention.num_heads for block in pruned.blocks] == [1, 0]


def test_a_pruned_network_trains_and_is_built_again_from_its_options():
    pruned = prune_heads(with_degenerate_heads())
    images = torch.randn(4, 3, 6, 10)
    assert pruned.training
    F.cross_entropy(pruned(images), torch.arange(4)).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in pruned.parameters())
    again = small("sa_quadratic_generalized", heads_per_layer="2,0")
    again.load_state_dict(pruned.state_dict(), strict=True)
    torch.testing.assert_close(again.eval()(images), pruned.eval()(images))


def test_a_healthy_network_is_pruned_of_nothing():
    model = small("sa_quadratic_generalized").double()
    pruned = prune_heads(model)
    images = torch.randn(2, 3, 6, 10, dtype=torch.float64)
    assert pruned.heads_per_layer == "4,4"
    torch.testing.assert_close(pruned.eval()(images), model.eval()(images))


def test_pruning_leaves_the_original_as_it_was():
    model = with_degenerate_heads()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        for parameter in prune_heads(model).parameters():
            parameter.add_(1.0)
    torch.testing.assert_close(dict(model.state_dict()), state, rtol=0, atol=0)


def test_resnet18_gives_the_logits_of_timms_with_the_small_stem():
    torch.manual_seed(0)
    reference, model = timm.create_model("resnet18", num_classes=10), RESNETS["resnet18_cifar"]
    reference.conv1, reference.maxpool = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False), torch.nn.Identity()
    ours = model(num_classes=10, image_size=32)
    ours.load_state_dict(reference.state_dict(), strict=True)
    images = torch.randn(2, 3, 32, 32) + 0.3
    torch.testing.assert_close(ours(images), reference(images), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("sa_quadratic", {"image_size": 31}, "patch_size 2 does not divide image_size 31"),
        ("sa_quadratic", {"image_size": (32, 33)}, "patch_size 2 does not divide image_size 33"),
        ("sa_quadratic", {"num_heads": 0}, "num_heads is 0"),
        ("sa_quadratic", {"attention_dropout": 1.5}, "attention_dropout is 1.5, expected a probability"),
        ("sa_quadratic", {"dropout": 1}, "dropout is 1, expected a probability"),
        ("sa_quadratic", {"heads_per_layer": "1,2,3"}, "heads_per_layer is '1,2,3', expected depth = 2 numbers"),
        ("sa_quadratic", {"heads_per_layer": "1,-2"}, "heads_per_layer is '1,-2'"),
        ("sa_quadratic", {"encoding": "quadratik"}, "Did you mean 'quadratic'"),
        ("sa_quadratic", {"position_dim": 4}, "position_dim is no option of the encoding 'quadratic'; it has: center_"),
        ("sa_learned", {"center_std": 2.0}, "center_std is no option of the encoding 'learned'; it has: position_dim"),
        ("sa_learned_content", {"dim": 7}, "dim is 7, expected an even number"),
    ],
)
def test_options_that_do_not_fit_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        small(name, **options)


def test_only_generalized_heads_can_be_pruned():
    with pytest.raises(ValueError, match="'quadratic' has no covariances"):
        prune_heads(small("sa_quadratic"))
    assert isinstance(small("sa_quadratic_generalized").blocks[0].attention, GeneralizedQuadraticAttention)
