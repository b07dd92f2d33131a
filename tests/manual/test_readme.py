"""The README is short, its table says what the published boards say, and what it and the manual name exists."""

import re
from pathlib import Path

import pytest

from leaderboards import overview
from leaderboards.overview import FILES, render_origins, render_table, replace_table
from leaderboards.published_boards import PUBLISHED, BoardHeadline, describe_headline, is_outdated, list_boards
from suite.base.errors import RecordError
from suite.papers import get_suite, list_suites

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_is_a_screen_and_a_half_of_text():
    assert len([line for line in README.splitlines() if line.strip()]) < 85


def test_the_readmes_first_screen_has_the_gain_on_few_images_with_its_interval_and_seeds():
    lines = [line for line in README.partition("![")[0].splitlines() if line]  # above the first picture
    assert any(
        re.search(r"ConViT-S is better than DeiT-S.*\| \+\d\.\d\d ± 0\.\d\d \|.*\| \d+ \|", line) for line in lines[:12]
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_tables_of_boards_say_what_is_published(path):
    text = path.read_text()
    assert replace_table(text, FILES[path](path.parent, PUBLISHED)) == text, "python -m leaderboards.overview"


def test_a_board_is_told_in_its_own_words_and_an_older_protocol_by_its_number(tmp_path):
    board = tmp_path / "init_heads" / "gpu.md"
    board.parent.mkdir()
    board.touch()
    headline = BoardHeadline(
        told="A over B: +1.5 points, n=1 (paper: +2.0)", ours="", mean=1.5, variances=(), num_cells=9, num_missing=2
    )
    board.with_suffix(".headline.json").write_text(headline.model_dump_json())
    board.with_suffix(".runs.csv").write_text(
        "run,model,protocol_version,commit\na/seed-0,mine,2,abc\nb/seed-0,mine,1,abc\n"
    )
    (line,) = [
        line for line in render_table(tmp_path, tmp_path).splitlines() if "| [init_heads](init_heads/gpu.md) |" in line
    ]
    told = "[gpu](init_heads/gpu.md): A over B: +1.5 points, n=1 (paper: +2.0); 2 of 9 cells missing; of protocol 1"
    assert line.endswith(f"| {told} |")
    assert render_table(tmp_path, tmp_path).splitlines()[2] == line  # what there is to see comes first


OUTDATED = "> **Of an earlier recipe:**"


def test_a_board_says_so_if_its_suite_has_other_experiments_by_now():
    boards = [board for suite in list_suites() for board in list_boards(PUBLISHED / suite)]
    told = [board for board in boards if OUTDATED in board.read_text()]
    assert told == [board for board in boards if is_outdated(board)]
    assert all("; of an earlier recipe" in describe_headline(board) for board in told)


def test_a_run_of_another_configuration_makes_a_board_outdated(tmp_path):
    planned = [experiment.configuration for experiment in get_suite("convit_psa").profile("laptop").experiments()]
    board = tmp_path / "convit_psa" / "laptop.md"
    board.parent.mkdir()
    for names, expected in ((planned, False), ([*planned, "convit_micro-0123456789abcdef"], True), (["mine-0"], False)):
        lines = [f"{name}/seed-0,{name.partition('-')[0]},2,abc\n" for name in names]
        board.with_suffix(".runs.csv").write_text("run,model,protocol_version,commit\n" + "".join(lines))
        assert is_outdated(board) is expected


def test_a_board_s_runs_are_counted_by_commit_with_the_command_that_makes_it(tmp_path):
    board = tmp_path / "init_heads" / "gpu.md"
    board.parent.mkdir()
    board.touch()
    board.with_suffix(".runs.csv").write_text(
        "run,model,seed,device_hours,commit\na/seed-0,vit_s,0,0.5,1234567890\na/seed-1,vit_s,1,0.3,1234567890\n"
        "b/seed-0,vit_s,0,1,abcdefg\nb/seed-1,vit_s,1,,\nc/seed-0,mine,0,9,1234567890\n"
    )
    headline = BoardHeadline(told="", ours="", mean=-2.0, variances=(1.0, 1.0), num_cells=9, num_missing=0)
    board.with_suffix(".headline.json").write_text(headline.model_dump_json())
    assert render_origins(tmp_path, tmp_path).splitlines()[2] == (
        "| [init_heads, gpu](init_heads/gpu.md) | 2 for 1 seed, 1 of further seeds, 1 of custom models | 7 "
        "| `python launchers/grid.py --suite init_heads --profile gpu` | 2 of 1234567, 1 of abcdefg | 1.3 |"
    )


@pytest.mark.parametrize("text", ["no place", f"{overview.BEGIN}{overview.BEGIN}{overview.END}"])
def test_a_file_without_a_place_for_the_table_is_refused(text):
    with pytest.raises(RecordError, match="found no place"):
        replace_table(text, "")


def test_the_makefile_has_every_target_that_is_named():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name for page in PAGES for name in re.findall(r"(?:\$ |`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert {"demo", "test", "site", "ffcv", "test-slurm", "faults"} <= named
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_nothing_is_left_to_fill_in_and_linked_files_exist(page):
    text = page.read_text()
    assert "@@" not in text
    linked = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in linked if not (page.parent / link).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_tests_and_files_that_a_page_names_exist(page):
    text = page.read_text()
    for path, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text):
        assert (f"def {test}(" if test else "def test_") in (ROOT / path).read_text(), test
    for path in re.findall(r"`((?:suite|launchers|leaderboards|benchmarks|datasets|examples)/[\w/.]+\.\w+)`", text):
        assert (ROOT / path).is_file(), path


def test_every_page_of_the_manual_is_linked_from_the_readme():
    linked = set(re.findall(r"\]\(docs/(\w+)\.md\)", README))
    assert linked == {page.stem for page in PAGES[1:]} - {"index"}
