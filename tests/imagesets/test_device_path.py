"""How batches get to a device: seen on PyTorch's meta device, which computes nothing and so cannot be waited for."""

import threading
from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from imagesets import prefetch
from imagesets.loader import ImageLoader, _steps_at_once
from imagesets.prefetch import Packed, side_stream, stream_batches
from suite.papers.shared.deit_recipes import DEIT, DEIT_CIFAR
from suite.papers.structured_init.recipes import CIFAR
from suite.spec.experiment import Experiment

META = torch.device("meta")
JITTER = DEIT_CIFAR.model_copy(update={"color_jitter": 0.4, "cutmix": 1.0})
SMALL_DEIT = DEIT.model_copy(update={"mix_group": 16})
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal"}


def loader(recipe, size=32, batch_size=512, **fields):
    """Of batches that are large enough to be finished one by one."""
    recipe = recipe.model_copy(update={"batch_size": batch_size})
    return ImageLoader(
        Experiment(model="deit_micro", dataset="cifar10_sample", image_size=size, recipe=recipe, **fields)
    )


class Watch(TorchDispatchMode):
    """Counts kernels on the device and copies to it, and refuses what would make the host wait for it."""

    def __init__(self):
        super().__init__()
        self.num_kernels, self.copies, self.deterministic = 0, Counter(), False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        if any(tensor.is_meta for tensor in inputs + outputs):
            assert name not in WAITING, name
            mask = name in ("index", "index_put_") and any(i is not None and i.dtype == torch.bool for i in args[1])
            assert not mask or args[2].ndim == 0, f"{name} looks for a mask's places"  # with one value it is a fill
            assert name != "repeat_interleave" or kwargs.get("output_size") is not None, "its length is not known"
            self.copies[name] += len({tensor.device for tensor in inputs + outputs}) > 1
            self.num_kernels += not function.is_view
            self.deterministic |= not function.is_view and torch.are_deterministic_algorithms_enabled()
        return result


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(("recipe", "most_kernels"), [(DEIT, 900), (CIFAR, 720), (JITTER, 180), (DEIT_CIFAR, 10)])
def test_a_batch_travels_in_one_copy_and_is_augmented_without_waiting(recipe, most_kernels):
    batches = loader(recipe).train_batches(0, 4, device=META)
    next(batches)  # mean, deviation and fill are copied with the first batch alone
    for _ in range(3):
        with Watch() as seen:
            batch = next(batches)
        assert (batch.images.device, batch.images.shape) == (META, (512, 3, 32, 32))
        assert seen.copies.total() == 1
        assert seen.num_kernels <= most_kernels


@pytest.mark.parametrize(("recipe", "most_kernels"), [(SMALL_DEIT, 900), (DEIT_CIFAR, 10)])
def test_several_steps_of_small_batches_travel_as_one_and_start_as_many_kernels_as_one(recipe, most_kernels):
    batches = loader(recipe, batch_size=64).train_batches(3, 24, device=META)
    assert [len(next(batches).images) for _ in range(5)] == [64] * 5  # the others of the first eight steps
    for _ in range(2):
        with Watch() as seen:
            assert [len(next(batches).images) for _ in range(8)] == [64] * 8
        assert seen.copies.total() == 1
        assert seen.num_kernels <= most_kernels
    assert not list(batches)


@pytest.mark.parametrize("recipe", [SMALL_DEIT.model_copy(repeated_augmentation=3), CIFAR, JITTER, DEIT_CIFAR])
@pytest.mark.parametrize("num_ranks", [1, 2])
def test_batches_finished_together_are_those_of_each_step(recipe, num_ranks, monkeypatch):
    images = loader(
        recipe,
        size=48 if recipe.crop == "random_resized" else 32,
        batch_size=32,
        shuffle="patches",
        shuffle_patch_size=4,
    )
    monkeypatch.setattr("imagesets.loader._steps_at_once", lambda num_pixels: 8)
    found = list(images.train_batches(3, 18, num_ranks - 1, num_ranks))
    assert len(found) == 15
    for step, batch in enumerate(found, 3):
        assert all(map(torch.equal, batch, images.train_batch(step, num_ranks - 1, num_ranks)))
    assert not list(images.train_batches(5, 5))


@pytest.mark.parametrize(("num_pixels", "number"), [(1, 16), (2**18, 2), (2**18 + 1, 1), (2**19, 1), (2**30, 1)])
def test_large_batches_are_prepared_one_by_one(num_pixels, number):
    assert _steps_at_once(num_pixels) == number


def test_test_images_travel_in_one_copy_too():
    batches = loader(DEIT_CIFAR).test_batches(40, device=META)
    next(batches)
    with Watch() as seen:
        batch = next(batches)
    assert [part.shape for part in batch] == [(40, 3, 32, 32), (40,)]
    assert seen.copies.total() == 1
    assert seen.num_kernels < 6


@pytest.mark.parametrize("recipe", [DEIT, CIFAR, JITTER, DEIT_CIFAR])
def test_what_was_packed_gives_the_batch_of_the_cpu(recipe):
    images = loader(recipe, size=48 if recipe.crop == "random_resized" else 32)
    for step in range(2):
        unpacked = Packed(images._load(range(step, step + 1), 0, 1), pinned=False).to(torch.device("cpu"))
        assert all(map(torch.equal, images._augmented(unpacked), images.train_batch(step)))


def test_deterministic_algorithms_are_off_where_a_device_augments_and_come_back(deterministic):
    with Watch() as seen:
        list(loader(DEIT).train_batches(0, 1, device=META))
    assert not seen.deterministic
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.is_deterministic_algorithms_warn_only_enabled()


def test_deterministic_algorithms_come_back_also_after_an_error(deterministic):
    def fail(_):
        assert not torch.are_deterministic_algorithms_enabled()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        next(stream_batches(torch.zeros, fail, [1], META))
    assert torch.are_deterministic_algorithms_enabled()


def test_the_cpus_threads_leave_deterministic_algorithms_on(deterministic):
    """The setting is the process's, and there the model computes at the same time."""
    seen = stream_batches(int, lambda _: (torch.are_deterministic_algorithms_enabled(),), range(3))
    assert list(seen) == [(True,)] * 3


def test_a_gpus_batches_are_pinned_by_the_threads_ahead(monkeypatch):
    asked, empty = [], torch.empty

    def spy(*args, pin_memory=False, **kwargs):
        asked.append((pin_memory, threading.current_thread().name[:5]))
        return empty(*args, **kwargs)

    monkeypatch.setattr(prefetch, "_feed", lambda packed, send, device: packed)
    monkeypatch.setattr(torch, "empty", spy)
    packed = list(stream_batches(torch.zeros, lambda tensor: (tensor,), [3, 4], torch.device("cuda", 0)))
    assert asked == [(True, "ahead")] * 2
    assert [p.to(torch.device("cpu")).shape for p in packed] == [(3,), (4,)]


def test_a_process_has_one_side_stream_for_each_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: object())
    side_stream.cache_clear()
    first, second = torch.device("cuda", 0), torch.device("cuda", 1)
    assert side_stream(first) is side_stream(torch.device("cuda", 0))
    assert side_stream(first) is not side_stream(second)
    side_stream.cache_clear()


def test_tensors_of_any_type_and_shape_come_out_of_a_buffer_as_they_went_in():
    item = (
        torch.arange(5, dtype=torch.uint8),
        (torch.tensor(2.5, dtype=torch.float64), None, "word"),
        torch.zeros(0, 6, dtype=torch.int64),
        torch.tensor([[True, False]]),
        torch.randn(3, 4).T,
    )
    unpacked = Packed(item, pinned=False).to(torch.device("cpu"))
    assert unpacked[1][1:] == (None, "word")
    for found, expected in zip(tree_leaves(unpacked), tree_leaves(item), strict=True):
        assert not isinstance(expected, torch.Tensor) or (
            torch.equal(found, expected) and found.dtype == expected.dtype
        )
