"""A store becomes an entry, which boards show with who recomputed it; what is not its own is refused by name."""

import shutil
import tomllib

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.entries import check_entry, read_entry, with_entries
from leaderboards.report.suite_page import render_suite_page
from leaderboards.submit import main
from leaderboards.text.markdown import render_markdown
from leaderboards.verify import main as verify
from suite.base.errors import RecordError
from suite.papers import get_suite
from tests.leaderboards.auditing.conftest import alter


@pytest.fixture
def entries(tmp_path):
    return tmp_path / "entries"


@pytest.fixture
def enter(store, entries):
    def enter(name, who="A. Nother", *more):
        return main(
            [str(store), "--suite", "sample_efficiency", "--name", name, "--who", who, "--out", str(entries), *more]
        )

    return enter


def edit(folder, before, after):
    path = folder / "entry.toml"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))


def board_with(entries, store):
    return render_markdown(with_entries(make_leaderboard(get_suite("sample_efficiency"), "laptop", store), entries))


def test_a_store_becomes_a_folder_that_verify_finds_sound(enter, entries, capsys):
    assert enter("first") == 0
    assert sorted(path.name for path in (entries / "first").iterdir()) == ["README.md", "entry.toml", "records.tar.xz"]
    assert tomllib.loads((entries / "first/entry.toml").read_text())["status"] == "reported"
    assert (entries / "first/README.md").read_text().count("\n") == 1
    assert verify([str(entries / "first")]) == 0
    assert "Sound." in capsys.readouterr().out


def test_a_store_with_an_altered_result_is_not_written(enter, entries, run, capsys):
    alter(run.result_path, top1_percent=39.0)
    assert enter("first") == 1
    assert list(entries.iterdir()) == []
    assert "result.json has 39.00" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "who", "more", "words"),
    [
        ("../first", "A", (), "String should match pattern"),
        ("first", "A\x1b[2J", (), "without control characters"),
        ("first", "A", ("--profile", "laptpo"), "unknown profile 'laptpo'"),
    ],
)
def test_an_entry_without_a_fit_name_is_misuse(enter, name, who, more, words, capsys):
    assert enter(name, who, *more) == 2
    assert words in capsys.readouterr().err


def test_records_are_entered_once(enter, entries, capsys):
    assert enter("first") == 0
    assert enter("second") == 1
    assert "these records are entered already, as first" in capsys.readouterr().err
    assert not (entries / "second").exists()


def test_an_entry_names_the_predictions_of_each_run(enter, entries, run, capsys):
    alter(run.result_path, format_version=5, predictions_sha256="")
    run.predictions_path.unlink()
    assert enter("first") == 1
    assert "it is of form 5, expected 6 or newer" in capsys.readouterr().out
    assert not (entries / "first").exists()


def test_an_entry_that_is_nested_too_deeply_is_named_on_the_board(enter, entries, store):
    assert enter("first") == 0
    (entries / "first/entry.toml").write_text("a=" + "[" * 100_000)
    assert "maximum recursion depth" in board_with(entries, store)
    assert verify([str(entries / "first")]) == 1


def test_no_entry_takes_the_place_of_another(enter, capsys):
    assert enter("first") == 0
    assert enter("first") == 2
    assert "is there already: choose another --name" in capsys.readouterr().err


def test_a_board_shows_each_entry_with_who_recomputed_it_and_marks_withdrawn_ones(enter, entries, store, run):
    assert "## Entries" not in board_with(entries, store)
    assert enter("first", "A <b>") == 0
    run.environment_path.write_text(run.environment_path.read_text() + "\n")
    assert enter("second") == 0
    edit(entries / "second", 'status = "reported"', 'status = "recomputed"')
    edit(entries / "second", "recomputed_by = []", 'recomputed_by = ["B", "C"]')
    shown = board_with(entries, store).partition("## Entries")[2]
    assert "| first  | A &lt;b>" in shown
    assert "recomputed by B, C |" in shown
    board = with_entries(make_leaderboard(get_suite("sample_efficiency"), "laptop", store), entries)
    page = render_suite_page(board, {}).partition(">Entries</h2>")[2]
    assert "A &lt;b&gt;" in page
    assert "recomputed by B, C</td>" in page
    edit(entries / "second", "withdrawn = false", "withdrawn = true")
    assert "withdrawn (recomputed by B, C) |" in board_with(entries, store)
    assert "## Entries" not in render_markdown(
        with_entries(make_leaderboard(get_suite("sample_efficiency"), "desktop", store), entries)
    )


def test_an_entry_that_names_anothers_is_refused_by_name(enter, entries, store):
    assert enter("first") == 0
    other = shutil.copytree(entries / "first", entries / "second")
    assert "it names the entry 'first', and its folder is 'second'" in check_entry(other).problems[0]
    edit(other, '"first"', '"second"')
    assert check_entry(other).problems == ("its records are those of first",)
    (other / "records.tar.xz").write_bytes(b"others")
    assert "has another SHA-256 than records_sha256" in check_entry(other).problems[0]
    assert "has another SHA-256" in board_with(entries, store).partition("| second |")[2]


def test_an_entry_that_nobody_has_recomputed_cannot_say_so(enter, entries):
    assert enter("first") == 0
    edit(entries / "first", 'status = "reported"', 'status = "recomputed"')
    with pytest.raises(RecordError, match="names in recomputed_by"):
        read_entry(entries / "first")


def test_an_entry_of_a_newer_version_is_named_with_its_cure(enter, entries, store):
    assert enter("first") == 0
    edit(entries / "first", "format_version = 1", "format_version = 2\nfresh = true")
    assert "format_version is '2'" in (problem := check_entry(entries / "first").problems[0])
    assert "newer version of the suite" in problem
    assert "newer version of the suite" in board_with(entries, store)
