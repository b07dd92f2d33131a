"""Results -> one CSV file with the columns of timm's own tables: accuracy as in its ``results-*.csv``, speed as in its
``benchmark-train-*.csv``. No torch.
"""

import contextlib
from collections.abc import Iterable

import pandas as pd

from imagesets.prepared import find_info
from suite.base.errors import SpecError
from suite.spec.experiment import Experiment
from suite.store.results import Result

INTERPOLATION = "bicubic"
COLUMNS = (
    "model", "top1", "top1_err", "top5", "top5_err", "param_count", "img_size", "crop_pct", "interpolation",
    "train_samples_per_sec", "train_step_time", "train_batch_size", "train_img_size", "infer_samples_per_sec",
    "infer_img_size", "infer_gmacs",
)  # fmt: skip


def render_timm_results(results: Iterable[Result]) -> str:
    """Write a line per result, best first: percent, millions of parameters, images/s and milliseconds a step.

    ``model`` is the run's id. What a run has not, such as the speed of a training that did not take place, is empty;
    so is what only its image set tells, where that does not lie here.
    """
    lines = [_line(result) for result in sorted(results, key=lambda result: -result.top1_percent)]
    return str(pd.DataFrame(lines, columns=COLUMNS, dtype=object).to_csv(index=False, lineterminator="\n"))


def _line(result: Result) -> dict[str, object]:
    experiment = result.experiment
    size = experiment.image_size
    line: dict[str, object] = {
        "model": experiment.id,
        "top1": f"{result.top1_percent:.3f}",
        "top1_err": f"{100 - result.top1_percent:.3f}",
        "top5": f"{result.top5_percent:.3f}",
        "top5_err": f"{100 - result.top5_percent:.3f}",
        "param_count": f"{result.num_parameters / 1e6:.2f}",
        "img_size": size,
        "interpolation": INTERPOLATION,
    }
    with contextlib.suppress(SpecError):  # a set of the user's own that does not lie here
        line["crop_pct"] = f"{evaluation_crop(experiment):g}"
    if result.num_steps:
        line |= {
            "train_samples_per_sec": f"{result.images_per_s:.2f}",
            "train_step_time": f"{result.train_s / result.num_steps * 1000:.3f}",
            "train_batch_size": experiment.recipe.batch_size,
            "train_img_size": size,
        }
    if result.inference_images_per_s:
        line |= {"infer_samples_per_sec": f"{result.inference_images_per_s:.2f}", "infer_img_size": size}
    return line | ({"infer_gmacs": f"{result.num_macs / 1e9:.4f}"} if result.num_macs else {})


def evaluation_crop(experiment: Experiment) -> float:
    """The share of a resized test image's side that the network sees: 1 for images stored in the network's size."""
    info = find_info(experiment.dataset)
    have_one_size = info.can_be_fetched or info.packaged  # photographs have many
    return 1.0 if have_one_size and info.image_size == experiment.image_size else experiment.recipe.test_crop
