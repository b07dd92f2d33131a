"""Every model by name: published parameter counts, gradients everywhere, clear refusals."""

import pytest
import timm
import torch
import torch.nn.functional as F

from suite.models.build import build_model, list_models
from suite.models.flops import count_flops

PARAMETERS = {  # at 1000 classes
    "convit_ti": 5_710_512,
    "convit_s": 27_777_322,
    "convit_b": 86_540_040,
    "convit_ti_plus": 9_972_912,
    "convit_s_plus": 48_979_882,
    "convit_b_plus": 153_134_856,
    "deit_ti": 5_717_416,
    "deit_s": 22_050_664,
    "deit_b": 86_567_656,
    "deit_ti_plus": 9_982_184,
    "deit_s_plus": 49_000_744,
    "deit_b_plus": 153_171_944,
}
PARAMETERS_100 = {
    "convit_ti": 5_536_812,
    "convit_s_plus": 48_460_582,
    "convit_b_plus": 152_212_356,
    "deit_s": 21_704_164,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_counts_are_the_published_ones(name):
    with torch.device("meta"):
        assert sum(p.numel() for p in build_model(name).parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", PARAMETERS_100)
def test_parameter_counts_at_100_classes_are_the_published_ones(name):
    with torch.device("meta"):
        assert sum(p.numel() for p in build_model(name, num_classes=100).parameters()) == PARAMETERS_100[name]


@pytest.mark.parametrize("name", ["deit_micro", "convit_micro", "deit_ti", "convit_ti"])
def test_every_parameter_gets_a_gradient(name):
    torch.manual_seed(0)
    model = build_model(name, num_classes=10, image_size=32, patch_size=8)
    F.cross_entropy(model(torch.randn(4, 3, 32, 32)), torch.arange(4)).backward()
    missing = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert missing == []


def test_deit_small_gives_the_logits_of_timms_own():
    torch.manual_seed(0)
    reference, model = timm.create_model("deit_small_patch16_224").eval(), build_model("deit_s").eval()
    model.load_state_dict(reference.state_dict(), strict=True)
    images = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        torch.testing.assert_close(model(images), reference(images))


@pytest.mark.parametrize(
    ("name", "gmac"), [("convit_ti", 1.257), ("convit_s", 5.757), ("deit_ti", 1.258), ("deit_s", 4.608)]
)
def test_counted_flops_are_twice_the_known_multiply_adds(name, gmac):
    # 0.4 %: the known counts include the layer norms, the counter only matrix products
    assert count_flops(name, num_classes=1000, image_size=224).total / 2e9 == pytest.approx(gmac, rel=4e-3)


def test_unknown_names_are_refused_with_the_nearest_valid_one():
    with pytest.raises(ValueError, match="Did you mean 'convit_s'"):
        build_model("convit_small")
    with pytest.raises(ValueError, match=r"unknown override of model deit_s 'path_size'. Did you mean 'patch_size'"):
        build_model("deit_s", path_size=4)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"image_size": 30}, "patch_size 16 does not divide image_size 30"),
        ({"num_heads": 5}, "num_heads 5 does not divide dim 384"),
        ({"num_classes": 0}, "num_classes is 0"),
        ({"weight_std": 0.0}, "weight_std is 0.0, expected a number above 0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(overrides, message):
    with pytest.raises(ValueError, match=message):
        build_model("deit_s", **overrides)


def test_all_names_are_listed():
    assert {*PARAMETERS, "deit_micro", "convit_micro"} <= set(list_models())


@pytest.mark.parametrize(("name", "gmac"), {"convit_ti": 1.070, "convit_s": 5.333, "convit_b": 16.764}.items())
def test_linear_flops_leave_the_mixing_of_tokens_out(name, gmac):
    assert count_flops(name, num_classes=1000, image_size=224).linear / 2e9 == pytest.approx(gmac, rel=1e-3)


@pytest.mark.parametrize("name", ["deit_micro", "convit_micro"])
def test_only_random_linear_weights_start_with_another_deviation(name):
    torch.manual_seed(0)
    usual = build_model(name, num_classes=10, image_size=32).state_dict()
    torch.manual_seed(0)
    scaled = build_model(name, num_classes=10, image_size=32, weight_std=0.1)
    linear = {f"{path}.weight" for path, module in scaled.named_modules() if isinstance(module, torch.nn.Linear)}
    by_convolution = {key for key in linear if key.endswith((".attn.v.weight", ".attn.pos_proj.weight"))}
    for key, weight in scaled.state_dict().items():
        factor = 5 if key in linear - by_convolution else 1
        torch.testing.assert_close(weight, factor * usual[key], msg=key)
    assert scaled.get_parameter("blocks.0.mlp.fc1.weight").std().item() == pytest.approx(0.1, rel=0.03)
