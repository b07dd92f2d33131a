"""What a run says of its speed: the clock stops only when the device has done its work, and FLOPs meet their peak."""

from types import SimpleNamespace

import pytest
import torch

from suite.flops_cache import Flops
from suite.protocols.deit import DEIT_LAPTOP
from suite.spec import Resources
from suite.training import loop
from suite.training.cost import mfu_percent
from suite.training.loop import Progress, Training


@pytest.fixture
def events(monkeypatch):
    """What a training of 100 steps, 7 an epoch, does one after the other; nothing is computed."""
    events = []

    def note(name, value=None):
        return lambda *arguments, **named: events.append(name) or value

    class Noted(Training):
        _train_step = note("step")
        _mean = note("wait", 1.0)  # it reads the loss
        _evaluate = note("evaluate", object())
        _look_at_attention = note("probe")
        _log = _finish = note("other")

        def __init__(self):
            self.recipe, self.resources = DEIT_LAPTOP.model_copy(update={"batch_size": 10}), Resources()
            self.num_steps, self.progress = 100, Progress()
            self.images = SimpleNamespace(num_train=70, train_batches=lambda *_: iter(range(100)))
            self.learning_rate = SimpleNamespace(set=lambda step: 0.1)
            self.engine = SimpleNamespace(train=lambda: None)
            self.ranks = SimpleNamespace(rank=0, num_ranks=1, device=torch.device("cpu"), agree=bool)

    monkeypatch.setattr(loop, "wait_for", note("wait"))
    Noted().run(False)
    return events


def test_evaluations_and_probes_start_once_the_device_has_done_the_steps_before_them(events):
    for name, times in (("evaluate", 3), ("probe", 1 + 15)):  # once before the first step
        places = [place for place, event in enumerate(events) if event == name]
        assert len(places) == times
        for place in places:
            before = [event for event in events[:place] if event in ("step", "wait")]
            assert before[-1:] in ([], ["wait"])


def test_the_device_is_not_waited_for_after_every_step(events):
    assert ["step", "step"] in [events[place : place + 2] for place in range(len(events))]


def test_utilisation_counts_three_forward_passes_against_the_peak_of_the_precision():
    flops = Flops(total=10**12, linear=10**11)
    fp32, bf16 = (DEIT_LAPTOP.model_copy(update={"precision": precision}) for precision in ("fp32", "bf16"))
    assert mfu_percent(flops, bf16, 98.9, "NVIDIA H100 80GB HBM3") == pytest.approx(30.0)
    assert mfu_percent(flops, fp32, 6.7, "NVIDIA H100 80GB HBM3") == pytest.approx(30.0)
    assert mfu_percent(flops, bf16, 75.6, "NVIDIA H100 PCIe") == pytest.approx(30.0)
    assert mfu_percent(flops, bf16, 1.0, "AMD EPYC") is None
