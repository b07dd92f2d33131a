"""The small ViT against a transcription one token at a time, timm's implementation, and published counts."""

import math
from typing import get_args

import pytest
import torch
from timm.layers import build_sincos2d_pos_embed
from timm.models.vision_transformer import VisionTransformer

from suite.models.convit.probes import attention_map
from suite.models.structured_init.impulse import sinusoidal_encoding
from suite.models.structured_init.vit import MODELS, Initialization, ViT


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUITE_CACHE_DIR", str(tmp_path))


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def small(**options):
    return ViT(**{"num_classes": 3, "image_size": (4, 6), "dim": 8, "num_heads": 2, "depth": 2, **options})


def layer_norm(x, norm):
    return (x - x.mean()) / (x.var(unbiased=False) + 1e-6).sqrt() * norm.weight + norm.bias


def transcribed_attention(x, layer, heads):
    """Scaled dot-product attention of tokens (N, D), one head and one query at a time."""
    n, dim = x.shape
    width = dim // heads
    q, k, v = (x @ w.T + b for w, b in zip(layer.qkv.weight.chunk(3), layer.qkv.bias.chunk(3), strict=True))
    mixed = torch.zeros_like(x)
    for h in range(heads):
        part = slice(h * width, (h + 1) * width)
        for i in range(n):
            logits = torch.stack([q[i, part] @ k[j, part] / math.sqrt(width) for j in range(n)])
            mixed[i, part] = sum(a * v[j, part] for j, a in enumerate(logits.exp() / logits.exp().sum()))
    return mixed @ layer.proj.weight.T + layer.proj.bias


def transcribed_vit(image, model, heads, patch=2):
    """Eqs. 1 to 4 of arXiv:2010.11929 on one image, token by token."""
    kernel, bias = model.patch_embed.proj.weight, model.patch_embed.proj.bias
    tokens = []
    for r in range(0, image.shape[1], patch):
        for c in range(0, image.shape[2], patch):
            tokens.append((kernel * image[:, r : r + patch, c : c + patch]).sum((1, 2, 3)) + bias)
    x = torch.stack(tokens) + model.pos_embed[0]
    if model.cls_token is not None:
        x = torch.cat([model.cls_token[0], x])
    for block in model.blocks:
        x = x + transcribed_attention(torch.stack([layer_norm(t, block.norm1) for t in x]), block.attn, heads)
        for i in range(len(x)):
            hidden = block.mlp.fc1.weight @ layer_norm(x[i], block.norm2) + block.mlp.fc1.bias
            hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
            x[i] = x[i] + block.mlp.fc2.weight @ hidden + block.mlp.fc2.bias
    pooled = x.mean(0) if model.cls_token is None else x[0]
    return model.head.weight @ layer_norm(pooled, model.norm) + model.head.bias


@pytest.mark.parametrize(
    ("name", "classes", "options", "expected"),
    [
        ("vit_t", 10, {}, 5_343_178),
        ("vit_t", 100, {}, 5_360_548),
        ("vit_t", 10, {"position": "learned"}, 5_392_330),
        ("vit_t", 10, {"pooling": "class_token"}, 5_343_178 + 192),
        ("vit_t", 10, {"initialization": "impulse_3", "num_heads": 8}, 5_343_178),
        ("vit_s", 10, {}, 21_303_178),
        ("vit_s", 100, {}, 21_337_828),
        ("vit_t", 10, {"depth": 8, "dim": 64, "num_heads": 32}, 401_482),
        ("vit_t", 10, {"depth": 8, "dim": 128, "num_heads": 4}, 1_589_386),
        ("vit_t", 10, {"depth": 8, "dim": 256, "num_heads": 16}, 6_324_490),
        ("vit_t", 10, {"depth": 8, "dim": 512, "num_heads": 8}, 25_231_882),
        ("vit_t", 100, {"depth": 8, "dim": 64, "num_heads": 4}, 407_332),
        ("vit_t", 100, {"depth": 8, "dim": 128, "num_heads": 4}, 1_600_996),
        ("vit_t", 100, {"depth": 8, "dim": 256, "num_heads": 4}, 6_347_620),
        ("vit_t", 100, {"depth": 8, "dim": 512, "num_heads": 4}, 25_278_052),
    ],
)
def test_a_model_has_its_published_number_of_parameters(name, classes, options, expected):
    with torch.device("meta"):
        assert count(MODELS[name](num_classes=classes, image_size=32, **options)) == expected


@pytest.mark.parametrize("pooling", ["average", "class_token"])
@pytest.mark.parametrize("position", ["sinusoidal", "learned"])
def test_the_model_equals_the_equations_token_by_token_on_an_oblong_image(pooling, position):
    torch.manual_seed(0)
    model = small(pooling=pooling, position=position).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    images = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    with torch.no_grad():
        expected = torch.stack([transcribed_vit(image, model, heads=2) for image in images])
        torch.testing.assert_close(model(images), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("pooling", "timm_pooling"), [("average", "avg"), ("class_token", "token")])
def test_timms_weights_load_and_give_timms_logits(pooling, timm_pooling):
    torch.manual_seed(0)
    reference = VisionTransformer(
        img_size=8,
        patch_size=2,
        num_classes=5,
        embed_dim=16,
        depth=3,
        num_heads=4,
        global_pool=timm_pooling,
        class_token=pooling == "class_token",
        no_embed_class=True,
    ).eval()
    for parameter in reference.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model = ViT(num_classes=5, image_size=8, dim=16, num_heads=4, depth=3, pooling=pooling, position="learned").eval()
    model.load_state_dict({key.replace("fc_norm", "norm"): value for key, value in reference.state_dict().items()})
    images = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(model(images), reference(images), rtol=1e-4, atol=1e-4)


def test_the_sinusoidal_encoding_is_the_formula_entry_by_entry():
    rows, columns, dim = 3, 5, 12
    encoding = sinusoidal_encoding((rows, columns), dim)
    for n in range(rows * columns):
        place = n // columns, n % columns
        for feature in range(dim):
            quarter, i = feature // 3, feature % 3
            angle = place[quarter % 2] * 10_000 ** (-i / 3)
            expected = math.sin(angle) if quarter < 2 else math.cos(angle)
            assert encoding[n, feature].item() == pytest.approx(expected, abs=1e-12)


def test_the_sinusoidal_encoding_is_timms():
    theirs = build_sincos2d_pos_embed([16, 16], dim=192)
    torch.testing.assert_close(sinusoidal_encoding((16, 16), 192, torch.float32), theirs)


def test_the_sinusoidal_encoding_is_neither_trained_nor_saved():
    model = small()
    assert "pos_embed" not in dict(model.named_parameters())
    assert "pos_embed" not in model.state_dict()
    assert "pos_embed" in dict(small(position="learned").named_parameters())


@pytest.mark.parametrize("initialization", get_args(Initialization))
@pytest.mark.parametrize("pooling", ["average", "class_token"])
def test_every_trainable_parameter_gets_a_gradient_whatever_the_initialization(initialization, pooling):
    torch.manual_seed(0)
    model = small(initialization=initialization, pooling=pooling, position="learned", impulse_steps=3, drop_path=0.1)
    model(torch.randn(16, 3, 4, 6)).square().sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()] == []


def test_every_layer_shows_its_attention_map():
    images = torch.randn(2, 3, 4, 6)
    for block in small(pooling="class_token").blocks:
        attention = attention_map(block.attn, torch.randn(2, 7, 8))
        assert attention.shape == (2, block.attn.num_heads, 7, 7)
        torch.testing.assert_close(attention.sum(-1), torch.ones(2, 2, 7))
    assert small()(images).shape == (2, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initialization": "impulse3"}, "Did you mean 'impulse_3'"),
        ({"pooling": "mean"}, "unknown pooling 'mean'"),
        ({"position": "sinusoid"}, "Did you mean 'sinusoidal'"),
        ({"pseudo_input_first": "PE+N"}, "unknown pseudo_input_first 'PE.N'.*PE.U"),
        ({"pseudo_input_following": "N"}, "unknown pseudo_input_following"),
        ({"num_heads": 3}, r"num_heads 3 does not divide dim 8; allowed: \[1, 2, 4, 8\]"),
        ({"dim": 6}, "multiple of 4"),
        ({"patch_size": 3}, "patch_size 3 does not divide image_size 4"),
        ({"depth": 0}, "depth is 0"),
    ],
)
def test_what_cannot_be_built_is_refused_with_what_can(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)
