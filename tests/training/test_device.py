"""Which device a rank takes, what it is asked, and how networks lie on it; of GPUs as far as a CPU can show."""

import os

import pytest
import torch

from suite.base.errors import RunError
from suite.models.registry import build_model
from suite.training import distributed
from suite.training.distributed import Ranks
from suite.training.start import set_memory_format

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(("num_seen", "local_rank", "index"), [(4, 3, 3), (1, 0, 0), (1, 3, 0)])
def test_a_rank_takes_the_gpu_of_its_number_or_the_only_one_that_it_sees(monkeypatch, num_seen, local_rank, index):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: num_seen)
    monkeypatch.setenv("LOCAL_RANK", str(local_rank))
    assert distributed._choose_gpu() == index
    assert os.environ["LOCAL_RANK"] == str(index)  # where DeepSpeed looks


def test_a_rank_without_a_gpu_is_told_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(RunError, match="rank 2 of this machine sees 2 GPUs; expected one for each rank"):
        distributed._choose_gpu()


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_deepspeeds_operators_are_looked_through_on_cpus_only(monkeypatch, backend):
    import deepspeed

    asked = []
    monkeypatch.setattr(deepspeed, "init_distributed", lambda name, verbose: asked.append(name))
    monkeypatch.delitem(vars(deepspeed.ops), "__compatible_ops__", raising=False)
    monkeypatch.setattr(deepspeed.ops, "_probe_compatible_ops", lambda: asked.append("operators") or {})
    distributed._connect(CPU if backend == "gloo" else GPU)
    assert asked == (["operators", "gloo"] if backend == "gloo" else ["nccl"])
    vars(deepspeed.ops).pop("__compatible_ops__", None)


def test_a_rank_alone_agrees_with_itself_without_asking_a_device():
    assert Ranks(0, 1, torch.device("meta")).agree(True, False) == [True, False]


def test_several_ranks_agree_on_all_flags_at_once(monkeypatch):
    sums = []

    def all_reduce(counts):
        sums.append(counts.tolist())
        counts += torch.tensor([0.0, 0.0, 1.0])  # of the other rank

    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    assert Ranks(0, 2, CPU).agree(True, False, False) == [True, False, True]
    assert sums == [[1.0, 0.0, 0.0]]


SMALL = {"resnet18_cifar": {"width": 8}, "convmixer": {"dim": 16, "depth": 2}}


@pytest.mark.parametrize("name", SMALL)
def test_on_a_gpu_convolutions_see_images_and_weights_with_channels_last(name):
    images = torch.randn(2, 3, 32, 32)
    model = build_model(name, num_classes=10, image_size=32, **SMALL[name])
    expected = model(images)
    set_memory_format(model, CPU)
    assert all(parameter.is_contiguous() for parameter in model.parameters())
    set_memory_format(model, GPU)
    seen = []
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_pre_hook(lambda module, inputs: seen.extend([inputs[0], module.weight]))
    torch.testing.assert_close(model(images), expected)
    assert len(seen) > 8
    assert all(tensor.is_contiguous(memory_format=torch.channels_last) for tensor in seen)


def test_a_network_without_convolutions_of_maps_stays_as_it_is_on_a_gpu():
    model = set_memory_format(build_model("vit_t", num_classes=10, image_size=32), GPU)
    assert all(parameter.is_contiguous() for parameter in model.parameters())
    assert not model._forward_pre_hooks
