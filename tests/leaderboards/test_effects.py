import csv
import io

import pytest
from scipy import stats

from leaderboards.boards.board import make_leaderboard
from leaderboards.boards.effects import choose_baseline
from leaderboards.text.csv_files import render_long_csv
from suite.base.errors import SpecError
from suite.papers import get_suite
from suite.spec.profile import Place


def test_an_effect_is_the_difference_by_seed_from_the_baseline_beside_the_papers(table2, fill, tmp_path):
    fill(3)
    effect = make_leaderboard(table2, "laptop", tmp_path).board().effects[("10",), "convit_top1"]
    assert effect.baseline == (("10",), "deit_top1")
    expected = stats.ttest_rel([56.0, 56.25, 57.0], [48.0, 48.5, 49.0]).confidence_interval()
    assert effect.difference.interval.low == pytest.approx(expected.low)
    assert effect.difference.interval.high == pytest.approx(expected.high)
    assert effect.difference.paper == pytest.approx(59.6 - 48.0)


def test_what_the_headline_compares_with_is_the_baseline_of_its_group_and_the_likest_row_of_others(tmp_path):
    leaderboard = make_leaderboard(get_suite("convit_imagenet"), "laptop", tmp_path)
    baselines = {effect.baseline for effect in leaderboard.board().effects.values()}
    assert (("S", "DeiT", "6", "384"), "top1") in baselines
    assert {row[1] for row, _ in baselines} == {"DeiT"}


def test_masked_networks_are_compared_with_the_unmasked_one_of_their_row(tmp_path):
    leaderboard = make_leaderboard(get_suite("convit_masking"), "laptop", tmp_path)
    effects = leaderboard.board("convit_table6").effects
    assert {effect.baseline for effect in effects.values()} == {((row,), "no_mask") for row in ("3", "5", "10")}


def test_a_baseline_that_the_table_does_not_have_is_refused(table2, tmp_path):
    (table, *others) = table2.tables
    suite = table2.model_copy(update={"tables": (table.model_copy(update={"baseline": "diet"}), *others)})
    with pytest.raises(SpecError, match="'diet'"):
        make_leaderboard(suite, "laptop", tmp_path)


def test_of_competitors_in_a_row_the_headlines_column_is_the_baseline_wherever_it_stands():
    keys = [(("10",), "convit"), (("10",), "deit")]
    assert choose_baseline(keys, Place(row=("5",), column="deit")) == keys[1]


def test_the_long_csv_has_effects_away_from_the_papers_scale_and_differences_at_it(table2, fill, tmp_path):
    fill(2)
    text = render_long_csv(make_leaderboard(table2, "laptop", tmp_path))
    lines = {(line["row"], line["column"]): line for line in csv.DictReader(io.StringIO(text))}
    assert {line["difference"] for line in lines.values()} == {""}
    convit, deit = lines["5", "convit_top1"], lines["5", "deit_top1"]
    assert (convit["baseline"], deit["baseline"], deit["effect"]) == ("5: deit_top1", "", "")
    assert float(convit["effect"]) == pytest.approx(50.125 - 40.25)
    assert float(convit["paper_effect"]) == pytest.approx(47.8 - 34.8)
    assert make_leaderboard(table2, "paper", tmp_path).board().effects == {}
