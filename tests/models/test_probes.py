"""Probes against slow definitions, on our models and timm's."""

import pytest
import timm
import torch

from suite.base.errors import SpecError
from suite.models.convit.probes import attention_centers, gating_values, nonlocality, probe
from suite.models.registry import build_model

IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def convit(**overrides):
    torch.manual_seed(0)
    return build_model("convit_micro", num_classes=10, image_size=32, **overrides)


def timm_vit():
    torch.manual_seed(0)
    options = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3, "num_classes": 10}
    return timm.models.VisionTransformer(**options)


@pytest.mark.parametrize("model", [convit(), convit(attention="summed"), timm_vit()], ids=["gpsa", "psa", "timm"])
def test_a_map_applied_to_the_values_gives_the_layers_output(model):
    maps = probe(model, IMAGES, torch.clone)
    recorded = {}
    layers = {name: model.get_submodule(name) for name in maps}
    for name, layer in layers.items():
        layer.register_forward_hook(lambda _, inputs, output, name=name: recorded.update({name: (inputs, output)}))
    model.eval()(IMAGES)
    for name, layer in layers.items():
        (x, *_), output = recorded[name]
        batch, tokens, dim = x.shape
        heads = layer.num_heads
        v = layer.v(x) if hasattr(layer, "v") else layer.qkv(x)[..., 2 * dim :]
        v = v.reshape(batch, tokens, heads, -1).transpose(1, 2)
        torch.testing.assert_close(layer.proj((maps[name] @ v).transpose(1, 2).flatten(2)), output)
        torch.testing.assert_close(maps[name].sum(-1), torch.ones(batch, heads, tokens))


@pytest.mark.parametrize("model", [convit(), timm_vit()], ids=["convit", "timm"])
def test_nonlocality_is_the_mean_distance_of_equation_8(model):
    maps, measured = probe(model, IMAGES, torch.clone), nonlocality(model, IMAGES)
    for name, map_BHNN in maps.items():
        first = map_BHNN.shape[-1] - 16  # 1 with a class token
        for h in range(map_BHNN.shape[1]):
            total = 0.0
            for i in range(16):
                for j in range(16):
                    distance = ((i // 4 - j // 4) ** 2 + (i % 4 - j % 4) ** 2) ** 0.5
                    total += map_BHNN[:, h, first + i, first + j].mean().item() * distance
            assert measured[name][h].item() == pytest.approx(total / 16, rel=1e-4)


def test_centers_of_a_strongly_local_convolution_are_its_kernel_offsets():
    model = build_model("convit_micro", num_classes=10, image_size=256, locality_strength=20.0)
    for block in model.blocks[:2]:
        block.attn.gating_param.data.fill_(50.0)
    images = torch.randn(1, 3, 256, 256)
    centers = probe(model, images, lambda map_BHNN: attention_centers(map_BHNN, model.grid))["blocks.0.attn"]
    offsets = torch.tensor([(h % 3 - 1, h // 3 - 1) for h in range(9)], dtype=torch.float)
    torch.testing.assert_close(centers, offsets, atol=0.04, rtol=0)  # the border draws each inward by 1/32


def test_gating_values_start_at_sigmoid_of_one():
    values = gating_values(convit())
    assert set(values) == {"blocks.0.attn", "blocks.1.attn"}
    assert values["blocks.0.attn"].tolist() == pytest.approx([0.7311] * 9, abs=1e-4)
    assert gating_values(timm_vit()) == {}


def test_a_probe_leaves_the_model_as_it_was():
    model = convit().train()
    nonlocality(model, IMAGES)
    assert model.training
    assert not any(m._forward_pre_hooks for m in model.modules())


def test_a_model_without_attention_is_refused():
    with pytest.raises(SpecError, match="no attention layer"):
        nonlocality(torch.nn.Sequential(torch.nn.Flatten()), IMAGES)
