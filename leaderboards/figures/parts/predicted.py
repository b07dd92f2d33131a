"""Runs -> what two models predict for each test image, by seed: by how much they differ, and how often runs agree."""

import itertools
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaderboards.boards.board import Leaderboard
from leaderboards.significance.rules import FEWEST_SHOWN
from suite.base.errors import RecordError
from suite.spec.figures import ClassFigure
from suite.store.predictions import NOT_COUNTED, Predictions, read_predictions

Array = NDArray[Any]


@dataclass(frozen=True)
class PredictedPair:
    """Two models' runs of the same seeds, on the N test images that all of them have decoded."""

    images: Array  # (N,) places in the test set
    labels: Array  # (N,) classes
    baseline: Array  # (seeds, N) classes that it predicts
    better: Array

    @property
    def difference(self) -> Array:
        """Whether the better model is right, less whether the baseline of the same seed is: (seeds, N) in -1, 0, 1."""
        is_right = np.stack([self.better, self.baseline]) == self.labels
        difference: Array = np.subtract(*is_right, dtype=np.float64)
        return difference


def read_pairs(figure: ClassFigure, leaderboard: Leaderboard) -> tuple[dict[str, PredictedPair], list[str]]:
    """Read the pairs that have enough common seeds for an interval, and the notes that count the runs left out.

    Raises:
        RecordError: Predictions cannot be read, or two runs were not tested on the same images.
    """
    cells = {place: leaderboard.cell(place) for place in figure.places}
    runs = {place: cell.provenance.runs if cell and cell.is_usable else {} for place, cell in cells.items()}
    read = {place: {seed: read_predictions(run) for seed, run in of.items()} for place, of in runs.items()}
    kept = {place: {seed: one for seed, one in of.items() if one} for place, of in read.items()}
    tested = [(runs[place][seed], found.labels) for place, of in kept.items() for seed, found in of.items()]
    for run, labels in tested:
        if not np.array_equal(labels, tested[0][1]):
            raise RecordError(
                f"{run.predictions_path} is of other test images than {tested[0][0].predictions_path}: their labels "
                "differ. Move the run that was tested on other images out of the store."
            )
    num_without, num_alone = sum(len(runs[place]) - len(kept[place]) for place in runs), 0
    pairs = {}
    for title, pair in figure.pairs.items():
        sides = kept[pair.baseline], kept[pair.better]
        seeds = sorted(set.intersection(*map(set, sides)))
        num_alone += sum(map(len, sides)) - 2 * len(seeds)
        if len(seeds) >= FEWEST_SHOWN and (found := _pair(*([of[seed] for seed in seeds] for of in sides))):
            pairs[title] = found
    left_out = {"without predictions": num_without, "whose seed the other model lacks": num_alone}
    return pairs, [f"Runs {which}, left out: {num}." for which, num in left_out.items() if num]


def _pair(baseline: list[Predictions], better: list[Predictions]) -> PredictedPair | None:
    """The images that all runs have decoded, but classes of a single image, which say nothing of other images."""
    predicted = [np.stack([run.predicted for run in of]) for of in (baseline, better)]
    labels = baseline[0].labels
    counted = np.concatenate(predicted).min(axis=0) > NOT_COUNTED
    images = np.flatnonzero(counted & (np.bincount(labels[counted], minlength=labels.max() + 1)[labels] > 1))
    return PredictedPair(images, labels[images], *(of[:, images] for of in predicted)) if len(images) else None


def agreement(one: Array, other: Array, labels: Array) -> tuple[float, float, float]:
    """The share of images on which two runs predict one class, that on which both are right, and Cohen's kappa of the
    classes, NaN where all are one: means over all pairs of runs of different seeds.

    Args:
        one, other: (seeds, N) predicted classes of two models, or of one model twice.
        labels: (N,) classes.
    """
    num = 1 + max(one.max(), other.max())
    shares = [np.array([np.bincount(run, minlength=num) for run in of]) / len(labels) for of in (one, other)]
    found = []
    for i, j in itertools.permutations(range(len(one)), 2):
        same, chance = (one[i] == other[j]).mean(), shares[0][i] @ shares[1][j]
        both_right = ((one[i] == labels) & (other[j] == labels)).mean()
        found.append((same, both_right, (same - chance) / (1 - chance) if chance < 1 else np.nan))
    same, both_right, kappa = np.mean(found, axis=0).tolist()
    return same, both_right, kappa


def count_images(difference: Array) -> tuple[Array, Array]:
    """The number of images by the sum of their seeds' differences, from -seeds to seeds, and the number to expect by
    luck: if, of two runs of a seed of which one is right, either is as likely to be that one."""
    n = len(difference)
    found = np.bincount(difference.sum(axis=0).astype(int) + n, minlength=2 * n + 1)
    expected = np.zeros(2 * n + 1)
    for k, num_images in enumerate(np.bincount(np.abs(difference).sum(axis=0).astype(int))):
        expected[n - k : n + k + 1 : 2] += num_images * np.array([comb(k, j) for j in range(k + 1)]) / 2**k
    return found, expected
