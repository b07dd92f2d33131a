"""A rank that dies takes the others with it: they say so by an error of one type, and the run is tried again."""

import pytest

from suite.base.errors import LostPeerError
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.attempts import record_start
from suite.store.run_directory import RunDirectory
from suite.training.distributed import watch_for_lost_peers

DIES_IN_THE_FOURTH_STEP = """
import os
from suite.training import loop
step = loop.Training.train_step
if os.environ["RANK"] == "1":
    loop.Training.train_step = lambda self, number, batch: os._exit(9) if number == 3 else step(self, number, batch)
"""

FAILS_BEFORE_IT_MEETS_THE_OTHERS = """
import os
from suite.training import distributed
os.environ["SLURM_JOB_ID"] = "71"
distributed.check_device = lambda resources: 1 / 0
"""


@pytest.fixture
def run(tmp_path):
    experiment = Experiment(model="deit_micro", dataset="cifar10_sample", image_size=32, recipe=DEIT_LAPTOP)
    run = RunDirectory.of(tmp_path, experiment)
    run.create(experiment)
    return run


@pytest.mark.parametrize(("owner", "is_recorded"), [("70", False), ("71", True)])
def test_ranks_that_fail_before_they_meet_fail_no_run_that_another_job_trains(
    execute, run, monkeypatch, owner, is_recorded
):
    monkeypatch.setenv("SLURM_JOB_ID", owner)
    with run.claim():
        record_start(run, num_ranks=2)
        assert execute(run, Resources(num_ranks=2), before=FAILS_BEFORE_IT_MEETS_THE_OTHERS) == [75, 1]
    assert (run.read_failure() is not None) == is_recorded
    assert "ZeroDivisionError" in run.log_path.read_text()


def test_a_run_that_has_lost_a_rank_counts_as_killed_not_as_failed(execute, run):
    assert execute(run, Resources(num_ranks=2), before=DIES_IN_THE_FOURTH_STEP) == [1, 9]
    failure = run.read_failure()
    assert failure.kind == "killed"
    assert failure.reason.startswith("another rank is gone, or could not be met: ")


@pytest.mark.parametrize(
    ("num_ranks", "message", "raised"),
    [("2", "Connection reset by peer", LostPeerError), ("1", "Connection reset by peer", RuntimeError),
     ("2", "shapes do not fit", RuntimeError)],
)  # fmt: skip
def test_only_a_run_of_several_ranks_takes_an_error_of_the_network_for_a_lost_one(
    num_ranks, message, raised, monkeypatch
):
    monkeypatch.setenv("WORLD_SIZE", num_ranks)
    with pytest.raises(Exception, match=message) as caught, watch_for_lost_peers():
        raise RuntimeError(message)
    assert caught.type is raised
