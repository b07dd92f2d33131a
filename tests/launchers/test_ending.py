"""A job whose processes have ended is told apart by how; ``tests/slurm`` lets SLURM do it."""

import pytest

from launchers.slurm import requeue as ending
from launchers.slurm.submission_record import Submission, write_submission
from suite.base.exit_codes import Exit
from suite.spec.resources import Resources


@pytest.fixture
def end(tmp_path, monkeypatch):
    """Ends a job that was to train these runs; returns its exit status, and whether it was put back into the queue."""

    def end(*experiments):
        submission = Submission(
            name="s-smoke-5f", suite="s", profile="smoke", num_seeds=1, time_min=60, resources=Resources(),
            tasks=(experiments,),
        )  # fmt: skip
        write_submission(tmp_path, submission)
        requeued = []
        monkeypatch.setattr(ending.signal, "signal", lambda *_: None)
        monkeypatch.setattr(ending, "_requeue", lambda folder, lost: requeued.append(True) or Exit.INTERRUPTED)
        return ending.end_task(tmp_path, submission.name, 0, 1), bool(requeued)

    return end


def test_a_run_whose_parent_has_no_result_is_not_requeued_and_its_job_fails(end, graph, capsys):
    assert end(graph["tuned"]) == (1, False)
    assert f"{graph['tuned'].id} is waiting: needs {graph['first'].id}, which is new" in capsys.readouterr().err


def test_beside_a_run_that_is_open_the_job_is_requeued_all_the_same(end, graph, finish):
    finish(graph["second"])
    assert end(graph["tuned"], graph["mask_second"]) == (Exit.INTERRUPTED, True)


def test_a_job_all_of_whose_runs_are_done_ends_well(end, graph, finish):
    for experiment in graph.values():
        finish(experiment)
    assert end(*graph.values()) == (0, False)
