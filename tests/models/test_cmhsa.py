"""CMHSA against step-by-step transcriptions of the paper; what the transfer between its phases keeps and costs."""

import copy
import itertools

import pytest
import torch
import torch.nn.functional as F

from suite.models import cmhsa, theorems
from suite.models.cmhsa import AttentionPhase, ConvolutionPhase, PatchConvolution, RelativeBiasAttention, transfer

SMALL = {"num_classes": 5, "image_size": (12, 8), "patch_size": 4, "depth": 2}


def trained(model):
    """Away from the initialization, where norms are the identity and biases zero."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def both_phases(dtype=torch.float64, kernel_size=3, **options):
    torch.manual_seed(0)
    phase_1 = trained(ConvolutionPhase(**SMALL, kernel_size=kernel_size)).to(dtype)
    phase_2 = AttentionPhase(**SMALL, **options).to(dtype)
    transfer(phase_1, phase_2)
    return phase_1, phase_2


@pytest.mark.parametrize("phase", [ConvolutionPhase, AttentionPhase])
def test_linear_layers_start_as_deits_and_queries_and_keys_as_asked(phase):
    torch.manual_seed(0)
    model = phase(num_classes=100, image_size=(24, 8), patch_size=8, depth=1)
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            assert module.weight.std().item() == pytest.approx(0.02, rel=0.03), name
            assert module.bias is None or not module.bias.any(), name
    if phase is AttentionPhase:
        sharper = phase(num_classes=100, image_size=(24, 8), patch_size=8, depth=1, query_key_std=0.1)
        assert sharper.blocks[0].attn.qk.weight.std().item() == pytest.approx(0.1, rel=0.03)


def transcribed_attention(x, layer):
    """Eqs. 2 to 4 one query at a time, with the null key where the layer has one; x is (N, D)."""
    (rows, columns), (n, d) = layer.grid, x.shape
    w_q, w_k = layer.qk.weight.chunk(2)
    output = torch.zeros_like(x)
    for h, i in itertools.product(range(layer.num_heads), range(n)):
        part = slice(h * d, (h + 1) * d)
        q, k, v = w_q[part] @ x[i], x @ w_k[part].T, x @ layer.v.weight[part].T
        logits, values = [], []
        for j in range(n):
            dy, dx = j // columns - i // columns, j % columns - i % columns
            logits.append(q @ k[j] / d**0.5 + layer.position_bias[h, dy + rows - 1, dx + columns - 1])
            values.append(v[j])
        if layer.borders == "null_key":
            logits.append(layer.null_bias_HN[h, i])
            values.append(torch.zeros_like(v[0]))
        mixed = torch.stack(logits).softmax(0) @ torch.stack(values)
        output[i] += layer.proj.weight[:, part] @ mixed
    return output


@pytest.mark.parametrize("borders", ["null_key", "literal"])
@pytest.mark.parametrize("grid", [(2, 3), (3, 1)])
def test_attention_equals_the_paper_step_by_step_on_any_grid(borders, grid):
    torch.manual_seed(0)
    layer = RelativeBiasAttention(grid, 1, 4, bias_strength=2.0, borders=borders).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    layer.null_bias_HN.normal_()
    x = torch.randn(2, grid[0] * grid[1], 3, dtype=torch.float64) + 0.5
    expected = torch.stack([transcribed_attention(image, layer) for image in x])
    torch.testing.assert_close(layer(x), expected, rtol=1e-10, atol=1e-10)


def test_phase_1_mixes_patches_by_the_convolution_of_eq_1():
    torch.manual_seed(0)
    layer = PatchConvolution((2, 3), patch_size=2, kernel_size=3).double()
    image = torch.randn(4, 6, 3, dtype=torch.float64)  # row, column, channel
    expected = torch.zeros_like(image)
    for i, j, a, b in itertools.product(range(4), range(6), (-1, 0, 1), (-1, 0, 1)):
        if 0 <= i + a < 4 and 0 <= j + b < 6:
            expected[i, j] += layer.conv.weight[:, :, a + 1, b + 1] @ image[i + a, j + b]

    def patches(pixels):
        corners = itertools.product((0, 2), (0, 2, 4))
        return torch.stack([pixels[r : r + 2, c : c + 2].reshape(-1) for r, c in corners])

    torch.testing.assert_close(layer(patches(image)[None])[0], patches(expected), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel_size", [3, 5])
@pytest.mark.parametrize(
    ("dtype", "strength", "tolerance"),
    [(torch.float64, 40, 1e-10), (torch.float32, 40, 1e-4), (torch.float32, 20, 1e-4)],
)
def test_after_the_transfer_phase_2_computes_phase_1_borders_included(kernel_size, dtype, strength, tolerance):
    phase_1, phase_2 = both_phases(dtype, kernel_size, bias_strength=strength)
    images = torch.randn(3, 3, 12, 8, dtype=dtype)
    expected = phase_1(images)
    assert (phase_2(images) - expected).norm() < tolerance * expected.norm()
    hidden = torch.randn(2, 6, 48, dtype=dtype)
    mixed = phase_1.blocks[0].attn(hidden)
    assert (phase_2.blocks[0].attn(hidden) - mixed).norm() < tolerance * mixed.norm()


def test_the_transfer_fits_another_image_size():
    phase_1, _ = both_phases()
    large_1 = ConvolutionPhase(**{**SMALL, "image_size": 20}).double()
    large_1.load_state_dict(phase_1.state_dict())
    large_2 = AttentionPhase(**{**SMALL, "image_size": 20}).double()
    transfer(phase_1, large_2)
    images = torch.randn(2, 3, 20, 20, dtype=torch.float64)
    torch.testing.assert_close(large_2(images), large_1(images), rtol=1e-10, atol=1e-10)


def test_unknown_borders_are_refused():
    with pytest.raises(ValueError, match=r"unknown borders 'zero'.*Valid: literal, null_key"):
        AttentionPhase(**SMALL, borders="zero")


def test_the_papers_literal_borders_keep_the_interior_only():
    torch.manual_seed(0)
    convolution = PatchConvolution((4, 5), 4, 3).double()
    attention = RelativeBiasAttention((4, 5), 4, 9, bias_strength=40.0, borders="literal").double()
    attention.init_as_convolution(convolution.conv.weight)
    x = torch.randn(2, 20, 48, dtype=torch.float64)
    wrong = (attention(x) - convolution(x)).abs().amax((0, 2)).unflatten(0, (4, 5)) > 1e-10
    border = torch.ones(4, 5, dtype=torch.bool)
    border[1:-1, 1:-1] = False
    assert torch.equal(wrong, border)


def test_a_small_m_costs_at_most_its_documented_error():
    _, phase_2 = both_phases(bias_strength=8.0)
    layer = phase_2.blocks[0].attn
    x = F.layer_norm(torch.randn(2, 6, 48, dtype=torch.float64), (48,))
    q, k, _ = layer.split(x)
    largest = (q @ k.mT / 48**0.5).abs().max()
    places, offsets = theorems.positions((3, 2)), theorems.head_offsets(3, 4)
    sharp = (places[None] - places[:, None] == offsets[:, None, None]).all(-1).double()  # (head, query, key)
    error = (layer.attention_map(x) - sharp).abs().max()
    assert 1e-5 < error <= 6 * (2 * largest - 8).exp()


def test_the_attention_map_is_what_forward_applies_and_loses_to_the_null_key_what_is_outside():
    _, phase_2 = both_phases()
    layer = phase_2.blocks[0].attn
    x = torch.randn(2, 6, 48, dtype=torch.float64)
    map_BHNN = layer.attention_map(x)
    assert map_BHNN.shape == (2, 9, 6, 6)
    values = map_BHNN @ (x @ layer.v.weight.T).unflatten(-1, (9, 48)).transpose(1, 2)
    torch.testing.assert_close(layer(x), layer.proj(values.transpose(1, 2).flatten(2)), rtol=1e-10, atol=1e-10)
    outside = theorems.targets_outside((3, 2), theorems.head_offsets(3, 4))
    torch.testing.assert_close(map_BHNN.sum(-1), (~outside).double().expand(2, -1, -1), rtol=1e-10, atol=1e-10)


def test_without_a_transfer_there_is_no_null_key():
    torch.manual_seed(0)
    with_key = AttentionPhase(**SMALL).double()
    literal = AttentionPhase(**SMALL, borders="literal").double()
    literal.load_state_dict(with_key.state_dict())
    images = torch.randn(2, 3, 12, 8, dtype=torch.float64)
    torch.testing.assert_close(with_key(images), literal(images), rtol=1e-12, atol=1e-12)


def attention_gradient(**options):
    """Largest gradient of W_Q and W_K and of b after a training step's backward pass, over the layers."""
    _, model = both_phases(**options)
    F.cross_entropy(model(torch.randn(5, 3, 12, 8, dtype=torch.float64)), torch.arange(5)).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    layers = [block.attn for block in model.blocks]
    assert all(p.grad.abs().max() > 1e-8 for layer in layers for p in (layer.v.weight, layer.proj.weight))
    queries_keys = [half.abs().max() for layer in layers for half in layer.qk.weight.grad.chunk(2)]
    return min(queries_keys), min(layer.position_bias.grad.abs().max() for layer in layers)


def test_at_moderate_m_every_parameter_of_phase_2_learns():
    assert min(attention_gradient(bias_strength=8.0)) > 1e-7


def test_the_papers_m_freezes_attention_except_at_literal_borders():
    assert max(attention_gradient(bias_strength=40.0)) < 1e-12
    assert min(attention_gradient(bias_strength=40.0, borders="literal")) > 1e-7


def test_zero_queries_and_keys_as_in_the_paper_have_no_gradient_for_ever():
    queries_keys, bias = attention_gradient(bias_strength=8.0, query_key_std=0.0)
    assert queries_keys == 0
    assert bias > 1e-7


def test_phase_2_can_start_as_a_fresh_convolution():
    torch.manual_seed(0)
    layer = AttentionPhase(**SMALL, initialization="convolution").double().blocks[0].attn
    projection = layer.proj.weight.T.reshape(9, 4, 4, 3, 4, 4, 3)  # head, source pixel and channel, target's
    convolution = PatchConvolution((3, 2), 4, 3).double()
    with torch.no_grad():  # head 4 stays in its patch, where pixel (1, 1) sees all of the kernel
        convolution.conv.weight.copy_(projection[4, :3, :3, :, 1, 1].permute(3, 2, 0, 1))
    x = torch.randn(1, 6, 48, dtype=torch.float64)
    torch.testing.assert_close(layer(x), convolution(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [
        ("cmhsa_conv", {"kernel_size": 3}, 28_431_946),
        ("cmhsa_conv", {"kernel_size": 5}, 28_432_810),
        ("cmhsa", {}, 155_872_810),
    ],
)
def test_parameter_counts_are_the_known_ones_at_100_classes(name, options, count):
    with torch.device("meta"):
        model = cmhsa.MODELS[name](num_classes=100, image_size=224, **options)
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (ConvolutionPhase, {"kernel_size": 4}, "kernel_size is 4, expected an odd number"),
        (ConvolutionPhase, {"patch_size": 5}, "patch_size 5 does not divide image_size 12"),
        (AttentionPhase, {"borders": "nul_key"}, "unknown borders 'nul_key'. Did you mean 'null_key'"),
        (AttentionPhase, {"initialization": "conv"}, "unknown initialization 'conv'. Did you mean 'convolution'"),
        (AttentionPhase, {"initialization": "convolution", "num_heads": 4}, "num_heads is 4; kernel_size 3 takes 9"),
    ],
)
def test_what_does_not_fit_is_refused(build, options, message):
    with pytest.raises(ValueError, match=message):
        build(**{**SMALL, **options})


def test_images_of_another_size_are_refused_even_with_as_many_patches():
    with pytest.raises(ValueError, match=r"images are \(8, 12\), expected \(12, 8\)"):
        AttentionPhase(**SMALL)(torch.zeros(1, 3, 8, 12))


def test_a_transfer_between_phases_that_do_not_fit_is_refused_and_changes_nothing():
    phase_1 = ConvolutionPhase(**SMALL, kernel_size=11)
    phase_2 = AttentionPhase(**SMALL)
    before = copy.deepcopy(phase_2.state_dict())
    with pytest.raises(ValueError, match="num_heads is 9; kernel_size 11 takes 25"):
        transfer(phase_1, phase_2)
    with pytest.raises(ValueError, match=r"the phases differ in \['head.bias', 'head.weight'\]; give both"):
        transfer(ConvolutionPhase(**{**SMALL, "num_classes": 6}), phase_2)
    with pytest.raises(ValueError, match=r"the phases differ in .*blocks.2.mlp.*same num_classes, patch_size, depth"):
        transfer(ConvolutionPhase(**{**SMALL, "depth": 3}), phase_2)
    assert all(torch.equal(value, before[name]) for name, value in phase_2.state_dict().items())
