"""The counter-based generator against its authors' known answers, and the stream's promises."""

import numpy as np
import pytest
import torch

from imagesets.randomness import Purpose, Samples, philox, random_order, random_words, uniforms

KNOWN_ANSWERS = [  # Random123's kat_vectors for philox4x32-10: counter, key, result
    ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        (0xA4093822, 0x299F31D0),
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def samples(index, epoch=7, repeat=0):
    index = np.asarray(index)
    return Samples(np.full_like(index, epoch), index, np.full_like(index, repeat))


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
@pytest.mark.parametrize("array", [lambda word: np.array([word], np.uint64), lambda word: torch.tensor([word])])
def test_philox_gives_its_authors_known_answers_from_numpy_and_torch(counter, key, answer, array):
    assert [word.item() for word in philox(tuple(array(word) for word in counter), key)] == answer


def test_torch_and_numpy_give_the_same_words():
    counter = np.random.default_rng(0).integers(0, 2**32, (4, 1000))
    words = philox(tuple(counter.astype(np.uint64)), (2**31 - 1, int(Purpose.ERASING_NOISE)))
    torch_words = philox(tuple(torch.from_numpy(counter)), (2**31 - 1, int(Purpose.ERASING_NOISE)))
    for word, torch_word in zip(words, torch_words, strict=True):
        assert np.array_equal(word.astype(np.int64), torch_word.numpy())


def test_the_numbers_of_published_results_stay():
    assert random_words(3, Purpose.CROP, samples([42]))[0].tolist() == [1940909652, 2692532325, 1179853533, 639111751]
    assert random_words(3, Purpose.FLIP, samples([43], epoch=8))[0, :2].tolist() == [356388452, 567174032]
    assert random_order(3, Purpose.ORDER, 10, epoch=7).tolist() == [1, 2, 5, 6, 9, 7, 0, 8, 4, 3]
    pinned = "ORDER CROP FLIP RESIZED_CROP RAND_AUGMENT COLOR_JITTER ERASING ERASING_NOISE MIXING INTERPOLATION SHARE"
    pinned += " SHUFFLE"
    assert [Purpose[name].value for name in pinned.split()] == list(range(12))


def test_an_order_is_a_permutation_that_changes_with_seed_and_epoch():
    orders = [tuple(random_order(seed, Purpose.ORDER, 1000, epoch)) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(order) == list(range(1000)) for order in orders)
    assert len(set(orders)) == 4


def test_draws_depend_on_nothing_but_seed_purpose_and_sample():
    together = uniforms(3, Purpose.CROP, samples(range(100)), 10)
    assert np.array_equal(together[42:43], uniforms(3, Purpose.CROP, samples([42]), 10))
    others = [
        uniforms(4, Purpose.CROP, samples([42])),
        uniforms(3, Purpose.FLIP, samples([42])),
        uniforms(3, Purpose.CROP, samples([42], epoch=8)),
        uniforms(3, Purpose.CROP, samples([42], repeat=1)),
    ]
    assert not np.isin(np.concatenate(others), together).any()


def test_a_longer_draw_starts_with_the_shorter_one_and_goes_on_with_new_numbers():
    long = uniforms(3, Purpose.CROP, samples([42, 43]), 11)
    assert long.shape == (2, 11)
    assert np.array_equal(long[:, :2], uniforms(3, Purpose.CROP, samples([42, 43]), 2))
    assert len(np.unique(long)) == long.size


def test_draws_are_uniform():
    draws = uniforms(0, Purpose.CROP, samples(range(50_000)), 8)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.histogram(draws, bins=10)[0] / draws.size == pytest.approx([0.1] * 10, abs=2e-3)
