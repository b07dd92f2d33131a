import csv

import pytest
from scipy import stats

from leaderboards import survey
from leaderboards.build import build_all, main
from suite.spec.custom_entries import with_custom_models
from suite.spec.custom_model import CustomModel
from suite.store.custom_models import record_custom_models
from suite.store.run_directory import RunDirectory


@pytest.fixture
def three(table2, monkeypatch):
    """Three suites: one with runs, one whose two folders stand for the same seed, one without runs."""

    def on(name, dataset):
        change = {"dataset": dataset}
        profile = table2.profile("laptop").map_experiments(lambda e: e.model_copy(update=change))
        return table2.model_copy(update={"name": name, "profiles": {"laptop": profile}})

    suites = {"broken": on("broken", "cifar100"), "idle": on("idle", "svhn"), "table2": table2}
    monkeypatch.setattr(survey, "list_suites", lambda: sorted(suites))
    monkeypatch.setattr(survey, "get_suite", suites.__getitem__)
    monkeypatch.setattr(survey, "judge", lambda *scale: [])  # claims speak of the real suites
    return suites


def lines_of(store):
    with (store / "leaderboards/index.csv").open(newline="") as file:
        return {(line["suite"], line["profile"]): line for line in csv.DictReader(file)}


def test_the_index_tells_of_every_suite_how_far_it_is_and_its_headline(three, fill, tmp_path, capsys):
    fill(3)
    assert main(["--all", "--runs", str(tmp_path)]) == 0
    lines = lines_of(tmp_path)
    assert list(lines) == [("broken", ""), ("idle", ""), ("table2", "laptop")]
    line = lines["table2", "laptop"]
    assert (line["cells_done"], line["cells"], line["unit"]) == ("30", "30", "core-hours")
    assert float(line["difference"]) == pytest.approx(151.25 / 3 - 40.5)
    reach = stats.ttest_rel([50.0, 50.25, 51.0], [40.0, 40.5, 41.0]).confidence_interval()
    expected = (reach.high - reach.low) / 2
    assert float(line["high"]) - float(line["difference"]) == pytest.approx(expected)
    assert float(line["paper_difference"]) == pytest.approx(13.0)
    idle = lines["idle", ""]
    assert (idle["cells"], idle["difference"]) == ("", "")
    assert float(idle["paper_difference"]) == pytest.approx(13.0)
    markdown = (tmp_path / "leaderboards/index.md").read_text()
    row = next(line for line in markdown.splitlines() if "table2 " in line)
    assert "[laptop](table2/laptop.md)" in row
    assert "| +9.92 ± 0.36 points | +13.0 |" in row
    assert (tmp_path / "leaderboards/table2/laptop.md").exists()
    assert not (tmp_path / "leaderboards/idle").exists()
    assert "table2, laptop: 30/30 cells" in capsys.readouterr().out


def test_a_suite_that_cannot_be_built_does_not_lose_the_others(three, fill, finish_experiment, tmp_path, capsys):
    fill(1)
    experiment = three["broken"].profile("laptop").entries[0].experiment
    finish_experiment(experiment, 50).path.rename(RunDirectory.of(tmp_path, experiment).path.with_name("seed-00"))
    finish_experiment(experiment, 50)
    assert main(["--all", "--runs", str(tmp_path)]) == 1
    lines = lines_of(tmp_path)
    assert "seed-0 and seed-00" in lines["broken", "laptop"]["error"]
    assert lines["table2", "laptop"]["cells_done"] == "30"
    assert "## Not built\n\n- broken, laptop: " in (tmp_path / "leaderboards/index.md").read_text()
    assert "error: broken, laptop: " in capsys.readouterr().err


def test_a_store_of_a_custom_model_s_runs_alone_is_built_with_all(three, finish_experiment, tmp_path):
    mine = CustomModel(name="mine", words="deit_micro", options={"depth": 2})
    record_custom_models(tmp_path, [mine])
    entries = with_custom_models(three["table2"], [mine]).profile("laptop").entries
    finish_experiment(next(entry for entry in entries if entry.custom_model).experiment, 40.0)
    assert build_all(tmp_path)
    assert "mine_top1" in (tmp_path / "leaderboards/table2/laptop.md").read_text()


def test_only_the_given_profile_is_built(three, fill, tmp_path):
    fill(1)
    main(["--all", "--runs", str(tmp_path), "--profile", "smoke"])
    assert list(lines_of(tmp_path)) == [("broken", ""), ("idle", ""), ("table2", "")]


def test_an_empty_store_gives_an_index_without_runs(three, tmp_path):
    assert build_all(tmp_path)
    assert {profile for _, profile in lines_of(tmp_path)} == {""}


def test_all_and_one_suite_exclude_each_other(tmp_path, capsys):
    for arguments in (["--all", "--suite", "table2"], []):
        with pytest.raises(SystemExit) as stopped:
            main([*arguments, "--runs", str(tmp_path)])
        assert stopped.value.code == 2


def test_suites_without_runs_are_listed_below_the_table(three, fill, tmp_path, capsys):
    fill(1)
    main(["--all", "--runs", str(tmp_path)])
    markdown = (tmp_path / "leaderboards/index.md").read_text()
    idle = "## No runs yet\n\n- broken (Table 2): ConViT over DeiT on 5 % (paper: +13.0); 0/30 cells, ? (10 runs)"
    assert f"{idle} core-hours to go in profile laptop" in markdown
    assert sum(line.startswith("| ") for line in markdown.splitlines()) == 3  # header, rule, table2
    assert all(len(line) <= 80 for line in capsys.readouterr().out.partition("Index:")[0].splitlines())
