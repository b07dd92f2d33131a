"""The plan, from files alone."""

import pytest

from launchers.core.plan import count, find_rows, make_plan, select
from suite.base.errors import SpecError
from suite.papers import get_suite
from suite.spec.resources import Resources
from suite.store.results import Failure
from suite.store.run_directory import RunDirectory

SUITE = get_suite("sample_efficiency")
PROFILE = SUITE.profile("laptop")
EXPERIMENTS = PROFILE.experiments(range(2))


def test_values_of_one_key_are_alternatives_and_keys_all_have_to_match():
    chosen = select(EXPERIMENTS, ["model=deit_micro", "train_fraction=0.10", "train_fraction=0.2", "seed=1"])
    assert [(e.model, e.train_fraction, e.seed) for e in chosen] == [("deit_micro", 0.1, 1), ("deit_micro", 0.2, 1)]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (["model"], "expected KEY=VALUE"),
        (["modle=deit_micro"], "Did you mean 'model'"),
        (["model=deit_mikro"], "Did you mean 'deit_micro'"),
        (["train_fraction=0.3"], "unknown value of --only train_fraction '0.3'"),
    ],
)
def test_a_filter_that_selects_nothing_is_refused(only, message):
    with pytest.raises(SpecError, match=message):
        select(EXPERIMENTS, only)


def test_rows_are_selected_by_the_boards_names_for_them():
    rows = find_rows(SUITE, PROFILE)
    chosen = select(EXPERIMENTS, ["train_size_percent=5", "model=deit_micro", "seed=0"], rows)
    (shown,) = [
        e.experiment for e in PROFILE.entries if e.row == ("5",) and e.columns.get("deit_top1") == "top1_percent"
    ]
    assert chosen == [shown]
    convit = get_suite("convit_imagenet")
    profile = convit.profile("laptop")
    chosen = select(profile.experiments(), ["model=ConViT", "size=Ti"], find_rows(convit, profile))
    assert chosen == [e.experiment for e in profile.entries if e.row[:2] == ("Ti", "ConViT")][:1]


@pytest.mark.parametrize(
    ("given", "valid"),
    [("train_fraction=0.05", "0.01, 0.02, 0.06, 0.1, 0.2"), ("train_size_percent=0.05", "5, 10, 30, 50, 100")],
)
def test_a_number_that_no_run_has_is_answered_with_the_boards_rows_and_no_number_that_looks_alike(given, valid):
    with pytest.raises(SpecError) as refused:
        select(EXPERIMENTS, [given], find_rows(SUITE, PROFILE))
    assert (
        str(refused.value).partition(". ")[2].startswith(f"Valid: {valid}. Rows of the board: train_size_percent=5, ")
    )


def test_the_plan_counts_each_state(tmp_path):
    first, second, third = (RunDirectory.of(tmp_path, e) for e in EXPERIMENTS[:3])
    for run, experiment in zip((first, second, third), EXPERIMENTS, strict=False):
        run.create(experiment)
    first.write_failure(Failure(kind="error", reason="the loss is nan", log_path="log.txt"))
    second.append_metrics({"step": 1})
    third.result_path.write_text("rubbish")
    plan = make_plan(EXPERIMENTS, tmp_path, Resources())
    assert count(plan) == "20 runs: 17 new, 1 to resume, 0 running, 0 finished, 2 failed"
    assert plan[0].status.reason == "the loss is nan"
    assert "result.json" in plan[2].status.reason


def test_what_is_chosen_brings_all_that_it_depends_on(graph):
    chosen = select(list(graph.values()), ["kind=masking", "model=deit_micro"])
    assert [e.kind for e in chosen] == ["training", "pruning", "masking"]
    assert {e.model for e in chosen} == {"deit_micro"}


def test_a_run_waits_for_parents_without_a_result_and_cannot_start_after_a_failed_one(tmp_path, graph, finish):
    finish(graph["second"])
    RunDirectory.of(tmp_path, graph["first"]).create(graph["first"])
    failure = Failure(kind="error", reason="the loss is nan", log_path="log.txt")
    RunDirectory.of(tmp_path, graph["first"]).write_failure(failure)
    first, second, tuned, mask_tuned, mask_second = make_plan(list(graph.values()), tmp_path, Resources())
    assert [run.status.is_open for run in (first, second, mask_second)] == [False, False, True]
    assert mask_second.status.waits_for == ()
    because = f"needs {graph['first'].id}, which failed: the loss is nan"
    assert (tuned.status.state, tuned.problem) == ("blocked", because)
    assert (mask_tuned.status.state, mask_tuned.problem) == ("blocked", f"needs {graph['tuned'].id}, which {because}")
    plan = [first, second, tuned, mask_tuned, mask_second]
    assert count(plan) == (
        "5 runs: 3 new, 0 running, 1 finished, 1 failed; 2 cannot start, since what they need has failed"
    )


def test_void_results_and_what_was_taken_over_from_them_have_failed_until_a_retry(tmp_path, graph, finish):
    finish(graph["first"], protocol_version=0)
    finish(graph["second"])
    finish(graph["tuned"], parent=graph["first"].id)
    finish(graph["mask_tuned"], parent=graph["tuned"].id)
    finish(graph["mask_second"], parent=graph["second"].id)
    experiments = list(graph.values())
    found = [run.status.state for run in make_plan(experiments, tmp_path, Resources())]
    assert found == ["void", "done", "void", "void", "done"]
    plan = make_plan(experiments, tmp_path, Resources(), retry_failed=True)
    assert [run.status.is_open for run in plan] == [True, False, True, True, False]
    assert plan[3].status.waits_for == (graph["tuned"].id,)


def test_planning_to_retry_what_failed_changes_no_file(tmp_path, graph):
    run = RunDirectory.of(tmp_path, graph["first"])
    run.create(graph["first"])
    run.write_failure(Failure(kind="error", reason="the loss is nan", log_path="log.txt"))
    run.result_path.write_text("rubbish")
    before = {path: path.read_bytes() for path in run.path.iterdir()}
    plan = make_plan(list(graph.values()), tmp_path, Resources(), retry_failed=True)
    assert count(plan) == "5 runs: 5 new, 0 running, 0 finished, 0 failed; 3 wait for others of these"
    assert {path: path.read_bytes() for path in run.path.iterdir()} == before
