"""The plan, from files alone."""

import pytest

from launchers.plan import count, make_plan, select
from suite.errors import SpecError
from suite.records import Failure, RunDirectory
from suite.spec import Resources
from suite.suites import get_suite

PROFILE = get_suite("sample_efficiency").profile("laptop")
EXPERIMENTS = PROFILE.experiments(num_seeds=2)


def test_values_of_one_key_are_alternatives_and_keys_all_have_to_match():
    chosen = select(EXPERIMENTS, ["model=deit_micro", "train_fraction=0.10", "train_fraction=1", "seed=1"])
    assert [(e.model, e.train_fraction, e.seed) for e in chosen] == [("deit_micro", 0.1, 1), ("deit_micro", 1.0, 1)]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (["model"], "expected KEY=VALUE"),
        (["modle=deit_micro"], "Did you mean 'model'"),
        (["model=deit_mikro"], "Did you mean 'deit_micro'"),
        (["train_fraction=0.2"], "unknown value of --only train_fraction '0.2'"),
    ],
)
def test_a_filter_that_selects_nothing_is_refused(only, message):
    with pytest.raises(SpecError, match=message):
        select(EXPERIMENTS, only)


def test_the_plan_counts_each_state(tmp_path):
    first, second, third = (RunDirectory.of(tmp_path, e) for e in EXPERIMENTS[:3])
    for run, experiment in zip((first, second, third), EXPERIMENTS, strict=False):
        run.create(experiment)
    first.write_failure(Failure(kind="error", reason="the loss is nan", log_path="log.txt"))
    second.append_metrics({"step": 1})
    third.result_path.write_text("rubbish")
    plan = make_plan(EXPERIMENTS, tmp_path, Resources())
    assert count(plan) == "20 runs: 17 new, 1 to resume, 0 running, 0 finished, 2 failed"
    assert plan[0].problem == "the loss is nan"
    assert "result.json" in plan[2].problem
