import pytest

from leaderboards.boards.budget import estimate_cost
from leaderboards.boards.collect import collect
from leaderboards.text.index import format_to_go
from suite.cost.known_flops import Flops, keep_flops


def cost_of(suite, store, num_seeds):
    profile = suite.profile("laptop")
    return estimate_cost(profile, collect(profile, store, num_seeds))


def test_what_is_left_of_a_configuration_costs_what_its_finished_runs_did(table2, finish_experiment, tmp_path):
    profile = table2.profile("laptop")
    for entry in profile.entries:
        finish_experiment(entry.experiment, 50, device_hours=2.0)
    cost = cost_of(table2, tmp_path, range(3))
    assert (cost.hours_spent, cost.hours_to_go, cost.num_unknown) == (20, 40, 0)
    assert format_to_go(cost) == "40"


def test_a_configuration_without_runs_is_judged_by_its_model_and_the_images_seen(table2, finish_experiment, tmp_path):
    entries = table2.profile("laptop").entries  # DeiT, then ConViT, on 5, 10, 30, 50 and 100 %
    finish_experiment(entries[0].experiment, 50, device_hours=0.5)
    cost = cost_of(table2, tmp_path, range(1))
    assert cost.hours_to_go == pytest.approx(0.5 / 0.05 * (0.1 + 0.3 + 0.5 + 1.0))
    assert cost.num_unknown == 5
    assert format_to_go(cost) == "19 + ? (5 runs)"


def test_without_any_finished_run_the_cost_to_go_is_left_open(table2, tmp_path):
    assert format_to_go(cost_of(table2, tmp_path, range(2))) == "? (20 runs)"


def test_runs_that_others_depend_on_count_once(own_suite, table2, finish_experiment, tmp_path):
    trained = table2.profile("laptop").entries[0].experiment
    entries = [
        table2.profile("laptop")
        .entries[0]
        .model_copy(
            update={"row": (mask,), "columns": {"a": "top1_percent"}, "experiment": trained.then("masking", mask=mask)}
        )
        for mask in ("content", "position")
    ]
    finish_experiment(trained, 50, device_hours=3.0)
    finish_experiment(entries[0].experiment, 20, device_hours=0.25)
    cost = cost_of(own_suite(*entries), tmp_path, range(1))
    assert (cost.hours_spent, cost.hours_to_go) == (3.25, 0.25)


def test_runs_without_any_like_them_are_judged_by_known_flops_at_the_stated_rate(table2, tmp_path, monkeypatch):
    monkeypatch.setenv("SUITE_CACHE_DIR", str(tmp_path / "cache"))
    for model, total in {"deit": 2_000_000, "convit": 4_000_000}.items():
        keep_flops(Flops(total, total // 2), model, num_classes=10, image_size=32)
    cost = cost_of(table2, tmp_path, range(1))
    epochs = 2 * (0.05 + 0.1 + 0.3 + 0.5 + 1)  # of CIFAR-10; the mean of both models is 3e6, at 1e9 a second
    assert cost.hours_to_go == pytest.approx(epochs * 50_000 * 3 * 3e6 / 1e9 / 3600)
    assert cost.num_unknown == 0
