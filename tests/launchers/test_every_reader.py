"""Every kind of run folder, and everyone who asks where it stands: one answer."""

import contextlib

import pytest

from launchers.core.plan import Job, make_plan
from launchers.local.pool import LocalRun
from launchers.slurm import requeue as ending
from launchers.slurm.grid_status import read_status
from launchers.slurm.submission_record import Submission, write_submission
from leaderboards.boards.collect import collect
from suite.base.exit_codes import Exit
from suite.execute import run as execute
from suite.papers import get_suite
from suite.spec.resources import Resources
from suite.store import attempts
from suite.store.results import Failure
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status

ERROR, KILLED = (Failure(kind=kind, reason="because", log_path="log.txt") for kind in ("error", "killed"))

# kind of folder -> (what the run is called in the graph, where it stands)
KINDS = {
    "nothing": ("first", "new"),
    "created": ("first", "new"),
    "begun": ("first", "interrupted"),
    "killed": ("first", "interrupted"),
    "claimed": ("first", "running"),
    "error": ("first", "failed"),
    "corrupt result": ("first", "failed"),
    "corrupt failure": ("first", "failed"),
    "other protocol": ("first", "void"),
    "finished": ("first", "done"),
    "parent missing": ("tuned", "waiting"),
    "parent failed": ("tuned", "blocked"),
    "parent void": ("tuned", "blocked"),
    "grandparent failed": ("mask_tuned", "blocked"),
    "took over a void one": ("tuned", "void"),
    "took over a void one in two steps": ("mask_tuned", "void"),
    "took over one that is gone": ("tuned", "done"),
}


@pytest.fixture(params=KINDS)
def case(request, tmp_path, graph, finish):
    """The experiment, its folder and where it stands, while the folder is of one kind."""
    name, state = KINDS[request.param]
    first, tuned = (RunDirectory.of(tmp_path, graph[one]) for one in ("first", "tuned"))
    with contextlib.ExitStack() as stack:
        if request.param not in ("nothing", "parent missing"):
            first.create(graph["first"])
        match request.param:
            case "begun":
                attempts.record_start(first, num_ranks=1)
            case "killed":
                first.append_metrics({"step": 1})
                first.write_failure(KILLED)
            case "claimed":
                stack.enter_context(first.claim())
            case "error" | "parent failed" | "grandparent failed":
                first.write_failure(ERROR)
            case "corrupt result":
                first.result_path.write_text("rubbish")
            case "corrupt failure":
                first.failure_path.write_text("rubbish")
            case "other protocol" | "parent void" | "took over a void one" | "took over a void one in two steps":
                finish(graph["first"], protocol_version=0)
            case "finished":
                finish(graph["first"])
        if request.param.startswith("took over"):
            finish(graph["tuned"], parent=graph["first"].id)
        if "two steps" in request.param:
            finish(graph["mask_tuned"], parent=graph["tuned"].id)
        assert tuned.path.exists() == request.param.startswith("took over")
        experiment = graph[name]
        yield experiment, RunDirectory.of(tmp_path, experiment), state


@pytest.fixture
def plan(tmp_path, graph):
    return {run.job.experiment.id: run for run in make_plan(list(graph.values()), tmp_path, Resources())}


def test_the_judge_and_the_plan_agree(case, plan):
    experiment, run, state = case
    assert find_run_status(run, experiment).state == plan[experiment.id].status.state == state


def test_the_status_says_the_same_without_slurm(case, tmp_path):
    experiment, run, state = case
    assert read_status([Job(experiment, run, Resources())], tmp_path)[0].state == state


def test_the_local_pool_starts_what_is_open_alone(case, plan):
    experiment, _, state = case
    in_pool = {"done": "done", "running": "locked"} | dict.fromkeys(("failed", "void", "blocked"), "failed")
    assert LocalRun(plan[experiment.id]).state == in_pool.get(state, "waiting")


def test_a_process_that_is_to_train_it_ends_at_once_unless_it_can(case, monkeypatch):
    _, run, state = case
    monkeypatch.setattr("suite.execute._attempt", lambda directory, resources: "trained")
    if not run.experiment_path.exists():
        run.create(case[0])
    ends = {"done": Exit.DONE, "waiting": Exit.BLOCKED, "blocked": Exit.BLOCKED}
    expected = ends.get(state, "trained" if state in ("new", "interrupted") else Exit.LOCKED)
    assert execute(run.path, Resources()) == expected


def test_a_job_goes_back_into_the_queue_for_what_is_open_alone(case, tmp_path, monkeypatch):
    experiment, _, state = case
    submission = Submission(
        name="s-smoke-5f", suite="s", profile="smoke", num_seeds=1, time_min=60, resources=Resources(),
        tasks=((experiment,),),
    )  # fmt: skip
    write_submission(tmp_path, submission)
    monkeypatch.setattr(ending.signal, "signal", lambda *_: None)
    monkeypatch.setattr(ending, "_requeue", lambda folder, lost: "requeued")
    ended = ending.end_task(tmp_path, submission.name, 0, 1)
    can_start = ("new", "interrupted", "running")  # its own process has ended, so a claim is another's, of the past
    assert ended == ("requeued" if state in can_start else Exit.DONE if state == "done" else Exit.FAILED)


def test_the_leaderboard_counts_what_holds_alone(case, tmp_path):
    experiment, _, state = case
    profile = get_suite("sample_efficiency").profile("smoke")
    entry = profile.entries[0].model_copy(update={"experiment": experiment})
    cell = collect(profile.model_copy(update={"entries": (entry,)}), tmp_path).runs[experiment.configuration_id]
    assert cell.statuses[0].state == state
    assert (0 in cell.values) == (state == "done")
    assert bool(cell.failures) == (state in ("failed", "void", "blocked"))
