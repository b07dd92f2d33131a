"""How a run sets up device and engine: nothing for which a GPU would be waited for, or kept busy in vain."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.resources import Resources
from suite.training import distributed
from suite.training.distributed import Ranks
from suite.training.environment import describe
from suite.training.loop import Training
from suite.training.optim import build_optimizer, clip_before_steps

RECIPE = DEIT_LAPTOP.model_copy(update={"batch_size": 16, "clip_grad_norm": 3.0})
PIECES = torch.randn(6, 8, 3, 32, 32, generator=torch.Generator().manual_seed(0))  # three steps of two micro-batches
LABELS = torch.arange(8)
CPU, GPU = torch.device("cpu"), torch.device("cuda")


class Operations(TorchDispatchMode):
    """Counts what is asked of the device."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.counts[operation.overloadpacket.__name__] += 1
        return operation(*args, **(kwargs or {}))


def make_engine(clip_grad_norm=3.0, device=CPU, wrap=distributed.initialize, **changes):
    recipe = RECIPE.model_copy(update={"clip_grad_norm": clip_grad_norm, **changes})
    torch.manual_seed(0)
    model = build_model("convit_micro", num_classes=10, image_size=32)
    return wrap(model, build_optimizer(model, recipe, device), recipe, Resources(micro_batch_size=8))


def make_deepspeed(**changes):
    return make_engine(clip_grad_norm=0.0, wrap=distributed.wrap_in_deepspeed, **changes)


def take_steps(engine, pieces=PIECES):
    for piece in pieces:
        engine.backward(F.cross_entropy(engine(piece).float(), LABELS))
        engine.step()


def test_no_step_waits_for_the_device():
    engine = make_engine(device=GPU)  # with the optimizer of GPUs
    with Operations() as asked:
        take_steps(engine)
    assert asked.counts["_local_scalar_dense"] == 0  # a number that the host reads


@pytest.mark.usefixtures("process_group")
def test_deepspeed_does_not_wait_for_the_device_either(monkeypatch):
    from deepspeed.accelerator import get_accelerator

    waits = []
    monkeypatch.setattr(type(get_accelerator()), "synchronize", lambda *_: waits.append("all"))
    engine = make_deepspeed(device=GPU)
    with Operations() as asked:
        take_steps(engine)
    assert waits == []
    assert asked.counts["_local_scalar_dense"] == 0


@pytest.mark.usefixtures("process_group")
def test_a_rank_alone_asks_nothing_of_the_device_that_plain_pytorch_does_not():
    engine, model = make_engine(clip_grad_norm=0.0), make_engine().module
    optimizer = build_optimizer(model, RECIPE)
    with Operations() as ours:
        take_steps(engine)
    with Operations() as plain:
        for number, piece in enumerate(PIECES):
            (F.cross_entropy(model(piece).float(), LABELS) / 2).backward()
            if number % 2:
                optimizer.step()
                model.zero_grad()
    assert ours.counts == plain.counts


@pytest.mark.usefixtures("process_group")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_rank_alone_gets_deepspeeds_gradients_and_weights_bit_by_bit(precision):
    ours, theirs = make_engine(clip_grad_norm=0.0, precision=precision), make_deepspeed(precision=precision)
    start = [parameter.detach().clone() for parameter in ours.module.parameters()]
    for engine in (ours, theirs):
        take_steps(engine, PIECES[:5])  # two steps, and half of a third
    for own, other, before in zip(ours.module.parameters(), theirs.module.parameters(), start, strict=True):
        assert torch.equal(own, other)
        assert torch.equal(own.grad, other.grad)
        assert not torch.equal(own, before)


@pytest.mark.usefixtures("process_group")
def test_a_layer_that_a_step_leaves_out_is_decayed_and_moved_on_as_by_deepspeed():
    ours, theirs = make_engine(clip_grad_norm=0.0), make_deepspeed()
    for engine in (ours, theirs):
        take_steps(engine, PIECES[:2])
        engine.module.blocks[-1].forward = lambda tokens: tokens
        take_steps(engine, PIECES[2:])
    mine = {id(p): p for group in ours._optimizer.param_groups for p in group["params"]}.values()
    deepspeeds = {id(p): p for group in theirs.optimizer.param_groups for p in group["params"]}.values()
    assert all(torch.equal(own, other) for own, other in zip(mine, deepspeeds, strict=True))


@pytest.mark.usefixtures("process_group")
@pytest.mark.parametrize("max_norm", [0.1, 3.0, 1e9])
def test_clipping_is_deepspeeds_bit_by_bit_and_done_once_a_step(max_norm):
    from deepspeed.runtime.utils import clip_grad_norm_

    ours, theirs = make_engine(max_norm), make_deepspeed()

    def clip_as_deepspeed(*_):
        clip_grad_norm_(theirs.module.parameters(), max_norm)

    theirs.optimizer.register_step_pre_hook(clip_as_deepspeed)
    start = [parameter.detach().clone() for parameter in ours.module.parameters()]
    for engine in (ours, theirs):
        take_steps(engine, PIECES[:5])  # two steps, and half of a third
    for own, other, before in zip(ours.module.parameters(), theirs.module.parameters(), start, strict=True):
        assert torch.equal(own, other)
        assert torch.equal(own.grad, other.grad)
        assert not torch.equal(own, before)


def test_clipping_takes_a_few_kernels_however_many_parameters_there_are():
    weights = torch.nn.ParameterList(torch.ones(2) for _ in range(150))
    optimizer = torch.optim.SGD(weights, lr=0.0, foreach=True)
    clip_before_steps(optimizer, weights, 1.0)
    for weight in weights:
        weight.grad = torch.full((2,), 5.0)
    with Operations() as asked:
        optimizer.step()
    assert sum(asked.counts.values()) < 20
    norm = torch.cat([weight.grad for weight in weights]).norm()
    torch.testing.assert_close(norm, torch.tensor(1.0))


@pytest.mark.usefixtures("process_group")
def test_fp32_is_ieees_in_products_and_convolutions_and_environments_say_so():
    assert torch.backends.cuda.matmul.fp32_precision == "ieee"
    assert torch.backends.cudnn.conv.fp32_precision != "tf32"
    assert describe(Resources(), 1, 1)["tf32"] == {"products": False, "convolutions": False}


def test_the_loss_of_a_metrics_line_is_read_once():
    training = Training.__new__(Training)
    training.ranks = Ranks(0, 1, CPU)
    with Operations() as asked:
        assert training._mean([torch.tensor(1.0), torch.tensor(2.0)]) == 1.5
    assert asked.counts["_local_scalar_dense"] == 1
