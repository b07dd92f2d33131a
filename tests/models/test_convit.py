"""ConViT against timm's implementation, a step-by-step transcription of the paper, and published counts."""

import pytest
import timm
import torch

from suite.models.convit.gpsa import GatedPositionalSelfAttention
from suite.models.registry import build_model


def transcribed_gpsa(x, qk, v, out, bias, w_pos, b_pos, gate, rows, columns):
    """Eqs. 6 and 7 one entry at a time; x is (N, D), patches in row-major order."""
    n, dim = x.shape
    heads = len(gate)
    width = dim // heads
    mixed = torch.zeros(n, dim, dtype=x.dtype)
    for h in range(heads):
        part = slice(h * width, (h + 1) * width)
        q, k, values = x @ qk[:dim][part].T, x @ qk[dim:][part].T, x @ v[part].T
        for i in range(n):
            content = torch.stack([q[i] @ k[j] / width**0.5 for j in range(n)]).softmax(0)
            position = []
            for j in range(n):
                dy, dx = j // columns - i // columns, j % columns - i % columns
                position.append(w_pos[h, 0] * dx + w_pos[h, 1] * dy + w_pos[h, 2] * (dx**2 + dy**2) + b_pos[h])
            s = gate[h].sigmoid()
            attention = (1 - s) * content + s * torch.stack(position).softmax(0)
            mixed[i, part] = (attention / attention.sum()) @ values
    return mixed @ out.T + bias


@pytest.mark.parametrize(("rows", "columns", "heads"), [(3, 3, 4), (2, 5, 9), (4, 3, 1)])
def test_gpsa_equals_the_paper_step_by_step_on_any_grid(rows, columns, heads):
    torch.manual_seed(0)
    dim = 4 * heads
    layer = GatedPositionalSelfAttention(dim, heads).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    x = torch.randn(2, rows * columns, dim, dtype=torch.float64) + 0.5
    parts = (layer.qk.weight, layer.v.weight, layer.proj.weight, layer.proj.bias)
    parts += (layer.pos_proj.weight, layer.pos_proj.bias, layer.gating_param)
    expected = torch.stack([transcribed_gpsa(image, *parts, rows, columns) for image in x])  # type: ignore[call-arg]
    torch.testing.assert_close(layer(x, (rows, columns)), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("gate", [-8.0, -6.5, -5.0, -3.0, 0.0, 1.0, 3.0, 5.0, 6.5, 8.0])
def test_gradients_in_bf16_are_within_a_percent_of_those_in_fp32_at_any_gate(gate):
    torch.manual_seed(0)
    layer = GatedPositionalSelfAttention(432, 9)
    layer.init_as_convolution()
    for weight in (layer.qk.weight, layer.v.weight):
        torch.nn.init.normal_(weight, std=0.05)
    torch.nn.init.constant_(layer.gating_param, gate)
    x, weights = torch.randn(2, 2, 196, 432)

    def gradients(precision):
        layer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            mixed = layer(x, (14, 14))
        (mixed.float() * weights).sum().backward()
        names = ("qk.weight", "v.weight", "gating_param", "pos_proj.weight")
        return {name: layer.get_parameter(name).grad for name in names}

    exact, rounded = gradients("fp32"), gradients("bf16")
    errors = {name: float((rounded[name] - exact[name]).norm() / exact[name].norm()) for name in exact}
    assert max(errors.values()) < 0.01, errors


@pytest.mark.parametrize(("ours", "theirs"), [("convit_ti", "convit_tiny"), ("convit_s", "convit_small")])
def test_published_weights_load_and_give_timms_logits(ours, theirs):
    torch.manual_seed(0)
    reference, model = timm.create_model(theirs).eval(), build_model(ours).eval()
    with torch.no_grad():
        for parameter in reference.parameters():  # away from the initialization, where much is symmetric
            parameter.add_(0.02 * torch.randn_like(parameter))
        model.load_state_dict(reference.state_dict(), strict=True)
        images = torch.randn(2, 3, 224, 224) + 0.3
        torch.testing.assert_close(model(images), reference(images), rtol=1e-4, atol=1e-4)


def test_convit_base_has_the_keys_and_shapes_of_timms():
    with torch.device("meta"):
        ours, theirs = build_model("convit_b").state_dict(), timm.create_model("convit_base").state_dict()
    assert {key: value.shape for key, value in ours.items()} == {key: value.shape for key, value in theirs.items()}


def test_the_initialization_points_each_head_at_its_kernel_offset():
    layer = GatedPositionalSelfAttention(18, 9)
    layer.init_as_convolution(locality_strength=5.0)
    rows, columns = layer.position_softmaxes((5, 5))
    middle = 2
    offsets = [(int(rows[h, middle].argmax()) - middle, int(columns[h, middle].argmax()) - middle) for h in range(9)]
    assert offsets == [(-1, -1), (0, -1), (1, -1), (-1, 0), (0, 0), (1, 0), (-1, 1), (0, 1), (1, 1)]
    torch.testing.assert_close(layer.v.weight, torch.eye(18))
    assert layer.gating_param.sigmoid().tolist() == pytest.approx([0.7311] * 9, abs=1e-4)


def test_an_even_kernel_shares_a_head_among_four_patches():
    layer = GatedPositionalSelfAttention(16, 4)
    layer.init_as_convolution(locality_strength=50.0)
    rows, columns = layer.position_softmaxes((6, 6))
    assert (rows[0, 3].max() * columns[0, 3].max()).item() == pytest.approx(0.25, abs=1e-5)


def test_a_head_count_that_is_no_square_cannot_be_a_convolution():
    with pytest.raises(ValueError, match="square number of heads, found 6"):
        build_model("convit_s", num_heads=6)
