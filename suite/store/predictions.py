"""The class that a finished run predicts for each test image, in one compressed file of its folder.

Evaluation -> ``predictions.npz``, whose digest stands in the result -> comparisons of runs by image. Each image's label
stands beside its prediction, so that the file can be read without the images.
"""

import hashlib
import io
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suite.base.files import read_file, write_atomically
from suite.base.reading import unreadable
from suite.store.run_directory import RunDirectory

_MOST_BYTES = 1 << 26  # that the file may unpack to: a thousand times that of our sets
FIRST_WITH_PREDICTIONS = 6  # format of results, all of which name predictions since
NOT_COUNTED = -1  # predicted for a test image that could not be decoded
_OF_DAMAGE = (OSError, EOFError, ValueError, TypeError, KeyError, RuntimeError, MemoryError, zlib.error)


@dataclass(frozen=True)
class Predictions:
    """Classes of all N test images, in the order of the test split: each field (N,) int16."""

    predicted: NDArray[np.int16]
    labels: NDArray[np.int16]

    @property
    def is_right(self) -> NDArray[np.bool_]:
        """Whether each image is classified right: (N,)."""
        right: NDArray[np.bool_] = self.predicted == self.labels
        return right


def write_predictions(run: RunDirectory, predictions: Predictions) -> str:
    """Write the file of a run; returns its SHA-256. The same predictions make the same bytes."""
    content = io.BytesIO()
    np.savez_compressed(content, predicted=predictions.predicted, labels=predictions.labels)
    write_atomically(run.predictions_path, content.getvalue())
    return hashlib.sha256(content.getvalue()).hexdigest()


def read_predictions(run: RunDirectory) -> Predictions | None:
    """Read a finished run's predictions; None where it kept none, as older runs.

    Raises:
        RecordError: The file is missing or is not the one that the result names.
    """
    result = run.read_result()
    if result is None or not result.predictions_sha256:
        return None
    try:
        content = read_file(run.predictions_path)
        if hashlib.sha256(content).hexdigest() != result.predictions_sha256:
            raise ValueError("its SHA-256 is not the one in result.json")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
                raise ValueError("it unpacks to more than predictions can be")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = Predictions(arrays["predicted"], arrays["labels"])
        if not all(of.ndim == 1 and of.dtype == np.int16 for of in (found.predicted, found.labels)):
            raise ValueError("expected a class of type int16 for each image")
        counted = found.predicted != NOT_COUNTED
        if not counted.any() or found.predicted[counted].min() < 0 or found.labels.min() < 0:
            raise ValueError("expected classes from 0 on")
        right = 100 * found.is_right.sum() / counted.sum()
        if abs(right - result.top1_percent) > 1e-9:
            raise ValueError(f"{right:.2f} % of them are right, result.json has {result.top1_percent:.2f}")
        return found
    except (*_OF_DAMAGE, zipfile.BadZipFile) as error:
        advice = "Bring the file that was written with the result."
        raise unreadable(run.predictions_path, error, advice) from error
