"""Every attention layer in single and half precision against itself in double, away from its initialization."""

import copy

import pytest
import torch
from timm.layers import Attention as TimmAttention

from suite.models.cmhsa import RelativeBiasAttention
from suite.models.convit.gpsa import GatedPositionalSelfAttention, PositionalSelfAttention
from suite.models.convit.probes import attention_layers, attention_map, probe
from suite.models.cordonnier.network import ENCODINGS
from suite.models.layers import content_logits
from suite.models.registry import build_model

GRID = (5, 7)
# (builds the layer, its width, all that its forward takes beside tokens)
LAYERS = {
    "DeiT and ViT": (lambda: TimmAttention(36, 9, qkv_bias=True), 36, ()),
    "PSA": (lambda: PositionalSelfAttention(36, 9), 36, (GRID,)),
    "PSA, sharp, between patches": (lambda: PositionalSelfAttention(64, 16), 64, (GRID,)),
    "GPSA": (lambda: GatedPositionalSelfAttention(36, 9), 36, (GRID,)),
    "GPSA, gates nearly shut": (lambda: GatedPositionalSelfAttention(36, 9), 36, (GRID,)),
    "GPSA, gates nearly open": (lambda: GatedPositionalSelfAttention(36, 9), 36, (GRID,)),
    "CMHSA": (lambda: RelativeBiasAttention(GRID, 2, 9, 10.0, "null_key"), 12, ()),
    "CMHSA, literal": (lambda: RelativeBiasAttention(GRID, 2, 9, 10.0, "literal"), 12, ()),
} | {name: (lambda layer=layer: layer(20, 4, GRID, 0.0), 20, ()) for name, layer in ENCODINGS.items()}
VANISHING = {"pos_proj.bias", "key.bias"}  # a softmax does not see them: their exact gradient is zero


def trained_layer(name):
    """The layer, with each parameter away from where it starts."""
    torch.manual_seed(0)
    layer = LAYERS[name][0]()
    if isinstance(layer, PositionalSelfAttention):
        layer.init_as_convolution(10.0 if "sharp" in name else 1.0)
    if isinstance(layer, RelativeBiasAttention):
        layer.init_as_convolution(torch.randn(3, 3, 3, 3))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        if "gates" in name:
            layer.gating_param.add_(-7.0 if "shut" in name else 5.0)
    return layer


def outcome(layer, name, x, weights, dtype=torch.float32):
    """Outputs and all gradients, under autocast where ``dtype`` is a half precision."""
    layer, x = copy.deepcopy(layer).to(x.dtype), x.clone().requires_grad_()
    with torch.autocast("cpu", dtype, enabled=dtype.itemsize == 2 and x.dtype == torch.float32):
        mixed = layer(x, *LAYERS[name][2])
    (mixed.to(weights.dtype) * weights).sum().backward()
    gradients = {key: p.grad for key, p in layer.named_parameters() if p.requires_grad and key not in VANISHING}
    return {"outputs": mixed.detach(), "x": x.grad} | gradients


@pytest.mark.parametrize("way", ["fp32", "bf16 autocast", "fp16 autocast", "bf16", "fp16"])
@pytest.mark.parametrize("name", LAYERS)
def test_every_attention_is_as_exact_as_its_precision_forward_and_backward(name, way):
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[way.split()[0]]
    layer = trained_layer(name)
    x, weights = torch.randn(2, 3, 35, LAYERS[name][1])
    if way in ("bf16", "fp16"):  # weights, too
        layer, x = layer.to(dtype), x.to(dtype)
    exact = outcome(layer, name, x.double(), weights.double())
    found = outcome(layer, name, x, weights, dtype)
    steps = {
        key: float((found[key].double() - value).norm() / value.norm()) / torch.finfo(dtype).eps
        for key, value in exact.items()
    }
    assert max(steps.values()) < (100 if way == "fp32" else 4), steps


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("convit_micro", {}),
        ("convit_micro", {"attention": "summed"}),
        ("deit_micro", {}),
        ("cmhsa_micro", {"depth": 1}),
        ("sa_learned_content", {"depth": 1, "dim": 32, "patch_size": 4}),
    ],
)
def test_maps_under_autocast_are_those_of_double_precision(name, options, dtype):
    torch.manual_seed(0)
    model = build_model(name, num_classes=10, image_size=32, **options).eval()
    images = torch.randn(2, 3, 32, 32)
    exact = probe(copy.deepcopy(model).double(), images.double(), torch.clone)
    with torch.autocast("cpu", dtype):
        found = probe(model, images, torch.clone)
    assert found.keys() == exact.keys() == attention_layers(model).keys()
    for layer, map_BHNN in found.items():
        torch.testing.assert_close(map_BHNN.double(), exact[layer], rtol=0, atol=5 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["DeiT and ViT", "PSA", "GPSA"])
def test_a_map_is_what_forward_applies_to_the_values(name):
    layer, x = trained_layer(name).double(), torch.randn(2, 35, 36, dtype=torch.float64)
    map_BHNN = attention_map(layer, x, *LAYERS[name][2])
    values_BND = layer.qkv(x).chunk(3, -1)[2] if isinstance(layer, TimmAttention) else layer.v(x)
    values_BHNE = values_BND.unflatten(-1, (9, 4)).transpose(1, 2)
    mixed = layer.proj((map_BHNN @ values_BHNE).transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x, *LAYERS[name][2]), mixed, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(map_BHNN.sum(-1), torch.ones(2, 9, 35, dtype=torch.float64))


def test_scores_beyond_the_range_of_half_precision_still_make_a_map():
    q, k = 200 * torch.ones(2, 1, 1, 3, 64, dtype=torch.float16)
    k[..., 0, :] += 1
    with torch.autocast("cpu", torch.float16):
        assert content_logits(q, k).tolist() == (q.double() @ k.double().mT / 8).tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_positions_beyond_the_range_of_half_precision_leave_plain_psa_where_it_looks(dtype):
    layer = PositionalSelfAttention(8, 4)
    layer.init_as_convolution(2000.0)
    layer.pos_proj.bias.data.fill_(1e5)
    x = torch.randn(1, 64, 8, generator=torch.Generator().manual_seed(0))
    exact = copy.deepcopy(layer).double()(x.double(), (8, 8))
    with torch.autocast("cpu", dtype):
        found = layer(x, (8, 8))
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=4 * torch.finfo(dtype).eps)
