import numpy as np

from leaderboards.boards.logged import read_curve, read_layers
from leaderboards.figures.curves import draw_curves, find_curves
from leaderboards.figures.parts.runs import read_first_runs
from suite.spec.figures import CurveFigure, LayerFigure
from suite.spec.profile import Place
from suite.store.run_directory import RunDirectory


def log(**values):
    """Lines whose values are lists over steps 1, 2, ..., two of them an epoch."""
    num = len(next(iter(values.values())))
    return [
        {"step": i + 1, "num_steps": num, "epoch": (i + 1) / 2} | {key: value[i] for key, value in values.items()}
        for i in range(num)
    ]


def curve_figure(places, metric="top1_percent"):
    return CurveFigure(name="curves", item="Fig. 2", metric=metric, y_label="Accuracy (%)", panels={"Both": places})


def test_a_curve_is_the_mean_of_the_seeds_between_the_lowest_and_the_highest(leave_run):
    runs = [leave_run("deit", seed, log(top1_percent=[10.0 + seed**2, 20.0 - seed])) for seed in range(3)]
    curve = read_curve(runs, "top1_percent")
    np.testing.assert_allclose(curve.epochs, [0.5, 1.0])
    np.testing.assert_allclose(curve.mean, [(10 + 11 + 14) / 3, 19.0])
    np.testing.assert_allclose(curve.low, [10.0, 18.0])
    np.testing.assert_allclose(curve.high, [14.0, 20.0])
    assert curve.num_seeds == 3


def test_a_curve_reads_only_the_lines_that_log_its_metric(leave_run):
    lines = [*log(loss=[2.0, 1.0]), {"step": 2, "num_steps": 2, "epoch": 1.0, "top1_percent": 30.0}]
    run = leave_run("deit", 0, lines)
    assert read_curve([run], "loss").mean.tolist() == [2.0, 1.0]
    assert read_curve([run], "top1_percent").mean.tolist() == [30.0]
    assert read_curve([run], "test_loss") is None


def test_a_log_is_parsed_once_until_it_changes(leave_run, monkeypatch):
    run = leave_run("deit", 0, log(loss=[2.0, 1.0], top1_percent=[30.0, 40.0]))
    parsed, parse = [], RunDirectory.read_metrics
    monkeypatch.setattr(RunDirectory, "read_metrics", lambda run: parsed.append(run) or parse(run))
    assert [read_curve([run], name).mean.tolist() for name in ("loss", "top1_percent")] == [[2.0, 1.0], [30.0, 40.0]]
    assert len(parsed) == 1
    run.append_metrics({"step": 2, "num_steps": 2, "epoch": 1.0, "loss": 0.5})  # of one step the last line counts
    assert read_curve([run], "loss").mean.tolist() == [2.0, 0.5]


def test_seeds_are_averaged_only_where_all_of_them_were_measured(leave_run):
    runs = [leave_run("deit", 0, log(loss=[3.0, 2.0, 1.0])), leave_run("deit", 1, log(loss=[5.0, 4.0]))]
    assert read_curve(runs, "loss").mean.tolist() == [4.0, 3.0]


def test_runs_whose_steps_are_of_different_lengths_are_averaged_at_their_common_epochs(leave_run):
    slow = leave_run("deit", 0, log(loss=[3.0, 2.0, 1.0, 0.5]))
    fast = leave_run("deit", 1, [{"step": epoch, "num_steps": 2, "epoch": epoch, "loss": 4.0} for epoch in (1, 2)])
    curve = read_curve([slow, fast], "loss")
    assert (curve.epochs.tolist(), curve.mean.tolist()) == ([1.0, 2.0], [3.0, 2.25])


def test_curves_are_of_the_runs_behind_the_cells(places, leave_run, board_of, tmp_path):
    figure = curve_figure(places)
    leave_run("deit", 0, log(top1_percent=[10.0, 20.0]))
    leave_run("deit", 1, log(top1_percent=[20.0, 40.0]))
    found = find_curves(figure, board_of(figure))
    assert list(found["Both"]) == ["deit"]
    assert found["Both"]["deit"].mean.tolist() == [15.0, 30.0]


def test_a_pruned_networks_curve_begins_where_its_parents_training_ended(leave_run, board_of, tmp_path):
    pruned = {"pruned": Place(row=("deit pruned",), column="top1")}
    figure = curve_figure(pruned)
    start = {"step": 0, "num_steps": 4, "epoch": 0.0, "top1_percent": 5.0}
    leave_run("deit", 0, [start, *log(top1_percent=[10.0, 20.0])], kind="pruning")
    for after_parents, expected in ((False, [0.0, 0.5, 1.0]), (True, [2.0, 2.5, 3.0])):  # the parent took two epochs
        figure = figure.model_copy(update={"after_parents": after_parents})
        curve = find_curves(figure, board_of(figure))["Both"]["pruned"]
        assert curve.epochs.tolist() == expected
        assert curve.mean.tolist() == [5.0, 10.0, 20.0]


def test_the_drop_from_a_network_to_its_pruned_one_is_dotted(places, leave_run, board_of, tmp_path):
    both = {"pruned": Place(row=("deit pruned",), column="top1"), **places}
    figure = curve_figure(both).model_copy(update={"after_parents": True})
    leave_run("deit", 0, [{"step": 4, "num_steps": 4, "epoch": 2.0, "top1_percent": 20.0}])
    start = {"step": 0, "num_steps": 4, "epoch": 0.0, "top1_percent": 5.0}
    leave_run("deit", 0, [start, *log(top1_percent=[10.0])], kind="pruning")
    (axes,) = draw_curves(figure, board_of(figure)).axes
    (dotted,) = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert dotted.get_xydata().tolist() == [[2.0, 20.0], [2.0, 5.0]]


def test_a_cell_with_a_failed_seed_has_no_curve(places, leave_run, board_of, tmp_path):
    figure = curve_figure(places)
    leave_run("deit", 0, log(top1_percent=[10.0]))
    leave_run("deit", 1, log(top1_percent=[20.0])).result_path.write_text("")
    assert find_curves(figure, board_of(figure)) == {"Both": {}}


def test_a_layers_line_is_the_mean_over_its_heads(leave_run):
    run = leave_run("deit", 0, log(nonlocality=[[[1.0, 3.0], [5.0]], [[2.0, 6.0], [7.0]]]))
    curves = read_layers(run, "nonlocality")
    assert curves.epochs.tolist() == [0.5, 1.0]
    assert [mean.tolist() for mean in curves.means()] == [[2.0, 4.0], [5.0, 7.0]]
    assert read_layers(run, "gates") is None


def test_a_layer_whose_heads_were_all_pruned_has_a_gap(leave_run):
    curves = read_layers(leave_run("deit", 0, log(nonlocality=[[[1.0], []], [[2.0], []]])), "nonlocality")
    assert curves.means()[0].tolist() == [1.0, 2.0]
    assert np.isnan(curves.means()[1]).all()


def test_a_single_run_is_that_of_the_lowest_finished_seed_and_the_figure_says_which(
    places, leave_run, board_of, tmp_path
):
    figure = LayerFigure(name="figure5", item="Fig. 5", quantity="nonlocality", models=places)
    leave_run("convit", 2)
    expected = leave_run("convit", 1)
    paths, notes = read_first_runs(board_of(figure), places, lambda run: run.path)
    assert paths == {"convit": expected.path}
    assert notes == ("One run, seed\N{NO-BREAK SPACE}1.", "Not there yet: deit.")
    leave_run("deit", 0)
    _, notes = read_first_runs(board_of(figure), places, lambda run: run.path)
    assert notes == ("One run of each model: deit seed\N{NO-BREAK SPACE}0, convit seed\N{NO-BREAK SPACE}1.", "")
