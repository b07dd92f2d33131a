import subprocess
import sys
from pathlib import Path

import pandas
import pytest

import leaderboards.build as build_module
from leaderboards import published_boards, survey
from leaderboards.build import build, main
from suite.papers import get_suite

SCRIPT = Path(build_module.__file__)


@pytest.fixture
def known(table2, monkeypatch):
    """Makes the suite of the tests the one that every name finds."""
    monkeypatch.setattr(build_module, "get_suite", lambda name: table2)
    monkeypatch.setattr(survey, "judge", lambda *scale: [])  # claims speak of the real suites
    return table2


def test_the_same_runs_give_the_same_bytes(known, fill, tmp_path):
    fill(2)
    for name in ("a", "b"):
        build("table2", "laptop", tmp_path, out=tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "b").iterdir())
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)


def test_the_files_lie_in_the_store_under_the_profiles_name(known, fill, tmp_path):
    fill(1)
    folder = build("table2", "laptop", tmp_path)
    assert folder == tmp_path / "leaderboards" / "table2"
    suffixes = [
        "convit_table2.csv",
        "figure2a.pdf",
        "figure2a.png",
        "figure2a.svg",
        "headline.json",
        "html",
        "long.csv",
        "md",
        "runs.csv",
    ]
    assert sorted(path.name for path in folder.iterdir()) == [f"laptop.{suffix}" for suffix in suffixes]


def test_a_figure_without_data_leaves_no_file_behind(known, fill, tmp_path, monkeypatch):
    fill(1)
    assert list(build("table2", "laptop", tmp_path).glob("*.figure2a.*"))
    monkeypatch.setattr("leaderboards.figures.draw", lambda *_: {})
    assert not list(build("table2", "laptop", tmp_path).glob("*.figure2a.*"))


def test_the_command_prints_the_table_and_last_the_answer_and_the_pages_path(known, fill, tmp_path, capsys):
    fill(1)
    assert main(["--suite", "table2", "--runs", str(tmp_path), "--seeds", "2"]) == 0
    out = capsys.readouterr().out
    assert "40.0/34.8" in out
    assert "partial" in out
    assert "ConViT over DeiT on 5 %: +10.0 points, partial 1/2 (paper: +13.0)." in out
    assert out.rstrip().endswith(str(tmp_path / "leaderboards" / "table2" / "laptop.html"))


def test_rows_that_nobody_has_begun_are_counted_not_shown(known, finish, tmp_path, capsys):
    main(["--suite", "table2", "--runs", str(tmp_path)])
    assert "more row" not in capsys.readouterr().out  # of a store without runs, all are shown
    finish("deit", "10", 0, 40.0)
    main(["--suite", "table2", "--runs", str(tmp_path)])
    table = capsys.readouterr().out.partition("Ours / the paper's")[0]
    assert "40.0/48.0" in table
    assert "34.8" not in table
    assert "4 more rows, of which nothing is trained yet." in table


def test_a_board_that_is_published_at_this_scale_is_told_below_the_headline(tmp_path, monkeypatch):
    board = tmp_path / "init_heads" / "laptop.md"
    board.parent.mkdir()
    board.touch()
    ours = "+4.5 ± 1.3 points, searched 2 against 1"
    headline = published_boards.BoardHeadline(told="", ours=ours, mean=4.5, variances=(), num_cells=1, num_missing=0)
    board.with_suffix(".headline.json").write_text(headline.model_dump_json())
    configuration = get_suite("init_heads").profile("laptop").experiments()[0].configuration
    own = "".join(f"vit_t,RUN,{seed},{commit},2\n" for seed, commit in ((0, "abc"), (1, "abc"), (3, "")))
    lines = f"model,run,seed,commit,protocol_version\n{own}mine,custom/seed-2,2,abc,2\n"
    runs = board.with_suffix(".runs.csv")
    runs.write_text(lines.replace("RUN", f"{configuration}/seed-0"))
    monkeypatch.setattr(published_boards, "PUBLISHED", tmp_path)
    monkeypatch.chdir(tmp_path)
    told = "Published at this scale, 2 seeds: +4.5 ± 1.3 points, searched 2 against 1 (init_heads/laptop.md)."
    assert published_boards.describe_published("init_heads", "laptop") == [told]
    assert published_boards.describe_published("init_heads", "gpu") == []
    assert published_boards.describe_published("my_suites.py:heads", "laptop") == []
    runs.write_text(lines.replace("RUN", "of-an-earlier-recipe/seed-0"))
    assert published_boards.describe_published("init_heads", "laptop") == []


def test_a_wide_table_shows_every_number_whole(known, fill, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("leaderboards.text.terminal.MAX_COLUMNS_SIDE_BY_SIDE", 5)
    fill(1)
    main(["--suite", "table2", "--runs", str(tmp_path)])
    out = capsys.readouterr().out
    assert "…" not in out
    assert all(len(line) <= 80 for line in out.partition("Ours / the paper's")[0].splitlines())
    assert "40.0/ " in out
    assert "40.0/34.8" not in out


def misuse(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_an_unknown_suite_exits_2_with_the_nearest_name(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("suite.papers.list_suites", lambda: ["sample_efficiency"])
    error = misuse(["--suite", "sample_eficiency", "--runs", str(tmp_path)], capsys)
    assert "Did you mean 'sample_efficiency'?" in error


def test_an_unknown_profile_exits_2_with_the_nearest_name(known, tmp_path, capsys):
    error = misuse(["--suite", "table2", "--runs", str(tmp_path), "--profile", "labtop"], capsys)
    assert "Did you mean 'laptop'?" in error


def test_all_suites_are_built_at_a_scale_that_only_some_have(finish_in, tmp_path, capsys):
    finish_in(tmp_path, get_suite("cordonnier_cifar10").profile("desktop").experiments()[0], 40.0)
    assert main(["--all", "--profile", "desktop", "--runs", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "cordonnier_cifar10, desktop: 3/21 cells" in told
    assert "init_heads: no runs" in told


def test_a_scale_that_no_suite_has_exits_2_with_those_there_are(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--all", "--profile", "desktopp", "--runs", str(tmp_path)])
    assert ended.value.code == 2
    assert "'desktopp'. Did you mean 'desktop'?" in capsys.readouterr().err


def test_a_store_that_is_not_there_exits_2_and_names_the_grid(known, tmp_path, capsys):
    error = misuse(["--suite", "table2", "--runs", str(tmp_path / "none")], capsys)
    assert "launchers/grid.py" in error


@pytest.mark.parametrize("seeds", ["0", "-1", "three"])
def test_a_number_of_seeds_below_one_exits_2(known, tmp_path, capsys, seeds):
    assert "expected a" in misuse(["--suite", "table2", f"--seeds={seeds}"], capsys)


def test_a_folder_that_cannot_be_made_exits_1_without_traceback(known, tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["--suite", "table2", "--runs", str(tmp_path), "--out", str(blocked)]) == 1
    assert capsys.readouterr().err.startswith(f"error: cannot make the folder {blocked}")


def test_importing_the_command_loads_no_heavy_library():
    heavy = ("torch", "scipy", "matplotlib", "pandas", "numpy", "rich")
    code = f"import sys, leaderboards.build; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=SCRIPT.parents[1]
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_no_module_hides_one_of_the_standard_library():
    # python leaderboards/build.py puts that folder first on the path
    assert not {path.stem for path in SCRIPT.parent.glob("*.py")} & sys.stdlib_module_names


def test_every_finished_run_is_accounted_for_in_one_line(known, fill, tmp_path):
    fill(2)
    table = pandas.read_csv(build("table2", "laptop", tmp_path) / "laptop.runs.csv")
    assert len(table) == 20
    assert set(table.num_attempts) == {1}
    assert set(table.images_per_s) == {80.0}
    assert table.mfu_percent.isna().all()
    assert table.run.is_unique


def test_a_store_whose_experiments_are_a_file_exits_2_and_says_so(known, tmp_path, capsys):
    (tmp_path / "experiments").write_text("")
    assert "is a file, expected a folder of runs" in misuse(["--suite", "table2", "--runs", str(tmp_path)], capsys)
    assert "is a file" in misuse(["--all", "--runs", str(tmp_path)], capsys)
