"""RandAugment's and colour jitter's draws: timm's ranges and odds, and one sample's apart from all others."""

import numpy as np
import pytest
from timm.data import auto_augment

from imagesets.augment.policies import NUM_OPS, Op, RandAugment, color_jitter, rand_augment, to_argument
from suite.base.errors import SpecError

DEIT = RandAugment.parse("rand-m9-mstd0.5-inc1")


@pytest.mark.parametrize("text", ["rand-m9-mstd0.5-inc1", "rand-m7-n3", "rand", "rand-inc0-p0.25-mstd1-m10"])
def test_the_notation_is_read_as_timm_reads_it(text):
    ours, timms = RandAugment.parse(text), auto_augment.rand_augment_transform(text, {})
    first = timms.ops[4]
    assert ours.num_layers == timms.num_layers
    assert (ours.magnitude, ours.magnitude_std, ours.probability) == (first.magnitude, first.magnitude_std, first.prob)
    assert ours.increasing == (first.name == "PosterizeIncreasing")


@pytest.mark.parametrize("text", ["rand-m9-mmax40", "rand-m9-tweights", "augmix-m3", "rand-m9.5", "rand-m9-inc2", "m9"])
def test_a_part_that_is_not_understood_is_named(text):
    with pytest.raises(SpecError, match=r"understood of timm's notation are rand, m<int>"):
        RandAugment.parse(text)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_arguments_are_timms_at_every_magnitude(increasing, sign, monkeypatch):
    monkeypatch.setattr(auto_augment, "_randomly_negate", lambda value: sign * value)
    names = auto_augment.rand_augment_choices("", increasing)
    magnitude = np.linspace(0, 10, 101)
    for op, name in enumerate(names):
        level_to_argument = auto_augment.LEVEL_TO_ARG[name]
        timms = [level_to_argument(m, {})[0] if level_to_argument else 0 for m in magnitude]
        ours = to_argument(np.full(101, op), magnitude, np.full(101, sign), increasing)
        assert ours.tolist() == timms, name


def test_every_operation_is_drawn_equally_often_and_applied_half_of_the_time(make_samples):
    op = rand_augment(0, make_samples(30_000), DEIT).op
    assert (op == Op.NONE).mean() == pytest.approx(0.5, abs=0.01)
    frequency = np.bincount(op[op != Op.NONE], minlength=NUM_OPS) / (op != Op.NONE).sum()
    assert frequency == pytest.approx([1 / 15] * 15, abs=0.006)
    first, second = op[(op != Op.NONE).all(axis=1)].T
    pairs = np.bincount(NUM_OPS * first + second, minlength=NUM_OPS**2) / len(first)
    assert pairs == pytest.approx([1 / 225] * 225, abs=0.004)  # the layers are drawn apart


def test_magnitudes_are_normal_and_cut_at_ten_and_signs_are_even(make_samples):
    drawn = rand_augment(0, make_samples(60_000), DEIT)
    degrees = drawn.argument[drawn.op == Op.ROTATE]
    magnitude = np.abs(degrees) / 3
    shares = [(magnitude < bound).mean() for bound in (8, 8.5, 9, 9.5)] + [
        (magnitude == 10).mean(),
        (degrees > 0).mean(),
    ]
    assert shares == pytest.approx([0.0228, 0.1587, 0.5, 0.8413, 0.0228, 0.5], abs=0.02)
    assert magnitude.max() == 10


def test_colour_jitters_factors_are_even_and_its_orders_all_occur(make_samples):
    drawn = color_jitter(0, make_samples(12_000), 0.4)
    assert drawn.argument.min() >= 0.6
    assert drawn.argument.max() <= 1.4
    assert drawn.argument.mean() == pytest.approx(1, abs=0.005)
    orders, count = np.unique(drawn.op, axis=0, return_counts=True)
    assert len(orders) == 6
    assert count / 12_000 == pytest.approx([1 / 6] * 6, abs=0.02)


@pytest.mark.parametrize("draw", [lambda s: rand_augment(3, s, DEIT), lambda s: color_jitter(3, s, 0.4)])
def test_a_samples_draw_does_not_depend_on_its_batch_but_on_its_repeat(draw, make_samples):
    whole, repeated = draw(make_samples(50)), draw(make_samples(50, repeat=1))
    part = draw(type(make_samples(1))(*(field[20:30] for field in make_samples(50))))
    for field, of_part, again in zip(whole, part, repeated, strict=True):
        assert np.array_equal(field[20:30], of_part)
        assert not np.array_equal(field, again)
