"""Benchmarks hand what they measured to one table, which marks what fell."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench import SHORT, Results, Short, fallen, merge, read_published, read_results, run_short, why_not, write_table
from measured import Measurement

AS_SOMEBODY = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]


def measured(*ratios, benchmark="gpsa", what="GPSA layer: ours"):
    return Measurement(benchmark=benchmark, what=what, reference="timm", ratios=ratios)


def results(*measurements):
    return Results(machine="One, 2 cores", versions={}, measurements=measurements)


def test_a_benchmark_hands_over_the_ratio_of_each_round():
    found, problem = run_short(Short("read_results", ("--cells", "2", "--seeds", "2", "--rounds", "3")))
    assert problem == ""
    assert [(each.benchmark, each.what, len(each.ratios)) for each in found] == [
        ("read_results", "a leaderboard reads 4 results", 3),
        ("read_results", "--status of 4 results", 3),
    ]
    assert all(ratio > 0 for each in found for ratio in each.ratios)


def test_a_benchmark_that_fails_is_said_to():
    assert run_short(Short("read_results", ("--no-such-option",))) == ([], "ended with exit status 2")


@pytest.mark.parametrize(
    ("answer", "reason"), [("true", ""), ("false", "no SLURM cluster"), ("sleep 60", "no SLURM cluster")]
)
def test_a_cluster_that_does_not_answer_is_none(answer, reason, tmp_path, monkeypatch):
    (tmp_path / "sinfo").write_text(f"#!/bin/sh\nexec {answer}\n")
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("bench.PATIENCE_S", 1)
    assert why_not("slurm") == reason


@pytest.mark.parametrize(("now", "marked"), [(1.71, False), (1.69, True), (3.0, False)])
def test_what_fell_by_more_than_15_percent_is_marked(now, marked):
    before = results(measured(1.0, 2.0, 5.0))
    fell = fallen(before, [measured(now)])
    assert bool(fell) == marked
    assert ("**fell from 2**" in write_table(results(measured(now)), fell)) == marked


def test_what_was_not_measured_again_keeps_its_figures_and_new_ones_take_their_places():
    before = results(measured(2.0, benchmark="loaders"), measured(2.0))
    merged = merge(before, [measured(3.0), measured(1.0, what="training step")])
    assert [(each.benchmark, each.what, each.ratio) for each in merged] == [
        ("gpsa", "GPSA layer: ours", 3.0),
        ("gpsa", "training step", 1.0),
        ("loaders", "GPSA layer: ours", 2.0),
    ]


def test_results_are_read_as_they_were_written_and_others_are_refused(tmp_path):
    path = tmp_path / "one.json"
    assert read_results(path) is None
    path.write_text(results(measured(2.0)).model_dump_json())
    assert read_results(path) == results(measured(2.0))
    path.write_text("{}")
    with pytest.raises(SystemExit, match="does not hold results"):
        read_results(path)


def test_what_fell_since_the_committed_file_stays_marked_however_often_it_is_measured(tmp_path):
    path = tmp_path / "one.json"
    assert read_published(path) is None  # no checkout
    path.write_text(results(measured(2.0)).model_dump_json())
    for words in (["init", "--quiet"], ["add", "."], [*AS_SOMEBODY, "commit", "--quiet", "--message", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    path.write_text(results(measured(1.0)).model_dump_json())
    assert fallen(read_published(path), [measured(1.0)]) == {measured(1.0).place: 2.0}


def test_every_benchmark_of_the_table_is_there():
    folder = Path(__file__).parents[2] / "benchmarks"
    assert {short.name for short in SHORT} <= {path.stem for path in folder.glob("*.py")}
