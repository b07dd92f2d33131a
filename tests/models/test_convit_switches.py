"""ConViT's ablations, masks and other grids, each against what the paper says it is."""

import pytest
import torch
import torch.nn.functional as F

from suite.base.errors import SpecError
from suite.models.convit.gpsa import GatedPositionalSelfAttention, PositionalSelfAttention
from suite.models.convit.masking import masked
from suite.models.registry import build_model


def tiny(**overrides):
    torch.manual_seed(0)
    return build_model("convit_micro", num_classes=10, image_size=32, **overrides)


def gpsa_layers(model):
    return [m for m in model.modules() if isinstance(m, PositionalSelfAttention)]


def frozen(model):
    return {name for name, p in model.named_parameters() if not p.requires_grad}


def test_vanilla_psa_sums_content_and_position_before_one_softmax():
    torch.manual_seed(1)
    rows, columns, heads, dim = 3, 4, 4, 8
    layer = PositionalSelfAttention(dim, heads).double()
    torch.nn.init.normal_(layer.pos_proj.weight)
    x = torch.randn(1, rows * columns, dim, dtype=torch.float64) + 0.5
    q, k, v = (t.reshape(-1, heads, dim // heads) for t in (*layer.qk(x[0]).chunk(2, -1), layer.v(x[0])))
    mixed = torch.zeros(rows * columns, heads, dim // heads, dtype=torch.float64)
    for h in range(heads):
        for i in range(rows * columns):
            scores = []
            for j in range(rows * columns):
                dy, dx = j // columns - i // columns, j % columns - i % columns
                position = layer.pos_proj.weight[h] @ torch.tensor([dx, dy, dx**2 + dy**2], dtype=torch.float64)
                scores.append(q[i, h] @ k[j, h] / (dim // heads) ** 0.5 + position + layer.pos_proj.bias[h])
            mixed[i, h] = torch.stack(scores).softmax(0) @ v[:, h]
    torch.testing.assert_close(layer(x, (rows, columns))[0], layer.proj(mixed.flatten(1)))


def test_summed_attention_has_no_gates_and_trains():
    model = tiny(attention="summed")
    assert not [name for name, _ in model.named_parameters() if "gating" in name]
    F.cross_entropy(model(torch.randn(2, 3, 32, 32)), torch.tensor([0, 1])).backward()
    assert all(p.grad is not None for p in model.parameters())
    with pytest.raises(SpecError, match="has no gates"):
        tiny(attention="summed", train_gates=False)


def test_without_convolutional_init_values_and_positions_start_random():
    layer = gpsa_layers(tiny(conv_init=False))[0]
    assert layer.v.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert layer.pos_proj.weight.abs().max() < 0.1
    tiny(conv_init=False, num_heads=6)  # no kernel, so the head count needs no root


def test_frozen_gates_stand_at_zero_so_that_both_halves_weigh_the_same():
    model = tiny(train_gates=False)
    assert frozen(model) == {f"blocks.{i}.attn.gating_param" for i in (0, 1)}
    assert all(layer.gating_param.sigmoid().tolist() == [0.5] * 9 for layer in gpsa_layers(model))


def test_frozen_gpsa_leaves_only_the_ffns_of_its_blocks_to_be_trained():
    model = tiny(train_gates=False, train_gpsa=False)
    trained = {n for n, p in model.named_parameters() if p.requires_grad and n.startswith(("blocks.0.", "blocks.1."))}
    assert {name.split(".")[2] for name in trained} == {"norm2", "mlp"}
    of_attention = {f"blocks.{layer}.{part}." for layer in (0, 1) for part in ("attn", "norm1")}
    assert frozen(model) == {n for n, _ in model.named_parameters() if n.startswith(tuple(of_attention))}


def test_locality_strength_scales_the_position_weights():
    weak, strong = (gpsa_layers(tiny(locality_strength=a))[0].pos_proj.weight for a in (0.5, 2.0))
    torch.testing.assert_close(strong, 4 * weak)


@pytest.mark.parametrize("num_layers", [0, 1, 3])
def test_the_number_of_gpsa_layers_is_free(num_layers):
    model = tiny(num_gpsa_layers=num_layers)
    assert len(gpsa_layers(model)) == num_layers
    assert model(torch.randn(2, 3, 32, 32)).shape == (2, 10)


def test_a_masked_half_is_the_other_half_alone():
    torch.manual_seed(0)
    layer = GatedPositionalSelfAttention(18, 9)
    layer.init_as_convolution()
    torch.nn.init.normal_(layer.qk.weight)
    x = torch.randn(2, 12, 18)
    q, k, v = layer.split(x)
    content = layer.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
    position = layer.proj(layer.mix_by_position(v, (3, 4)).transpose(1, 2).flatten(2))
    before = layer(x, (3, 4))
    with masked(torch.nn.Sequential(layer), "content", 1):
        torch.testing.assert_close(layer(x, (3, 4)), position)
    with masked(torch.nn.Sequential(layer), "position", 1):
        torch.testing.assert_close(layer(x, (3, 4)), content)
    assert torch.equal(layer(x, (3, 4)), before)


@pytest.mark.parametrize("name", ["deit_micro", "convit_micro"])
def test_a_masked_position_embedding_is_zero_and_comes_back(name):
    torch.manual_seed(0)
    model = build_model(name, num_classes=10, image_size=32).eval()
    images = torch.randn(2, 3, 32, 32)
    before = model(images)
    with masked(model, "position_embedding"):
        found = model(images)
    assert not torch.allclose(found, before)
    assert torch.equal(model(images), before)
    torch.nn.init.zeros_(model.pos_embed)
    torch.testing.assert_close(model(images), found)


def test_masks_that_do_not_fit_are_refused():
    with pytest.raises(SpecError, match="expected 1 to 2"), masked(tiny(), "content", 3):
        pass
    with pytest.raises(SpecError, match="Did you mean 'position'"), masked(tiny(), "positions", 1):
        pass
