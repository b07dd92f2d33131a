"""Mixup and cutmix: ``pair_images`` says on the host how images are mixed, ``mix_`` does it on any device."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from imagesets.augment.parameters import Mixing
from suite.base.errors import SpecError


class Pairs(NamedTuple):
    """How each of B images is mixed with another one, its partner.

    ``partner`` is (B,) int64. ``shares`` is (2, B) float32, an image's own share of its target and its partner's;
    ``blend`` the same for its pixels, or None where no image is mixed by mixup. ``box`` is (B, 4) int64, (top, left,
    height, width) of what cutmix takes from the partner, or None where it takes nothing from any.
    """

    partner: Tensor
    shares: Tensor
    blend: Tensor | None
    box: Tensor | None


def pair_images(mixing: Mixing) -> Pairs:
    """Give each image the one half a batch further as its partner.

    Repeated copies of a sample, which are neighbours, so do not meet, and pairs do not depend on the number of ranks:
    of R ranks, rank r holds positions r, r + R, ..., so half its share is half the batch, and of the same group. (timm
    pairs the first with the last.) SpecError if the number of images is odd.
    """
    num = len(mixing.lam)
    half, rest = divmod(num, 2)
    if rest:
        raise SpecError(
            f"mixup and cutmix pair the images of a rank's share, and this one has {num}; "
            "choose a batch size that is a multiple of twice the number of ranks"
        )
    kept = np.where(mixing.is_cutmix, 1.0, mixing.lam)  # of the pixels outside the box
    return Pairs(
        torch.arange(num).roll(half),
        _shares(mixing.lam),
        None if mixing.is_cutmix.all() else _shares(kept),
        torch.from_numpy(mixing.boxes) if mixing.is_cutmix.any() else None,
    )


def _shares(own_B: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(np.stack([own_B, 1 - own_B]).astype(np.float32))


def mix_(images: Tensor, labels: Tensor, pairs: Pairs, num_classes: int) -> tuple[Tensor, Tensor]:
    """Mix each image with its partner, in place, and the labels' one-hot rows alike.

    Args:
        images, labels: (B, 3, S, S) float32, and (B,).
        pairs: partners, and how each image is mixed with its own.
        num_classes: width of the targets, which are (B, num_classes) float32.
    """
    partners = images.index_select(0, pairs.partner)
    if pairs.blend is not None:
        own, others = pairs.blend[:, :, None, None, None]
        images.mul_(own).addcmul_(partners, others)
    if pairs.box is not None:
        place = torch.arange(images.shape[-1], device=images.device)
        first_B2, sides_B2 = pairs.box.split(2, dim=1)
        offset_B2S = place - first_B2[..., None]
        rows_BS, columns_BS = ((offset_B2S >= 0) & (offset_B2S < sides_B2[..., None])).unbind(1)
        inside_B1SS = rows_BS[:, None, :, None] & columns_BS[:, None, None, :]
        torch.where(inside_B1SS, partners, images, out=images)
    one_hot = (labels[:, None] == torch.arange(num_classes, device=labels.device)).float()
    own, others = pairs.shares[:, :, None]
    return images, one_hot * own + one_hot.index_select(0, pairs.partner) * others
