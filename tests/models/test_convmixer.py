"""ConvMixer against a transcription with plain layers, and its published counts."""

from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from suite.models.structured_init.convmixer import MODELS, ConvMixer, Spatial

convmixer = MODELS["convmixer"]


def count(model, trainable_only=False):
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trainable_only)


def small(**options):
    return ConvMixer(
        **{"num_classes": 3, "image_size": 8, "dim": 6, "depth": 2, "kernel_size": 3, "patch_size": 2, **options}
    )


class Residual(nn.Sequential):
    def forward(self, x):
        return super().forward(x) + x


class PaddedDepthwise(nn.Conv2d):
    """(K - 1) // 2 zeros on the left and above, K // 2 on the right and below."""

    def forward(self, x):
        low, high = (self.kernel_size[0] - 1) // 2, self.kernel_size[0] // 2
        return F.conv2d(F.pad(x, (low, high, low, high)), self.weight, self.bias, groups=self.groups)


def transcribed(dim, depth, kernel, patch, classes):
    """Fig. 3 of arXiv:2201.09792."""

    def norm():
        return nn.Sequential(nn.GELU(), nn.BatchNorm2d(dim))

    def block():
        spatial = PaddedDepthwise(dim, dim, kernel, groups=dim)
        return nn.Sequential(Residual(spatial, norm()), nn.Conv2d(dim, dim, 1), norm())

    stem = nn.Sequential(nn.Conv2d(3, dim, patch, patch), norm())
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(dim, classes))
    return nn.Sequential(stem, *(block() for _ in range(depth)), head)


@pytest.mark.parametrize("kernel", [3, 5, 8])
def test_the_model_is_the_papers_sequence_of_layers(kernel):
    torch.manual_seed(0)
    model, reference = small(kernel_size=kernel), transcribed(6, 2, kernel, 2, 3)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    for theirs, ours in zip(reference.state_dict().values(), model.state_dict().values(), strict=True):
        theirs.copy_(ours)
    images = torch.randn(4, 3, 8, 12)
    torch.testing.assert_close(model(images), reference(images), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(model.eval()(images), reference.eval()(images), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("dim", "kernel", "expected", "without_spatial"),
    [
        (256, 3, 561_418, 540_938),
        (256, 5, 594_186, 540_938),
        (256, 8, 674_058, 540_938),
        (512, 3, 2_171_402, 2_130_442),
        (512, 5, 2_236_938, 2_130_442),
        (512, 8, 2_396_682, 2_130_442),
    ],
)
def test_a_model_has_its_published_number_of_parameters(dim, kernel, expected, without_spatial):
    with torch.device("meta"):
        for spatial in get_args(Spatial):
            model = convmixer(num_classes=10, image_size=32, dim=dim, kernel_size=kernel, spatial=spatial)
            assert count(model) == expected
            assert count(model, trainable_only=True) == (expected if spatial == "trained" else without_spatial)


@pytest.mark.parametrize("kernel", [3, 8])
def test_frozen_filters_have_the_authors_amplitudes(kernel):
    torch.manual_seed(0)
    spatial = {kind: small(dim=64, kernel_size=kernel, spatial=kind).blocks[1][0].fn[0] for kind in
               ("random", "impulse", "box")}  # fmt: skip
    assert spatial["random"].weight.abs().max().item() == pytest.approx(1 / kernel, rel=0.02)
    impulse = spatial["impulse"].weight.flatten(1)
    assert (impulse != 0).sum(1).tolist() == [1] * 64
    torch.testing.assert_close(impulse.sum(1), torch.full((64,), kernel**-0.5))
    assert len(impulse.argmax(1).unique()) > kernel * kernel / 2
    torch.testing.assert_close(spatial["box"].weight, torch.full((64, 1, kernel, kernel), kernel**-1.5))
    for convolution in spatial.values():
        assert 0.8 / kernel < convolution.bias.abs().max() <= 1 / kernel


@pytest.mark.parametrize("spatial", get_args(Spatial))
def test_every_trainable_parameter_gets_a_gradient_and_frozen_filters_none(spatial):
    torch.manual_seed(0)
    model = small(spatial=spatial)
    model(torch.randn(4, 3, 8, 8)).square().sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()]
    # A bias before batch normalization would have none, but GELU stands between them.
    frozen = [f"blocks.{i}.0.fn.0.{kind}" for i in range(2) for kind in ("weight", "bias")]
    assert without == ([] if spatial == "trained" else frozen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spatial": "impuls"}, "Did you mean 'impulse'"),
        ({"patch_size": 3}, "patch_size 3 does not divide image_size 8"),
        ({"kernel_size": 0}, "kernel_size 0 must be positive"),
    ],
)
def test_what_cannot_be_built_is_refused_with_what_can(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)
