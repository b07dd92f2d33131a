"""The colours of models, seen by eyes without one kind of cone (Machado et al. 2009, full severity)."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from leaderboards.figures.parts.style import COLORS, MODEL_COLORS, marks, shades

BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def seen(color, kind):
    """The colour in CIE L*a*b* as such an eye sees it."""
    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)])
    linear = np.clip(np.array(BLIND[kind]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", BLIND)
def test_models_and_their_shades_differ_for_the_colour_blind(kind):
    series = {name: [seen(shade, kind) for shade in shades(color, 5)] for name, color in MODEL_COLORS.items()}
    for one, other in itertools.product(series["deit"], series["convit"]):
        assert np.linalg.norm(one - other) > 20
    for of_model in series.values():
        for one, other in itertools.pairwise(of_model):
            assert np.linalg.norm(one - other) > 5
    for one, other in itertools.combinations([seen(color, kind) for color in COLORS], 2):
        assert np.linalg.norm(one - other) > 10


def test_a_model_has_its_colour_wherever_it_stands_and_no_two_of_few_series_share_one():
    labels = ["ResNet", "DeiT-S", "other", "ConViT-S"]
    found = marks(labels)
    assert found["DeiT-S"][0] == MODEL_COLORS["deit"]
    assert found["ConViT-S"][0] == MODEL_COLORS["convit"]
    assert len({color for color, _ in found.values()}) == 4
