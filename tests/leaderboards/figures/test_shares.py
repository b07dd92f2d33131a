import numpy as np
import pytest

from leaderboards.boards.logged import Curve
from leaderboards.figures.shares import find_moments


def curve_at(epochs, mean):
    epochs, mean = np.array(epochs, dtype=float), np.array(mean, dtype=float)
    return Curve(epochs, mean, mean - 1, mean + 1, 3)


@pytest.mark.parametrize(
    ("every", "expected"),
    [(1, [20, 75, 130, 185, 240, 295]), (3, [21, 75, 129, 186, 240, 294]), (50, [50, 100, 150, 200, 250, 300])],
)
def test_figure_8s_moments_are_the_evaluations_nearest_to_its_epochs(every, expected):
    epochs = np.arange(every, 301, every)
    moments = find_moments([curve_at(epochs, epochs / 4)], [epoch / 300 for epoch in (20, 75, 130, 185, 240, 295)])
    assert [moment.epochs.tolist() for moment in moments] == [[epoch] for epoch in expected]
    assert [moment.mean.tolist() for moment in moments] == [[epoch / 4] for epoch in expected]
    assert moments[0].label == f"Epoch {expected[0]}"


def test_a_moment_is_drawn_once_and_its_line_breaks_where_a_model_has_no_run():
    curves = [curve_at([1, 2], [10, 20]), None, curve_at([1, 2], [30, 40])]
    first, last = find_moments(curves, (0.2, 0.5, 1.0))
    np.testing.assert_array_equal(first.mean, [10, np.nan, 30])
    np.testing.assert_array_equal(last.low, [19, np.nan, 39])
