import pytest

from leaderboards.metrics import check_metric, read_metric
from suite.errors import SpecError


def test_a_metric_can_be_shown_in_the_papers_unit(finish):
    result = finish("deit", "5", 0, 93.8).read_result()
    assert read_metric(result, "top1_percent") == 93.8
    assert read_metric(result, "top1_fraction") == pytest.approx(0.938)
    assert read_metric(result, "num_parameters_millions") == pytest.approx(5.7)


def test_text_is_no_metric():
    with pytest.raises(SpecError, match="unknown metric 'device'"):
        check_metric("device")
