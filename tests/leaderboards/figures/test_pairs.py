"""ConViT's Fig. 11 from a table whose rows train on fractions of the images."""

import numpy as np
import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.figures.pairs import draw_pairs, find_curves
from suite.spec.figures import Pair, PairFigure
from suite.spec.profile import Place


def pair_of(row):
    deit, convit, gain = (Place(row=(row,), column=name) for name in ("deit_top1", "convit_top1", "top1_gap_percent"))
    return Pair(baseline=deit, better=convit, gain=gain)


FIGURE = PairFigure(
    name="figure11c", item="Fig. 11c", metric="top1_percent", y_label="Top-1 accuracy (%)", gain_label="Gain (%)",
    pairs={f"{row} %": pair_of(row) for row in ("10", "50")}, pairs_label="Images", baseline="DeiT", better="ConViT",
)  # fmt: skip


@pytest.fixture
def leaderboard(table2, finish, tmp_path):
    for family, row, top1_percent in (("deit", "10", 20.0), ("convit", "10", 25.0), ("deit", "50", 40.0)):
        run = finish(family, row, 0, top1_percent)
        for step in (1, 2):
            run.append_metrics({"step": step, "num_steps": 2, "epoch": 3.0 * step, "top1_percent": step * top1_percent})
    return make_leaderboard(table2, "laptop", tmp_path)


@pytest.mark.parametrize(("over_whole_sets", "factors"), [(False, (1.0, 1.0)), (True, (0.1, 0.5))])
def test_epochs_are_a_runs_own_or_times_its_fraction_of_the_images(leaderboard, tmp_path, over_whole_sets, factors):
    found = find_curves(FIGURE.model_copy(update={"over_whole_sets": over_whole_sets}), leaderboard)
    assert list(found) == ["DeiT (10 %)", "ConViT (10 %)", "DeiT (50 %)"]
    for title, factor in zip(("DeiT (10 %)", "DeiT (50 %)"), factors, strict=True):
        np.testing.assert_allclose(found[title].epochs, [3 * factor, 6 * factor])
    assert found["ConViT (10 %)"].mean.tolist() == [25.0, 50.0]


def test_bars_are_the_tables_relative_gains_of_pairs_that_have_both_runs(leaderboard, tmp_path):
    curves, bars = draw_pairs(FIGURE, leaderboard).axes
    assert [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in bars.patches] == [(0.0, 25.0)]
    assert [text.get_text() for text in bars.texts] == ["+25.0"]
    assert [label.get_text() for label in bars.get_xticklabels()] == ["10 %", "50 %"]
    assert [line.get_linestyle() for line in curves.lines] == ["--", "-", "--"]


def test_the_figure_names_what_it_cannot_show_yet(leaderboard, tmp_path):
    told = " ".join(" ".join(text.get_text() for text in draw_pairs(FIGURE, leaderboard).texts).split())
    assert "Not there yet: ConViT (50 %)." in told


def test_of_runs_that_were_evaluated_only_at_the_end_together_the_bars_alone_are_drawn(table2, finish, tmp_path):
    for family, seed, top1_percent in (("deit", 0, 20.0), ("convit", 0, 25.0), ("deit", 1, 20.0), ("convit", 1, 25.0)):
        run = finish(family, "10", seed, top1_percent)
        for step in (1, 2)[seed:]:
            run.append_metrics({"step": step, "num_steps": 2, "epoch": 3.0 * step, "top1_percent": top1_percent})
    canvas = draw_pairs(FIGURE, make_leaderboard(table2, "laptop", tmp_path))
    (bars,) = canvas.axes
    assert [bar.get_height() for bar in bars.patches] == [25.0]
    assert "Seeds: 2. Only at the end were all of them evaluated" in " ".join(text.get_text() for text in canvas.texts)
