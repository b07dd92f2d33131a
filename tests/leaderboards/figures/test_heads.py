import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from leaderboards.boards.logged import read_paths
from leaderboards.figures.centers import find_groups, find_heads, show_layers, show_moments
from leaderboards.figures.parts.heads import Group, Heads, Panel, draw_groups, head_marks, sheet_size, view
from suite.base.errors import RecordError


def test_the_ellipses_of_an_isotropic_head_are_circles_of_the_known_radii():
    precision = np.eye(2) / 3.0**2  # sigma 3
    for share, radius in ((0.5, 1.1774 * 3), (0.9, 2.1460 * 3)):
        ellipse = Heads(np.array([[2.0, -1.0]]), precision[None]).ellipse(0, share)
        assert ellipse.center == (-1.0, 2.0)  # x counts columns
        assert ellipse.width == pytest.approx(2 * radius, rel=1e-4)
        assert ellipse.height == pytest.approx(2 * radius, rel=1e-4)


def test_half_of_a_head_s_attention_lies_within_its_solid_ellipse():
    spread = np.array([[1.5, 0.7], [-0.2, 0.6]])
    precision = spread @ spread.T
    samples = np.random.default_rng(0).multivariate_normal([1.0, 3.0], np.linalg.inv(precision), 100_000)
    path = Heads(np.array([[1.0, 3.0]]), precision[None]).ellipse(0, 0.5)
    inside = path.get_path().contains_points(path.get_patch_transform().inverted().transform(samples[:, ::-1]))
    assert inside.mean() == pytest.approx(0.5, abs=0.01)


def test_a_head_that_attends_without_limit_has_no_ellipse():
    assert Heads(np.zeros((1, 2)), np.diag([1.0, 0.0])[None]).ellipse(0, 0.9) is None


def test_learned_centers_stand_before_measured_ones(record):
    maps = record(2, 3)
    maps.arrays["after/01/gaussian_centers"] = np.full((3, 2), 4.0)
    maps.arrays["after/01/gaussian_precision"] = np.stack([np.eye(2)] * 3)
    first, second = find_heads(maps)
    np.testing.assert_array_equal(first.centers, maps.arrays["after/00/centers"])
    assert first.ellipse(0, 0.5) is None
    assert second.centers.tolist() == [[4.0, 4.0]] * 3
    assert second.ellipse(0, 0.5) is not None


def test_the_view_holds_all_centers_but_ends_where_no_patch_can_be_seen(record):
    maps = record(1, 2)
    maps.arrays["after/00/centers"][:] = [[0.0, -3.0], [1.0, 0.0]]
    assert 3.0 < find_groups("model", maps, before=False)[0].half < 4.5
    maps.arrays["after/00/centers"][0, 1] = 100.0
    assert find_groups("model", maps, before=False)[0].half == 8.0


def test_heads_before_and_after_training_are_shown_in_one_view(record):
    maps = record(2, 3)
    maps.arrays["before/01/centers"][0] = [5.0, 0.0]
    (after,) = find_groups("model", maps, before=False)
    before, again = find_groups("model", maps, before=True)
    assert (before.label, again.label) == ("model\nbefore training", "model\nafter training")
    assert before.half == again.half > after.half
    np.testing.assert_array_equal(before.panels[1].heads.centers, maps.arrays["before/01/centers"])
    np.testing.assert_array_equal(again.panels[1].heads.centers, after.panels[1].heads.centers)


def test_the_legend_of_many_heads_has_a_place_of_its_own():
    few, many = (Group("model", [Panel("Layer 1", Heads(np.zeros((num, 2)), None))], 2.0) for num in (3, 16))
    assert sheet_size([many], 3, 1.6)[1] - sheet_size([few], 3, 1.6)[1] > 3 * 0.18  # of four lines of text, not one


def test_the_view_holds_a_trained_head_s_ellipse_but_not_one_that_would_shrink_the_centers():
    centers = np.array([[0.0, 3.0]])
    for sigma, half in ((0.1, 3.95), (1.0, 1.05 * (3 + 2.1460)), (100.0, 2 * 3.95)):
        trained = Heads(centers, np.eye(2)[None] / sigma**2)
        assert view([centers], [trained], 16.0) == pytest.approx(half, rel=1e-3)
    assert view([centers], [trained], 6.0) == 6.0


def test_ten_heads_have_ten_colours_and_sixteen_no_mark_twice():
    marks = head_marks(16)
    assert len({color for color, _ in marks[:10]}) == 10
    assert len(set(marks)) == 16


def test_each_head_has_its_number_beside_its_center_and_the_query_hides_none():
    centers = np.array([[0.0, 0.0], [1.0, -1.0]])
    canvas = Canvas(figsize=(6, 4))
    draw_groups(canvas, [Group("model", [Panel("Layer 1", Heads(centers, None))], 2.0)], 1, 1.6)
    (axes,) = canvas.axes
    numbers = {text.get_text(): text.xy for text in axes.texts}
    assert numbers == {"1": (0.0, 0.0), "2": (-1.0, 1.0)}
    assert not axes.patches[0].get_fill()


# -- paths


@pytest.fixture
def paths(leave_run):
    """Two layers of two heads and one, at four moments of as many epochs; all else is logged between them."""
    lines = []
    for epoch in range(5):
        lines.append({"step": 10 * epoch, "num_steps": 40, "epoch": float(epoch), "loss": 1.0})
        centers = [[[epoch, 0.5], [-epoch, 1.0]], [[2.0, 0.1 * epoch]]]
        precisions = [[[1.0, 0.2, 3.0], [1.0, 0.0, 1.0]], [[4.0, 0.0, 4.0]]]
        lines.append({"step": 10 * epoch, "num_steps": 40, "epoch": float(epoch), "centers": centers,
                      "precisions": precisions})  # fmt: skip
    return read_paths(leave_run("deit", lines=lines))


def test_logged_paths_are_read_layer_by_layer(paths):
    assert paths.epochs.tolist() == [0, 1, 2, 3, 4]
    assert [layer.shape for layer in paths.centers] == [(5, 2, 2), (5, 1, 2)]
    assert paths.centers[0][3].tolist() == [[3.0, 0.5], [-3.0, 1.0]]
    assert paths.precisions[0][0, 0].tolist() == [[1.0, 0.2], [0.2, 3.0]]


def test_a_layer_without_heads_has_no_path(leave_run):
    line = {"step": 0, "num_steps": 1, "epoch": 0.0, "centers": [[], [[1.0, 2.0]]], "precisions": [[], [[1, 0, 1]]]}
    paths = read_paths(leave_run("deit", lines=[line]))
    assert paths.centers[0].shape == (1, 0, 2)
    assert paths.precisions[0].shape == (1, 0, 2, 2)
    assert read_paths(leave_run("convit")) is None


@pytest.mark.parametrize(
    "logged",
    [
        [{"centers": [[[1.0, 2.0]]]}, {"centers": [[[1.0, 2.0]]], "precisions": [[[1, 0, 1]]]}],  # at two times, at one
        [{"centers": [[[1.0, 2.0]]]}, {"precisions": [[[1, 0, 1]]]}],  # as often, each at one time
        [{"centers": [[[1.0, 2.0]] * 2], "precisions": [[[1, 0, 1]]]}],  # of two heads, and of one
    ],
)
def test_centers_and_precisions_of_other_heads_or_times_are_refused(leave_run, logged):
    lines = [{"step": step, "num_steps": 3, "epoch": float(step)} | line for step, line in enumerate(logged)]
    with pytest.raises(RecordError, match=r"metrics\.jsonl: expected centers and precisions of the same heads"):
        read_paths(leave_run("deit", lines=lines))


def test_a_layer_is_shown_before_half_way_and_after_its_training_with_its_way_there(paths):
    group = show_moments("model", paths, layer=1)
    assert [panel.title for panel in group.panels] == ["Before training", "Epoch 2", "After training (epoch 4)"]
    assert [len(panel.trail) for panel in group.panels] == [1, 3, 5]
    for panel, epoch in zip(group.panels, (0, 2, 4), strict=True):
        assert panel.heads.centers.tolist() == [[epoch, 0.5], [-epoch, 1.0]]
        assert panel.trail[-1].tolist() == panel.heads.centers.tolist()
        assert panel.heads.ellipse(0, 0.5) is not None
    assert group.half > 4


def test_a_network_with_fewer_layers_shows_its_last(paths):
    group = show_moments("model", paths, layer=4)
    assert group.label == "model, layer 2"
    assert group.panels[-1].heads.centers.tolist() == [[2.0, 0.4]]


def test_the_paths_of_every_layer_lead_from_start_to_end(paths):
    first, second = show_layers("model", paths).panels
    assert (first.trail[0].tolist(), first.heads.centers.tolist()) == ([[0, 0.5], [0, 1.0]], [[4, 0.5], [-4, 1.0]])
    assert second.title == "Layer 2"
    assert second.heads.ellipse(0, 0.5) is None
