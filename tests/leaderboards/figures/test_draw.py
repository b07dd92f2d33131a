import io
from typing import get_args
from xml.etree import ElementTree

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.figures import draw
from leaderboards.figures.attention_sheets import draw_maps
from suite.base.errors import RecordError
from suite.base.files import sha256_of
from suite.spec.figures import (
    CentersFigure,
    CurveFigure,
    HeatmapFigure,
    LayerFigure,
    MapsFigure,
    Pair,
    PairFigure,
    PathsFigure,
    ProgressFigure,
    ScatterFigure,
)

image = pytest.importorskip("PIL.Image")

PROBED = [
    {"step": step, "num_steps": 4, "epoch": step / 2, "loss": 2.0 - step / 4, "top1_percent": 10.0 * step,
     "nonlocality": [[1.0, 2.0], [3.0, 4.0]], "gates": [[0.7, 0.2]],
     "centers": [[[step, 0.5], [0.0, 1.0]]], "precisions": [[[1.0, 0.0, 1.0], [2.0, 0.5, 3.0]]]}
    for step in range(5)
]  # fmt: skip
MAPS = get_args(MapsFigure.model_fields["what"].annotation)
KINDS = (
    "curves", "progress", "pairs", "nonlocality", "gates", *MAPS, "centers", "moments", "paths", "heatmap", "scatter",
)  # fmt: skip


def figure_of(kind, places, map_places):
    named = {"name": "figure1", "item": "Fig. 1"}
    if kind == "curves":
        return CurveFigure(**named, metric="top1_percent", y_label="Accuracy (%)", panels={"Both": places})
    if kind == "progress":
        models = {"0": places["deit"], "3": places["convit"]}
        labels = {"x_label": "Number of layers", "y_label": "Accuracy (%)"}
        return ProgressFigure(**named, **labels, metric="top1_percent", shares=(0.25, 1.0), models=models)
    if kind == "pairs":
        pair = Pair(baseline=places["deit"], better=places["convit"], gain=places["convit"])
        labels = {"y_label": "Accuracy (%)", "gain_label": "Gain (%)", "pairs_label": "Size"}
        names = {"baseline": "DeiT", "better": "ConViT"}
        return PairFigure(**named, **labels, **names, metric="top1_percent", pairs={"Ti": pair, "S": pair})
    if kind in ("nonlocality", "gates"):
        return LayerFigure(**named, quantity=kind, models=places)
    if kind == "centers":
        return CentersFigure(**named, models=map_places, before=True)
    if kind in ("moments", "paths"):
        return PathsFigure(**named, models=places, layer=4 if kind == "moments" else None)
    if kind == "heatmap":
        keys = {"x_key": "model", "y_key": "model", "x_label": "Model", "y_label": "Model"}
        return HeatmapFigure(**named, **keys, column="top1", value_label="Accuracy (%)")
    if kind == "scatter":
        keys = {"group_key": "model", "label_key": "model", "x_label": "Accuracy (%)", "y_label": "Accuracy (%)"}
        return ScatterFigure(**named, **keys, x_column="top1", y_column="top1", log_x=True)
    moments = {"before": kind in ("between", "corner"), "after": kind != "corner"}
    return MapsFigure(**named, **moments, what=kind, models=map_places)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_figure_is_the_same_png_svg_and_pdf_for_the_same_data(
    kind, places, map_places, leave_run, make_arrays, board_of, tmp_path
):
    figure = figure_of(kind, places, map_places)
    leave_run("deit", lines=PROBED)
    leave_run("convit", 0, lines=PROBED)
    leave_run("convit", 1, lines=PROBED)
    leave_run("deit", arrays=make_arrays(2, 2))
    drawn = draw(figure, board_of(figure))
    assert drawn == draw(figure, board_of(figure))
    assert list(drawn) == ["png", "svg", "pdf"]
    picture = image.open(io.BytesIO(drawn["png"]))
    picture.load()
    assert picture.width > 600
    assert set(picture.info) <= {"dpi"}
    ElementTree.fromstring(drawn["svg"])
    assert b"date" not in drawn["svg"]
    assert b"matplotlib.org" not in drawn["svg"]


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_no_figure_without_a_finished_run(kind, places, map_places, board_of, tmp_path):
    figure = figure_of(kind, places, map_places)
    assert draw(figure, board_of(figure)) == {}


@pytest.mark.parametrize(
    "kind", ["nonlocality", "gates", "curves", "progress", "pairs", "images", "centers", "moments", "paths"]
)
def test_there_is_no_figure_of_what_the_finished_runs_have_not_logged(
    kind, places, map_places, leave_run, board_of, tmp_path
):
    figure = figure_of(kind, places, map_places)
    leave_run("deit", lines=[{"step": 1, "num_steps": 1, "epoch": 1.0, "loss": 2.0}])
    assert draw(figure, board_of(figure)) == {}


def test_models_whose_run_recorded_no_such_maps_are_named_as_missing(
    map_places, leave_run, make_arrays, board_of, tmp_path
):
    figure = MapsFigure(name="figure4", item="Fig. 4", what="between", models=map_places)
    without = {name: array for name, array in make_arrays(2, 2).items() if not name.endswith("/between")}
    leave_run("deit", arrays=without)
    assert draw(figure, board_of(figure)) == {}
    leave_run("convit", arrays=make_arrays(2, 2))
    canvas = draw_maps(figure, board_of(figure))
    assert any("Not there yet: deit." in text.get_text() for text in canvas.texts)


def test_maps_that_cannot_be_read_are_named_with_the_cure(map_places, leave_run, make_arrays, board_of, tmp_path):
    figure = MapsFigure(name="figure7", item="Fig. 7", what="images", models=map_places)
    run = leave_run("deit", arrays=make_arrays(2, 2))
    run.maps_path.write_bytes(b"cut")
    with pytest.raises(RecordError, match=r"maps.safetensors.*Delete"):
        draw(figure, board_of(figure))


def test_maps_in_which_one_bit_was_changed_are_not_drawn(map_places, leave_run, make_arrays, board_of, tmp_path):
    figure = MapsFigure(name="figure7", item="Fig. 7", what="images", models=map_places)
    run = leave_run("deit", arrays=make_arrays(2, 2))
    run.write_result(run.read_result().model_copy(update={"maps_sha256": sha256_of(run.maps_path)}))
    assert draw(figure, board_of(figure))
    data = bytearray(run.maps_path.read_bytes())
    data[-1] ^= 1
    run.maps_path.write_bytes(data)
    with pytest.raises(RecordError, match=r"maps.safetensors.*damaged or changed.*Delete"):
        draw(figure, board_of(figure))


def test_a_users_own_style_changes_nothing(table2, fill, tmp_path):
    import matplotlib

    fill(2)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    expected = draw(table2.figures[0], leaderboard)
    with matplotlib.rc_context({"font.size": 20.0, "axes.facecolor": "black", "svg.fonttype": "none"}):
        assert draw(table2.figures[0], leaderboard) == expected


@pytest.mark.parametrize("case", ["partial", "failed"])
def test_the_line_figure_is_drawn_whatever_is_missing(table2, finish, tmp_path, case):
    finish("convit", "5", 0, 50.0)
    finish("deit", "5", 0, 40.0)
    run = finish("deit", "5", 1, 40.0)
    if case == "failed":
        run.result_path.write_text("")
    assert draw(table2.figures[0], make_leaderboard(table2, "laptop", tmp_path))
