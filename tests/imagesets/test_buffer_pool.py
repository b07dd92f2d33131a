"""Memory of batches is used again, and never while anything still sees it."""

import torch

from imagesets.buffer_pool import BufferPool

SHAPE = (8, 3, 128, 128)


def test_memory_is_lent_again_once_the_last_view_of_it_is_gone():
    memory = BufferPool()
    first = memory.take(SHAPE, torch.float32)
    address, row = first.data_ptr(), first.fill_(7)[3, 0, 5]
    del first
    second = memory.take(SHAPE, torch.float32).fill_(1)
    assert second.data_ptr() != address
    assert row.eq(7).all()
    del row
    assert memory.take(SHAPE, torch.float32).data_ptr() == address


def test_what_autograd_keeps_for_the_backward_pass_is_not_lent_before_it():
    memory, layer = BufferPool(), torch.nn.Conv2d(3, 2, 16, 16)
    images = memory.take(SHAPE, torch.float32).fill_(1)
    address, loss = images.data_ptr(), layer(images).sum()
    del images
    assert memory.take(SHAPE, torch.float32).fill_(5).data_ptr() != address
    loss.backward()
    assert layer.weight.grad.eq(8 * 64).all()  # 8 images, 8 x 8 patches of ones


def test_batches_of_another_size_take_the_place_of_those_kept():
    memory = BufferPool()
    for size in (SHAPE, (4, 3, 128, 128), SHAPE):
        assert memory.take(size, torch.float32).shape == size
    assert len(memory._free) == 1
