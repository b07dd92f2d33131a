"""Which runs of a graph are submitted, by what SLURM has of them already. The plan and the files are real."""

from types import SimpleNamespace

import pytest

from launchers.core.plan import make_plan
from launchers.grid import main
from launchers.slurm import train_on_slurm as on_slurm
from launchers.slurm.grid_status import JobStatus
from suite.base.exit_codes import Exit
from suite.spec.resources import Resources
from suite.store.results import Failure
from suite.store.run_directory import RunDirectory


@pytest.fixture
def missing(tmp_path, monkeypatch, graph):
    """Says what would be submitted if the named runs were in these states, and the others new."""

    def missing(retry_failed=False, **states):
        def read_status(jobs, store):
            return [JobStatus(job, **states.get(names[job.experiment.id], {"state": "new"})) for job in jobs]

        names = {experiment.id: name for name, experiment in graph.items()}
        monkeypatch.setattr(on_slurm, "read_status", read_status)
        grid = SimpleNamespace(options=SimpleNamespace(runs=tmp_path, retry_failed=retry_failed))
        plan = make_plan(list(graph.values()), tmp_path, Resources(), retry_failed=retry_failed)
        runs, queued, num_left = on_slurm._missing(grid, plan)
        return [names[run.job.experiment.id] for run in runs], queued, num_left

    return missing


ON_THE_WAY = {"state": "pending", "array": "7"}


@pytest.mark.parametrize("options", [["--detach"], []])
def test_ctrl_c_leaves_a_grid_and_its_jobs(tmp_path, monkeypatch, options, capsys):
    """Neither further seeds nor further arrays are submitted."""

    def leave(*_):
        raise KeyboardInterrupt

    submitted = []
    monkeypatch.setattr(on_slurm, "_follow", leave)
    monkeypatch.setattr(on_slurm.slurm, "check_there", lambda: None)
    monkeypatch.setattr(on_slurm, "_submit_missing", lambda grid, *_: submitted.append(grid.options.seeds) or ["one"])
    words = ["--suite", "init_datasets", "--seeds", "until=0.1", "--max-arrays", "1", "--cluster", "slurm", *options]
    status = main([*words, "--runs", str(tmp_path)])
    assert (status, submitted) == (Exit.DONE if options else Exit.INTERRUPTED, [range(5)])
    assert options or "left; the jobs go on" in capsys.readouterr().out


def test_a_graph_is_submitted_whole(missing, graph):
    assert missing() == (list(graph), {}, 0)


def test_what_is_in_the_queue_is_not_submitted_again_but_waited_for(missing, graph):
    runs, queued, _ = missing(first=ON_THE_WAY, tuned={"state": "waiting", "array": "8"})
    assert runs == ["second", "mask_tuned", "mask_second"]
    assert queued == {graph["first"].id: "7", graph["tuned"].id: "8"}


def test_what_has_ended_since_the_plan_was_made_is_not_submitted_again(missing):
    runs, queued, num_left = missing(first={"state": "done"})
    assert runs == ["second", "tuned", "mask_tuned", "mask_second"]
    assert (queued, num_left) == ({}, 0)


def test_what_needs_a_failed_run_stays_away_until_that_is_retried(missing, graph, tmp_path):
    run = RunDirectory.of(tmp_path, graph["first"])
    run.create(graph["first"])
    run.write_failure(Failure(kind="error", reason="the loss is nan", log_path="log.txt"))
    states = {
        "first": {"state": "failed"},
        "tuned": {"state": "blocked"},
        "mask_tuned": {"state": "blocked", "array": "9"},
    }
    assert missing(**states)[0] == ["second", "mask_second"]
    assert missing(retry_failed=True, **states)[0] == ["first", "second", "tuned", "mask_tuned", "mask_second"]


def test_a_void_result_is_trained_again_on_retry(missing, graph, finish):
    finish(graph["first"], protocol_version=0)
    finish(graph["tuned"], parent=graph["first"].id)
    states = {"first": {"state": "void"}, "tuned": {"state": "void"}}
    assert missing(**states)[0] == ["second", "mask_second"]
    assert missing(retry_failed=True, **states)[0] == ["first", "second", "tuned", "mask_tuned", "mask_second"]


def test_what_needs_a_run_of_another_grid_on_this_machine_is_left_for_later(missing):
    assert missing(first={"state": "running"}) == (["second", "mask_second"], {}, 2)


def test_a_job_whose_parent_has_left_the_queue_is_submitted_again_behind_it(missing):
    runs, queued, _ = missing(first={"state": "cancelled"}, tuned={"state": "waiting", "array": "8"})
    assert runs == ["first", "second", "tuned", "mask_tuned", "mask_second"]
    assert queued == {}


def test_failures_are_forgotten_only_once_slurm_would_take_the_jobs(tmp_path, monkeypatch, graph, capsys):
    run = RunDirectory.of(tmp_path, graph["first"])
    run.create(graph["first"])
    run.write_failure(Failure(kind="error", reason="the loss is nan", log_path="log.txt"))
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sbatch", "squeue", "srun", "sacct"):
        (tools / name).write_text(
            "#!/bin/sh\n[ $(basename $0) = sbatch ] && echo 'Invalid account' >&2 && exit 1; exit 0"
        )
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    from launchers.grid import main

    command = ["--suite", "sample_efficiency", "--profile", "smoke", "--runs", str(tmp_path), "--retry-failed"]
    assert main([*command, "--cluster", "slurm"]) == 2
    assert "Invalid account. Name yours by --account" in capsys.readouterr().err
    assert run.failure_path.exists()
    (tools / "squeue").write_text("#!/bin/sh\nexit 1")  # as where no controller answers
    assert main([*command, "--cluster", "slurm", "--dry-run"]) == 0
    assert "SLURM was not asked" in capsys.readouterr().out
    assert main([*command, "--dry-run"]) == 0
    assert run.failure_path.exists()
