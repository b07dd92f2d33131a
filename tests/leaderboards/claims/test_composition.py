"""Sums, limits and sizes of effects: against the same arithmetic on plain numbers."""

import pytest

from suite.spec.claims import Logged, above, below, mean_of, number, scaled

NUMBERS = {"a": 3.0, "b": 10.0, "c": 2.0}
A, B, C = (number("any", row, "top1") for row in NUMBERS)


def value(effect):
    return effect.constant + sum(term.weight * NUMBERS[term.place.row[0]] for term in effect.terms)


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (B - scaled(A, 1.5), 5.5),
        (mean_of([A, B, C]), 5.0),
        (mean_of([A]), 3.0),
        (above(A, 1.0), 2.0),
        (above(A - C, -1.0), 2.0),
        (below(A, 0.5), -2.5),
        (above(A, 1.0) - below(B, 4.0), 2.0 - (4.0 - 10.0)),
        (scaled(above(A, 1.0), 2.0), 4.0),
    ],
)
def test_an_effect_is_the_arithmetic_of_its_numbers(effect, expected):
    assert value(effect) == pytest.approx(expected)
    assert effect.paper is None


@pytest.mark.parametrize(
    "compose",
    [
        lambda a, b, c: below(a, 0.5),
        lambda a, b, c: above(b, 0.5),
        lambda a, b, c: scaled(b, -2.0),
        lambda a, b, c: mean_of([a, b, c]),
    ],
)
def test_a_stated_size_goes_through_the_same_arithmetic(compose):
    sizes = [{"paper": number} for number in NUMBERS.values()]
    effects = [effect.model_copy(update=size) for effect, size in zip((A, B, C), sizes, strict=True)]
    assert compose(*effects).paper == pytest.approx(value(compose(A, B, C)))


def test_a_mean_with_one_unknown_size_has_none():
    assert mean_of([A.model_copy(update={"paper": 3.0}), B]).paper is None


def test_what_runs_log_stands_at_the_place_of_their_cell():
    (term,) = number("suite", "row", "top1", "own", metric="gates", layer=3, at=0.5).terms
    assert (term.suite, term.place, term.weight) == ("suite", number("suite", "row", "top1", "own").terms[0].place, 1.0)
    assert term.logged == Logged(metric="gates", layer=3, at=0.5)
