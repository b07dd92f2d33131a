"""A run's clock stops only when the device has done its work, and FLOPs are set beside their peak."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from suite.cost.known_flops import Flops
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.resources import Resources
from suite.store.heartbeat import Heartbeat
from suite.training import loop
from suite.training.checkpoint_times import CheckpointTimes
from suite.training.distributed import Ranks
from suite.training.loop import Progress, Training
from suite.training.measure import evaluate
from suite.training.measure.outcome import mfu_percent
from suite.training.measure.waiting import Waiting

GPU = torch.device("cuda")


@pytest.fixture
def events(monkeypatch):
    """The deeds of a training of 100 steps, 7 an epoch, one after the other; nothing is computed."""
    events = []

    def note(name, value=None):
        return lambda *arguments, **named: events.append(name) or value

    class Noted(Training):
        train_step = note("step")
        _mean = note("wait", 1.0)  # it reads the loss
        _evaluate = note("evaluate", object())
        _look_at_attention = note("probe")
        _locate_heads = _log = _finish = note("other")

        def __init__(self):
            self.recipe, self.resources = DEIT_LAPTOP.model_copy(update={"batch_size": 10}), Resources()
            self.num_steps, self.progress = 100, Progress()
            self.images = SimpleNamespace(num_train=70, train_batches=lambda *_: iter(range(100)))
            self.learning_rate = SimpleNamespace(set=lambda step: 0.1)
            self.engine = SimpleNamespace(train=lambda: None, module=None)
            self.experiment, self.probe = SimpleNamespace(kind="training"), None
            self.heartbeat = Heartbeat(None)
            self.ranks = SimpleNamespace(rank=0, num_ranks=1, device=torch.device("cpu"))
            self.ranks.agree = lambda *flags: events.append("agree") or list(flags)

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


def test_the_ranks_agree_once_a_metrics_line(events):
    assert events.count("agree") == 50


@pytest.fixture
def machine(monkeypatch):
    """A host and a GPU with clocks of their own, in milliseconds: the GPU works off what it is given."""

    class Machine:
        host = free_at = 0.0

        def give(self, milliseconds):
            self.free_at = max(self.host, self.free_at) + milliseconds

    machine = Machine()

    class Event:
        """Happens once the GPU has done what it was given before."""

        def __init__(self, enable_timing):
            assert enable_timing

        def record(self, stream):
            self.time = max(machine.host, machine.free_at)

        def elapsed_time(self, later):
            return later.time - self.time

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    return machine


def test_a_gpu_waits_for_images_only_when_it_has_done_the_steps_before(machine):
    waiting = Waiting(GPU)
    for host_waits in (5, 5, 50):  # the GPU has nothing before 5, and nothing more from 45 to 60
        with waiting:
            machine.host += host_waits
        machine.give(20)
    assert waiting.take_s() == pytest.approx(5e-3 + 0 + 15e-3)
    assert waiting.take_s() == 0


def test_a_cpu_waits_for_images_as_long_as_the_host(monkeypatch):
    clock = iter((1.0, 1.5, 7.0, 7.25))
    monkeypatch.setattr("suite.training.measure.waiting.time.monotonic", lambda: next(clock))
    waiting = Waiting(torch.device("cpu"))
    for _ in range(2):
        with waiting:
            pass
    assert waiting.take_s() == pytest.approx(0.75)


@pytest.mark.parametrize(("num_batches", "expected"), [(4, 250 / 1.0), (1, 250 / 100.0)])
def test_the_rate_of_evaluation_leaves_out_the_first_batch_where_there_are_more(monkeypatch, num_batches, expected):
    """A network that takes 100 s for its first images and 1 s for all others."""
    clock = [0.0]

    class Network(nn.Module):
        takes_s = 100.0

        def forward(self, images):
            clock[0] += self.takes_s
            self.takes_s = 1.0
            return torch.randn(len(images), 10)

    batches = [(torch.zeros(250, 1), torch.zeros(250, dtype=torch.long))] * num_batches
    monkeypatch.setattr(evaluate.time, "perf_counter", lambda: clock[0])
    images = SimpleNamespace(
        test_batches=lambda *_: iter(batches),
        num_test=250 * num_batches,
        test_labels=np.zeros(250 * num_batches, np.int64),
    )
    accuracy = evaluate.evaluate(Network(), images, Ranks(0, 1, torch.device("cpu")), "fp32")
    assert accuracy.images_per_s == pytest.approx(expected)
    assert accuracy.num_images == 250 * num_batches


def test_utilisation_counts_three_forward_passes_against_the_peak_of_the_precision():
    flops = Flops(total=10**12, linear=10**11)
    fp32, bf16 = (DEIT_LAPTOP.model_copy(update={"precision": precision}) for precision in ("fp32", "bf16"))
    assert mfu_percent(flops, bf16, 98.9, "NVIDIA H100 80GB HBM3") == pytest.approx(30.0)
    assert mfu_percent(flops, fp32, 6.7, "NVIDIA H100 80GB HBM3") == pytest.approx(30.0)
    assert mfu_percent(flops, bf16, 75.6, "NVIDIA H100 PCIe") == pytest.approx(30.0)
    assert mfu_percent(flops, bf16, 98.9, "NVIDIA H200") == pytest.approx(30.0)
    assert mfu_percent(flops, bf16, 83.5, "NVIDIA H200 NVL") == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("device", "peak_tflops"),
    [
        ("NVIDIA GH200 480GB", 989.0), ("NVIDIA GB200", 2500.0), ("NVIDIA B200", 2250.0), ("NVIDIA L40S", 362.0),
        ("AMD Instinct MI300X", 1307.4), ("NVIDIA GeForce RTX 4090", 165.2), ("NVIDIA GeForce RTX 5090", 209.5),
        ("NVIDIA RTX 6000 Ada Generation", 364.2),
    ],
)  # fmt: skip
def test_utilisation_is_of_the_dense_bf16_peak_of_the_makers_data_sheets(device, peak_tflops):
    bf16 = DEIT_LAPTOP.model_copy(update={"precision": "bf16"})
    found = mfu_percent(Flops(total=10**12, linear=10**11), bf16, 1.0, device)
    assert found == pytest.approx(300 / peak_tflops)


@pytest.mark.parametrize(
    "device", ["AMD EPYC", "NVIDIA H200 MIG 1g.18gb", "NVIDIA GeForce RTX 4090 D", "NVIDIA A100-SXM4-40GB MIG 3g.20gb"]
)
def test_a_device_whose_peak_is_not_known_has_no_utilisation(device):
    assert mfu_percent(Flops(total=10**12, linear=10**11), DEIT_LAPTOP, 1.0, device) is None


@pytest.mark.parametrize(
    ("every_s", "take_s", "apart_s"),
    [
        (300.0, [2.0, 2.0, 2.0], 300.0),
        (300.0, [4.0, 4.0, 40.0, 4.0], 396.0),
        (300.0, [100.0, 60.0], 1800.0),
        (3600.0, [100.0, 60.0], 3600.0),
        (0.1, [4.0, 4.0], 0.1),
    ],
    ids=["cheap", "dear, once very", "very dear", "very dear, asked for seldom", "asked for often"],
)
def test_checkpoints_that_would_take_over_1_percent_of_the_time_are_put_off(monkeypatch, every_s, take_s, apart_s):
    clock = [0.0]
    monkeypatch.setattr("suite.training.checkpoint_times.time.monotonic", lambda: clock[0])
    schedule, pauses = CheckpointTimes(every_s), []
    for seconds in take_s:
        began = clock[0]
        while not schedule.is_due:
            clock[0] += 0.05
        pauses.append(clock[0] - began)
        with schedule.saving():
            clock[0] += seconds
    assert pauses == pytest.approx([every_s, *[apart_s] * (len(take_s) - 1)], abs=0.1)
