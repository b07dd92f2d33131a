"""Each operation against timm's on Pillow images, argument by argument."""

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data import auto_augment
from torchvision.transforms import functional as torchvision_functional

from imagesets.augment import bicubic
from imagesets.augment.operations import apply_operations, group_operations
from imagesets.augment.policies import Op, Operations, color_jitter, to_argument

FILL = (124, 116, 104)
TIMM_NAMES = {
    Op.AUTO_CONTRAST: "AutoContrast",
    Op.EQUALIZE: "Equalize",
    Op.INVERT: "Invert",
    Op.ROTATE: "Rotate",
    Op.POSTERIZE: "PosterizeIncreasing",
    Op.SOLARIZE: "SolarizeIncreasing",
    Op.SOLARIZE_ADD: "SolarizeAdd",
    Op.COLOR: "ColorIncreasing",
    Op.CONTRAST: "ContrastIncreasing",
    Op.BRIGHTNESS: "BrightnessIncreasing",
    Op.SHARPNESS: "SharpnessIncreasing",
    Op.SHEAR_X: "ShearX",
    Op.SHEAR_Y: "ShearY",
    Op.TRANSLATE_X: "TranslateXRel",
    Op.TRANSLATE_Y: "TranslateYRel",
}
# levels out of 256 that a pixel may differ: bicubic ones by float32 at a rounding edge, autocontrast by torchvision's
TOLERANCE = dict.fromkeys((Op.AUTO_CONTRAST, Op.ROTATE, Op.SHEAR_X, Op.SHEAR_Y, Op.TRANSLATE_X, Op.TRANSLATE_Y), 1)


def by_timm(picture, op, argument):
    arguments = {Op.AUTO_CONTRAST: (), Op.EQUALIZE: (), Op.INVERT: ()}.get(op, (argument,))
    if op in (Op.POSTERIZE, Op.SOLARIZE, Op.SOLARIZE_ADD):
        arguments = (int(argument),)
    function = auto_augment.NAME_TO_OP[TIMM_NAMES[op]]
    return np.array(function(picture, *arguments, resample=Image.Resampling.BICUBIC, fillcolor=FILL))


def carry_out(images, operations, fill=FILL):
    color = torch.tensor(fill, dtype=torch.uint8).reshape(3, 1, 1)
    return apply_operations(images, group_operations(operations, images.shape[-1]), color)


def to_pixels(images):
    return images.permute(0, 2, 3, 1).numpy().astype(int)


@pytest.mark.parametrize("op", TIMM_NAMES)
def test_an_operation_is_timms_for_each_images_own_argument(op, images, pictures):
    magnitude, sign = np.linspace(0, 9.9, 12), np.resize([-1.0, 1.0], 12)
    argument = to_argument(np.full(12, op), magnitude, sign, increasing=True)
    ours = to_pixels(carry_out(images, Operations(np.full((12, 1), op), argument[:, None])))
    timms = np.stack([by_timm(picture, op, a) for picture, a in zip(pictures, argument, strict=True)])
    assert np.abs(ours - timms).max() <= TOLERANCE.get(op, 0)
    assert (ours != timms).mean() < 0.02


def test_neighbours_taken_at_once_as_on_a_gpu_are_those_taken_one_by_one(images, monkeypatch):
    op = np.resize([[Op.ROTATE], [Op.SHEAR_X], [Op.TRANSLATE_Y]], (12, 1))
    operations = Operations(op, to_argument(op, np.full((12, 1), 7.0), np.ones((12, 1)), increasing=True))
    one_by_one = carry_out(images, operations)
    gathered = []
    monkeypatch.setattr(torch.Tensor, "gather", lambda *args, g=torch.Tensor.gather: gathered.append(1) or g(*args))
    monkeypatch.delitem(bicubic._NEIGHBOURS_AT_ONCE, "cpu")
    assert torch.equal(carry_out(images, operations), one_by_one)
    assert len(gathered) == 3


def test_images_of_one_colour_survive_every_operation():
    flat = torch.full((15, 3, 8, 8), 200, dtype=torch.uint8)
    every = np.arange(15)[:, None]
    argument = to_argument(every, np.full((15, 1), 5.0), np.ones((15, 1)), increasing=True)
    changed = to_pixels(carry_out(flat, Operations(every, argument), (200, 200, 200)))
    for op, pixels in zip(TIMM_NAMES, changed, strict=True):
        expected = by_timm(Image.new("RGB", (8, 8), (200, 200, 200)), op, argument[op, 0])
        assert np.array_equal(pixels, np.where(expected == FILL, 200, expected)), op


def test_layers_follow_each_other_and_images_without_an_operation_stay(images):
    op = np.full((12, 2), Op.NONE)
    op[:6, 0], op[3:9, 1] = Op.INVERT, Op.SOLARIZE
    argument = np.full((12, 2), 100.0)
    changed = carry_out(images, Operations(op, argument))
    inverted = 255 - images
    assert torch.equal(changed[:3], inverted[:3])
    assert torch.equal(changed[3:6], torch.where(inverted < 100, inverted, images)[3:6])
    assert torch.equal(changed[6:9], torch.where(images < 100, images, inverted)[6:9])
    assert torch.equal(changed[9:], images[9:])


def test_no_bits_kept_is_black(images):
    posterized = carry_out(images, Operations(np.full((12, 1), Op.POSTERIZE), np.zeros((12, 1))))
    assert not posterized.any()


def test_colour_jitter_is_torchvisions_for_the_drawn_factors_and_order(images, pictures, make_samples):
    functions = {
        Op.BRIGHTNESS: torchvision_functional.adjust_brightness,
        Op.CONTRAST: torchvision_functional.adjust_contrast,
        Op.COLOR: torchvision_functional.adjust_saturation,
    }
    drawn = color_jitter(0, make_samples(12), 0.4)
    ours = to_pixels(carry_out(images, drawn))
    for picture, ops, factors, pixels in zip(pictures, *drawn, ours, strict=True):
        for op, factor in zip(ops, factors, strict=True):
            picture = functions[op](picture, factor)
        assert np.array_equal(np.array(picture), pixels)
