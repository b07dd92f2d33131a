import numpy as np
import pytest

from imagesets.fractions import fraction_indices, spread_over_classes
from imagesets.randomness import Purpose, Samples, random_words
from suite.base.errors import DataError

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(5), [10, 20, 30, 40, 50]))


def test_a_fraction_keeps_the_first_floor_of_each_class():
    kept = fraction_indices(LABELS, 0.25, 5)
    for label, size in enumerate([10, 20, 30, 40, 50]):
        members = [i for i in range(len(LABELS)) if LABELS[i] == label]
        assert [i for i in kept if LABELS[i] == label] == members[: int(size * 0.25)]


def test_fractions_are_nested_and_one_is_everything():
    kept = [set(fraction_indices(LABELS, f, 5)) for f in (0.1, 0.3, 0.5, 1.0)]
    assert kept[0] < kept[1] < kept[2] < kept[3] == set(range(len(LABELS)))


def test_thirty_percent_of_cifar10_is_1500_a_class_in_spite_of_binary_rounding():
    assert len(fraction_indices(np.repeat([0, 1], 5000), 0.3, 2)) == 3000


def test_a_fraction_that_empties_a_class_is_refused():
    with pytest.raises(DataError, match="keeps none of the 10 training images of class 0"):
        fraction_indices(LABELS, 0.05, 5)


def slow_draw(fraction, seed):
    """Those with the smallest random number of each class, one image at a time."""

    def number(index):
        one = Samples(np.array([0]), np.array([index]), np.array([0]))
        high, low = map(int, random_words(seed, Purpose.SHARE, one, 2)[0])
        return (high << 32) + low

    kept = []
    for label in range(5):
        members = sorted((i for i in range(len(LABELS)) if LABELS[i] == label), key=number)
        kept += members[: int(len(members) * fraction)]
    return sorted(kept)


@pytest.mark.parametrize("fraction", [0.1, 0.25, 1.0])
def test_images_drawn_by_a_seed_are_the_first_of_a_random_order_of_each_class(fraction):
    drawn = {seed: fraction_indices(LABELS, fraction, 5, seed).tolist() for seed in (0, 1, 2**31 - 1)}
    assert drawn == {seed: slow_draw(fraction, seed) for seed in drawn}
    counts = np.bincount(LABELS[drawn[0]])
    assert counts.tolist() == [int(size * fraction) for size in (10, 20, 30, 40, 50)]
    different = {tuple(kept) for kept in (*drawn.values(), fraction_indices(LABELS, fraction, 5).tolist())}
    assert len(different) == (1 if fraction == 1 else 4)


def test_smaller_shares_that_a_seed_draws_lie_within_larger_ones():
    kept = [set(fraction_indices(LABELS, f, 5, seed=7)) for f in (0.1, 0.3, 0.5, 1.0)]
    assert kept[0] < kept[1] < kept[2] < kept[3] == set(range(len(LABELS)))


@pytest.mark.parametrize("labels", [np.sort(LABELS), LABELS, LABELS[LABELS != 2], []])
def test_classes_take_turns_however_a_set_is_sorted(labels):
    queues = {label: [i for i in range(len(labels)) if labels[i] == label] for label in range(5)}
    expected = []
    while any(queues.values()):
        expected += [queue.pop(0) for queue in queues.values() if queue]
    assert spread_over_classes(labels, len(labels)).tolist() == expected
    assert spread_over_classes(labels, len(labels) + 9).tolist() == expected


@pytest.mark.parametrize("count", [1, 7, 100, 999, 1000, 1003])
def test_images_of_more_classes_than_are_looked_at_come_from_classes_all_along_the_set(count):
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(1000), 2))
    chosen = spread_over_classes(labels, count)
    assert len({*chosen.tolist()}) == count
    found = labels[chosen[:1000]]
    assert np.diff(found).tolist() == pytest.approx([max(1, 1000 / count)] * (min(count, 1000) - 1), abs=1)
    assert all(index == np.flatnonzero(labels == label)[0] for index, label in zip(chosen[:1000], found, strict=True))
