"""Which samples stand for a whole set: the training images that a fraction keeps, by ConViT's rule (arXiv:2103.10697,
Sec. 4 and its public code), and test images taken from all classes in turn."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from imagesets.randomness import Purpose, random_order
from suite.base.errors import DataError


def fraction_indices(
    labels: ArrayLike, fraction: float, num_classes: int, seed: int | None = None
) -> NDArray[np.int64]:
    """Indices of the first floor(n * fraction) samples of each class, ascending.

    Smaller fractions lie within larger ones. DataError if a class would keep no sample.

    Args:
        labels, fraction: (N,) of the training samples, and the share of each class that is kept.
        num_classes: the number of classes, none of which may be empty.
        seed: the seed of a random order of each class; None is the data set's own order.
    """
    classes = np.asarray(labels)
    order = np.arange(len(classes)) if seed is None else random_order(seed, Purpose.SHARE, len(classes))
    by_class = order[np.argsort(classes[order], kind="stable")]
    starts = np.searchsorted(classes[by_class], np.arange(num_classes + 1))
    kept = []
    for label in range(num_classes):
        members = by_class[starts[label] : starts[label + 1]]
        # 1e-9: 0.3 * 5000 must not floor to 1499 by binary rounding
        count = math.floor(len(members) * fraction + 1e-9)
        if count == 0:
            raise DataError(
                f"fraction {fraction} keeps none of the {len(members)} training images of class {label}; "
                f"expected at least one: use a fraction of {1 / max(1, len(members)):.4g} or more"
            )
        kept.append(members[:count])
    return np.sort(np.concatenate(kept))


def hold_out(labels: ArrayLike, num_classes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split training samples for a search, by their labels (N,): indices of those to train on, and of the last tenth of
    each class, to choose by; both ascending."""
    by_class = [np.flatnonzero(np.asarray(labels) == label) for label in range(num_classes)]
    held_out = [members[len(members) - math.ceil(len(members) / 10) :] for members in by_class]
    left = [members[: len(members) - len(last)] for members, last in zip(by_class, held_out, strict=True)]
    return np.sort(np.concatenate(left)), np.sort(np.concatenate(held_out))


def spread_over_classes(labels: ArrayLike, count: int) -> NDArray[np.int64]:
    """Choose samples of as many classes as may be, however a set is sorted: the first of each class in the order of
    labels, then the second of each, and so on. Of more classes than samples, those at equal distances have one each.
    Given are indices of ``count`` samples, or of all of them if there are fewer."""
    classes = np.asarray(labels)
    by_class = np.argsort(classes, kind="stable")
    turn = np.arange(len(classes)) - np.searchsorted(classes[by_class], classes[by_class])
    order = by_class[np.argsort(turn, kind="stable")]
    num_classes = max(count, int((turn == 0).sum()))
    return order[:num_classes][np.arange(min(count, len(order))) * num_classes // max(count, 1)]
