"""Every model by name: published parameter counts, gradients everywhere, clear refusals."""

import pytest
import timm
import torch
import torch.nn.functional as F

from suite.models.flops import count_anew, count_flops
from suite.models.layers import Block
from suite.models.registry import build_model, count_parameters, find_builder, list_models, reference_input
from suite.plugins.find_plugin import find_model

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


def test_the_small_models_of_the_laptop_keep_their_sizes():
    sizes = {"cmhsa_conv_micro": 892_477, "cmhsa_micro": 4_874_869, "convit_micro": 118_684, "deit_micro": 119_134}
    assert sizes.keys() == {name for name in list_models() if name.endswith("_micro")}
    with torch.device("meta"):
        found = {name: count_parameters(build_model(name, num_classes=10, image_size=32)) for name in sizes}
    assert found == sizes


def test_papers_inputs_are_those_of_their_data_sets():
    papers = {"deit_s": (224, 1000), "convit_s": (224, 1000), "cmhsa": (224, 100), "cmhsa_micro": (32, 10)}
    papers |= dict.fromkeys(["sa_learned", "resnet18_cifar", "vit_t", "convmixer"], (32, 10))
    assert {name: reference_input(name) for name in papers} == papers


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


# One model of each class and encoding: the others of its family are the same in other sizes.
BUILDERS = {name: find_builder(name) for name in list_models()}
FORMS = sorted({(m.func, m.keywords.get("encoding")): name for name, m in BUILDERS.items()}.values())
OTHERWISE = [  # and ways to build one whose forward passes differ
    ("convit_ti", {"attention": "summed"}),
    ("cmhsa_micro", {"borders": "literal"}),
    ("vit_t", {"pooling": "class_token", "position": "learned"}),
]


def shrunk(name):
    """Options that make any model small but leave each of its kinds of layer."""
    sizes = {"convit": {"patch_size": 8, "depth": 2, "num_gpsa_layers": 1}, "cmhsa": {"patch_size": 8}}
    sizes |= {"deit": {"patch_size": 8}, "vit": {"patch_size": 8}}
    sizes |= {"sa": {"patch_size": 4, "dim": 16}, "convmixer": {"dim": 16}, "resnet18": {"width": 4}}
    family = name.split("_")[0]
    return ({"depth": 1} if family != "resnet18" else {}) | sizes[family]


@pytest.mark.filterwarnings("ignore")  # of constants that tracing finds
@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in FORMS), *OTHERWISE])
def test_exported_and_traced_models_take_any_number_of_images(name, options):
    torch.manual_seed(0)
    model = build_model(name, num_classes=10, image_size=32, **shrunk(name) | options).eval()
    images = torch.randn(5, 3, 32, 32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
        free = ({0: torch.export.Dim("images")},)
        exported = torch.export.export(model, (images[:3],), dynamic_shapes=free).module()
        traced = torch.jit.trace(model, images[:3], check_trace=False)
        for batch in (images[:1], images[:2], images):
            torch.testing.assert_close(exported(batch), model(batch), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(traced(batch), model(batch), rtol=1e-4, atol=1e-5)


def test_operations_of_timms_vit_on_a_cpu_have_attention_in_them():
    tokens, dim, depth = 5, 192, 12
    counted = count_anew("mine", 10, 32, {"model_source": find_model("timm:vit_tiny_patch16_224")})
    assert counted.total - counted.linear == depth * 2 * 2 * tokens**2 * dim


def test_operations_are_counted_where_a_module_is_given_a_parameter():
    counted = count_anew("mine", 10, 32, {"model_source": find_model("timm:cait_xxs24_224")})
    assert counted.total > counted.linear > 0


@pytest.mark.parametrize("name", ["convit_micro", "deit_micro", "vit_t", "cmhsa_conv_micro", "cmhsa_micro"])
def test_stochastic_depth_grows_linearly_from_the_first_block_to_the_last_on_both_branches(name):
    model = build_model(name, num_classes=10, image_size=32, depth=5, patch_size=8, drop_path=0.2)
    branches = [
        (b.drop_path, b.drop_path) if isinstance(b, Block) else (b.drop_path1, b.drop_path2) for b in model.blocks
    ]
    rates = [[getattr(path, "drop_prob", 0.0) for path in pair] for pair in branches]
    assert rates == [pytest.approx([rate, rate]) for rate in (0.0, 0.05, 0.1, 0.15, 0.2)]


def test_stochastic_depth_drops_each_branch_of_a_block_by_itself():
    class Constant(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def forward(self, x_BND):
            return torch.full_like(x_BND, self.value)

    torch.manual_seed(0)
    block = Block(4, Constant(1.0), 0.25)
    block.mlp = Constant(10.0)
    values, counts = block(torch.zeros(4000, 1, 4))[:, 0, 0].mul(0.75).round().unique(return_counts=True)
    assert values.tolist() == [0, 1, 10, 11]
    assert (counts / 4000).tolist() == pytest.approx([1 / 16, 3 / 16, 3 / 16, 9 / 16], abs=0.03)
    assert block.eval()(torch.zeros(2, 1, 4)).unique().tolist() == [11]


@pytest.mark.parametrize(("name", "std"), [("deit_ti", 0.02), ("convit_ti", 0.02), ("vit_t", 1e-6)])
def test_the_class_token_starts_with_the_deviation_of_its_papers_code(name, std):
    torch.manual_seed(0)
    options = {"deit_ti": {}, "convit_ti": {"num_gpsa_layers": 1}, "vit_t": {"pooling": "class_token"}}[name]
    model = build_model(name, num_classes=10, image_size=32, depth=2, patch_size=8, **options)
    assert model.cls_token.std().item() == pytest.approx(std, rel=0.15)
