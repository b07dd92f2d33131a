import pytest

from leaderboards.metrics import check_metric, is_accuracy, read_metric
from suite.errors import SpecError


def test_a_metric_can_be_shown_in_the_papers_unit(finish):
    result = finish("deit", "5", 0, 93.8).read_result()
    assert read_metric(result, "top1_percent") == 93.8
    assert read_metric(result, "top1_fraction") == pytest.approx(0.938)
    assert read_metric(result, "num_parameters_millions") == pytest.approx(5.7)


def test_text_is_no_metric():
    with pytest.raises(SpecError, match="unknown metric 'device'"):
        check_metric("device")


def test_flops_are_counted_as_the_papers_do(finish):
    result = finish("deit", "5", 0, 93.8).read_result().model_copy(update={"num_linear_macs": 3_088_000_000})
    assert read_metric(result, "linear_gmacs") == pytest.approx(3.088)
    assert read_metric(result, "linear_gflops") == pytest.approx(6.176)


def test_pruned_heads_are_a_metric_for_each_layer(finish):
    result = finish("deit", "5", 0, 93.8).read_result().model_copy(update={"num_pruned_heads": (2, 0)})
    assert [read_metric(result, f"num_pruned_heads_layer_{number}") for number in (1, 2, 3)] == [2, 0, None]
    check_metric("num_pruned_heads_layer_6")
    with pytest.raises(SpecError, match="Did you mean 'num_pruned_heads_layer"):
        check_metric("num_pruned_heads_layer_0")


def test_a_metric_that_a_run_does_not_have_has_no_value(finish):
    assert read_metric(finish("deit", "5", 0, 93.8).read_result(), "mean_gate") is None


def test_only_what_is_better_when_higher_is_an_accuracy():
    assert is_accuracy("top1_fraction")
    assert not any(map(is_accuracy, ("test_loss", "train_s", "images_per_s", "num_parameters", "")))
