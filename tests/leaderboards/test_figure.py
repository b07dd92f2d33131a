import io

import pytest

from leaderboards.build import make_board
from leaderboards.figure import draw_figure

image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")


def drawn(suite, store):
    return draw_figure(make_board(suite, "laptop", store), suite.figure)


def test_the_figure_is_a_png_without_a_trace_of_when_and_with_what(table2, fill, tmp_path):
    fill(3)
    picture = image.open(io.BytesIO(drawn(table2, tmp_path)))
    picture.load()
    assert picture.format == "PNG"
    assert picture.width > 1000
    assert set(picture.info) <= {"dpi"}


@pytest.mark.parametrize("case", ["nothing", "partial", "failed"])
def test_the_figure_is_drawn_whatever_is_missing(table2, finish, tmp_path, case):
    if case != "nothing":
        finish("deit", "5", 0, 40.0)
        run = finish("deit", "5", 1, 40.0)
        if case == "failed":
            run.result_path.write_text("")
    assert drawn(table2, tmp_path).startswith(b"\x89PNG")


def test_a_figure_without_gain_or_log_scale_is_drawn(table2, fill, tmp_path):
    fill(1)
    figure = table2.figure.model_copy(update={"gain_column": None, "log_x": False})
    assert drawn(table2.model_copy(update={"figure": figure}), tmp_path).startswith(b"\x89PNG")
