"""Which training samples a fraction keeps: ConViT's rule (arXiv:2103.10697, Sec. 4 and its public code)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suite.errors import DataError


def fraction_indices(labels: ArrayLike, fraction: float, num_classes: int) -> NDArray[np.int64]:
    """Indices of the first floor(n * fraction) samples of each class, ascending.

    The order is the data set's own, so that smaller fractions lie within larger ones.

    Args:
        labels: (N,) class of each training sample.
        fraction: in (0, 1].

    Raises:
        DataError: if a class would keep no sample.
    """
    classes = np.asarray(labels)
    by_class = np.argsort(classes, kind="stable")
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
