"""The counter-based generator against its authors' known answers, and the stream's promises."""

import numpy as np
import pytest

from imagesets.randomness import Purpose, epoch_order, philox, uniforms

KNOWN_ANSWERS = [  # Random123's kat_vectors for philox4x32-10: counter, key, result
    ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        (0xA4093822, 0x299F31D0),
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_its_authors_known_answers(counter, key, answer):
    assert philox(np.array([counter], dtype=np.uint64), key)[0].tolist() == answer


def test_an_order_is_a_permutation_that_changes_with_seed_and_epoch():
    orders = [tuple(epoch_order(seed, epoch, 1000)) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(order) == list(range(1000)) for order in orders)
    assert len(set(orders)) == 4


def test_draws_depend_on_nothing_but_seed_purpose_epoch_and_sample():
    index = np.arange(100)
    together = uniforms(3, Purpose.CROP, 7, index)
    alone = uniforms(3, Purpose.CROP, np.array([7]), index[42:43])
    assert np.array_equal(together[42:43], alone)
    assert not np.array_equal(together, uniforms(3, Purpose.FLIP, 7, index))


def test_draws_are_uniform():
    draws = uniforms(0, Purpose.CROP, 0, np.arange(100_000))
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.histogram(draws, bins=10)[0] / draws.size == pytest.approx([0.1] * 10, abs=2e-3)
