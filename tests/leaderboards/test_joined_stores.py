"""Stores of several machines on one board: each run once, and no quiet choice between two results."""

import csv

import pytest

from leaderboards.boards.joined_stores import joined
from leaderboards.build import main
from suite.base.errors import RecordError
from suite.papers import get_suite
from suite.spec.custom_model import CustomModel, ModelSource, hash_source
from suite.store.custom_models import read_custom_models, record_custom_models
from suite.store.run_directory import RunDirectory
from suite.store.run_store import find_runs

FIRST = get_suite("sample_efficiency").profile("laptop").experiments()[0]


def numbers_of(out):
    lines = csv.DictReader((out / "laptop.long.csv").read_text().splitlines())
    return {(line["n"], line["mean"]) for line in lines if line["mean"] and line["column"] == "deit_top1"}


def test_seeds_of_two_stores_are_averaged_on_one_board(finish_in, tmp_path):
    finish_in(tmp_path / "a", FIRST, 40.0)
    finish_in(tmp_path / "b", FIRST.with_seed(1), 50.0)
    stores = ["--runs", str(tmp_path / "a"), "--runs", str(tmp_path / "b")]
    assert main(["--suite", "sample_efficiency", *stores]) == 0
    assert numbers_of(tmp_path / "a/leaderboards/sample_efficiency") == {("2", "45")}


def test_the_same_run_with_other_numbers_is_named_and_not_averaged(finish_in, tmp_path, capsys):
    stores = []
    for name, top1 in (("a", 40.0), ("b", 41.0)):
        finish_in(tmp_path / name, FIRST, top1)
        stores += ["--runs", str(tmp_path / name)]
    assert main(["--suite", "sample_efficiency", *stores]) == 1
    told = capsys.readouterr().err
    for name in ("a", "b"):
        assert str(RunDirectory.of(tmp_path / name, FIRST).path) in told
    assert "top1_percent 40.0 and 41.0" in told
    assert not (tmp_path / "a/leaderboards").exists()


def test_a_copy_counts_once_and_a_finished_run_stands_before_an_unfinished_one(finish_in, tmp_path):
    for name in ("a", "b"):
        finish_in(tmp_path / name, FIRST, 40.0, train_s=float(len(name)), device=f"machine {name}")
    RunDirectory.of(tmp_path / "a", FIRST.with_seed(1)).create(FIRST.with_seed(1))
    done = finish_in(tmp_path / "b", FIRST.with_seed(1), 50.0)
    with joined([tmp_path / "a", tmp_path / "b", tmp_path / "a"]) as store:
        runs = find_runs(store, FIRST)
        assert [run.path for run in runs.values()] == [RunDirectory.of(tmp_path / "a", FIRST).path, done.path]
    assert not store.exists()


def test_one_store_is_read_where_it_lies(tmp_path):
    with joined([tmp_path]) as store:
        assert store == tmp_path


def test_a_result_that_cannot_be_read_is_no_reason_to_take_the_other(finish_in, tmp_path):
    for name in ("a", "b"):
        run = finish_in(tmp_path / name, FIRST, 40.0)
    run.result_path.write_text("{")
    with pytest.raises(RecordError, match="cannot read"), joined([tmp_path / "a", tmp_path / "b"]):
        pass


def test_a_custom_model_is_the_same_from_whichever_folder_its_file_was_read(tmp_path):
    source = ModelSource(kind="file", name="Mine", version=hash_source(b"class Mine: ..."), code="class Mine: ...")
    read = [CustomModel(name="mine", words=f"{place}mine.py:Mine", source=source) for place in ("", "/home/other/")]
    for name, custom_model in zip("ab", read, strict=True):
        record_custom_models(tmp_path / name, [custom_model])
    with joined([tmp_path / "a", tmp_path / "b"]) as store:
        (found,) = read_custom_models(store)
    assert found.source == source


def test_custom_models_of_two_stores_are_joined_and_another_of_the_same_name_gets_a_number(tmp_path):
    mine = CustomModel(name="mine", words="deit_micro", options={"depth": 2})
    other = mine.model_copy(update={"name": "other", "options": {"depth": 1}})
    record_custom_models(tmp_path / "a", [mine])
    record_custom_models(tmp_path / "b", [mine, other])
    with joined([tmp_path / "a", tmp_path / "b"]) as store:
        assert read_custom_models(store) == [mine, other]
    record_custom_models(tmp_path / "c", [mine.model_copy(update={"options": {"depth": depth}}) for depth in (3, 2)])
    with joined([tmp_path / "a", tmp_path / "b", tmp_path / "c"]) as store:
        named = {(one.name, one.options["depth"]) for one in read_custom_models(store)}
    assert named == {("mine", 2), ("other", 1), ("mine_2", 3)}


def test_a_model_that_two_stores_call_otherwise_has_the_name_of_the_first_and_the_boards_of_both(tmp_path):
    mine = CustomModel(name="mine", words="deit_micro", boards=("convit_psa/laptop",))
    ours = mine.model_copy(update={"name": "ours", "boards": ("convit_psa/laptop", "convit_psa/gpu")})
    record_custom_models(tmp_path / "a", [mine])
    record_custom_models(tmp_path / "b", [ours])
    with joined([tmp_path / "a", tmp_path / "b"]) as store:
        (found,) = read_custom_models(store)
    assert (found.name, found.boards) == ("mine", ("convit_psa/gpu", "convit_psa/laptop"))
