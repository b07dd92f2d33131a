"""Pages made for who looks, and the state that they show while runs go on."""

import contextlib
import io
import re

import pytest
from rich.console import Console

from launchers.command.address import Address
from launchers.command.grid_request import GridRequest
from launchers.command.options import GridOptions
from launchers.live.cached_page import CachedPage, ServedPage
from launchers.live.serving import serving
from launchers.live.state import KILLED, StateReader, jobs_of
from launchers.slurm.grid_status import read_status
from suite.base.errors import SpecError
from suite.base.exit_codes import Exit
from suite.papers import get_suite
from suite.store.run_directory import RunDirectory
from tests.launchers.live.conftest import WORDS, begin, grid_of


def test_a_page_is_made_for_who_looks_and_for_nobody_else_and_not_again_before_its_time():
    made = []
    kept = CachedPage(lambda: made.append(1) or ServedPage.of(str(len(made)), "text/plain"), 600.0)
    assert not made
    assert [kept.find().content for _ in range(2)] == [b"1", b"1"]
    kept.due = 0.0
    assert kept.find().content == b"2"


def test_who_comes_while_a_page_is_made_anew_sees_that_of_before():
    made, seen = [], []

    def make():
        seen.extend(kept.find().content for _ in made)  # the second time
        return made.append(1) or ServedPage.of(str(len(made)), "text/plain")

    kept = CachedPage(make, 0.0, share=1e9)
    assert [kept.find().content for _ in range(2)] == [b"1", b"2"]
    assert seen == [b"1"]


def outlive_the_pages(error=None):
    """Let a grid go on until its pages have ended, then end, with an error if any; returns its words."""
    console = Console(file=io.StringIO(), width=10_000)
    with (
        contextlib.suppress(SpecError),
        serving(GridOptions(serve=Address("127.0.0.1", 0)), [*WORDS[:2], "--profile", "x"], console) as server,
    ):
        assert server.process.wait() == Exit.FAILED
        assert server._stderr.tell() == len(server.stderr_tail()) + 1  # no line but the last
        if error:
            raise error
    return console.file.getvalue().splitlines()[1:]


def test_pages_that_cannot_be_say_why_in_one_line_and_leave_the_grids_own_error_to_the_grid():
    (said,) = outlive_the_pages()
    assert "nothing else has: unknown profile 'x'. Valid: " in said
    assert outlive_the_pages(SpecError("the grid's own")) == []


def test_the_state_is_that_of_status_with_loss_accuracy_rate_and_time_to_go(tmp_path):
    grid = grid_of(tmp_path)
    run = begin(tmp_path, grid.experiments[0], loss=2.25, top1_percent=31.5, images_per_s=64.0)
    with run.claim():
        state = StateReader(grid).read()
    assert state["summary"] == "10 runs: 1 running, 9 new, about 4:52 to go"
    assert state["share"] == 0.025
    first = state["runs"][0]
    assert (first["id"], first["state"], first["share"]) == (grid.experiments[0].id, "running", 0.25)
    left_s = 45 * grid.experiments[0].recipe.batch_size / 64
    assert [text for text, _ in first["cells"]][3:7] == ["15 of 60", "2.2500", "31.50", "64"]
    assert first["cells"][7][1] == left_s


def test_seeds_that_begin_while_the_page_is_open_are_shown(tmp_path):
    suite = get_suite("sample_efficiency")
    grid = GridRequest.of(GridOptions(suite=suite.name, until=0.5, seeds=range(5), runs=tmp_path))
    shown = []
    for seed in (None, 6):
        for one in suite.profile("laptop").experiments([seed])[:1] if seed else ():
            RunDirectory.of(tmp_path, one).create(one)
        shown.append(max(job.experiment.seed for job in jobs_of(grid)))
    assert shown == [4, 6]


def test_a_finished_run_is_not_read_again_until_its_result_changes(tmp_path, finish, monkeypatch):
    grid, read = grid_of(tmp_path), []
    finish(grid.experiments[0])
    reader = StateReader(grid)
    monkeypatch.setattr(
        "launchers.live.state.read_status", lambda jobs, store: read.append(len(jobs)) or read_status(jobs, store)
    )
    states = [reader.read()["summary"] for _ in range(2)]
    finish(grid.experiments[0], num_requeues=1)
    again = reader.read()
    assert read == [10, 9, 10]
    assert states == ["10 runs: 9 new, 1 done"] * 2
    assert again["runs"][-1]["cells"][8] == ("1", 1)


def test_curves_grow_and_a_run_whose_metrics_cannot_be_read_has_none(tmp_path):
    grid = grid_of(tmp_path)
    run = begin(tmp_path, grid.experiments[0], loss=2.0)
    assert StateReader(grid).read()["runs"][0]["curves"] == ["", ""]
    run.append_metrics({"step": 30, "num_steps": 60, "loss": 1.0})
    (curves,) = (one["curves"] for one in StateReader(grid).read()["runs"] if one["curves"])
    assert curves == ["M25.0 1.0L50.0 13.0", ""]
    run.metrics_path.write_text("no JSON\n" + run.metrics_path.read_text())
    assert not any(one["curves"] for one in StateReader(grid).read()["runs"])


@pytest.mark.parametrize(
    ("how", "num_done", "failed", "expected"),
    [
        ("", 10, 0, r"10 of 10 done in 0:0\d"),
        ("", 9, 1, r"9 of 10 done in 0:0\d, 1 failed\. To go on: grid --suite x --retry-failed"),
        ("Interrupted", 2, 0, r"Interrupted: 2 of 10 done in 0:0\d\. To go on: grid --suite x"),
        (KILLED, 0, 0, r"The grid was killed: 0 of 10 done in 0:0\d\. To go on: grid --suite x"),
    ],
)
def test_the_end_is_told_with_what_is_done_and_the_command_that_goes_on(
    tmp_path, finish, how, num_done, failed, expected
):
    grid = grid_of(tmp_path)
    for experiment in grid.experiments[:num_done]:
        finish(experiment)
    for experiment in grid.experiments[num_done : num_done + failed]:
        begin(tmp_path, experiment).record_failure("error", "nan")
    reader = StateReader(grid, "grid --suite x")
    assert reader.read()["end"] == ""
    reader.end(how)
    state = reader.read()
    assert re.fullmatch(expected, state["end"])
    assert state["is_whole"] is (num_done == 10)


def test_a_submission_that_cannot_be_read_is_told_on_the_page(tmp_path):
    (tmp_path / "slurm" / "broken").mkdir(parents=True)
    (tmp_path / "slurm" / "broken" / "submission.json").write_text("{")
    state = StateReader(grid_of(tmp_path)).read()
    assert "submission.json: " in state["troubles"][0]
