"""A small graph of runs, and a way to finish one without training it."""

import pytest

from suite.papers import get_suite
from suite.store.results import PROTOCOL_VERSION, Result
from suite.store.run_directory import RunDirectory

FIRST, SECOND, *_ = get_suite("sample_efficiency").profile("smoke").experiments()


@pytest.fixture
def graph():
    """Two trainings, a fine-tuning of the first, and two evaluations, of the fine-tuned one and of the second."""
    tuned = FIRST.then("pruning")
    return {
        "first": FIRST,
        "second": SECOND,
        "tuned": tuned,
        "mask_tuned": tuned.then("masking", mask="content"),
        "mask_second": SECOND.then("masking", mask="content"),
    }


@pytest.fixture
def finish(tmp_path):
    """Leave the result of a finished run in the store."""

    def finish(experiment, **fields):
        run = RunDirectory.of(tmp_path, experiment)
        run.create(experiment)
        num_steps = experiment.num_steps(320)
        result = Result(
            experiment=experiment, top1_percent=50, top5_percent=80, test_loss=1, best_top1_percent=50,
            num_parameters=1, num_train_images=320, num_test_images=64, num_steps=num_steps,
            images_seen=num_steps * experiment.recipe.batch_size, train_s=1,
            images_per_s=1920, device="cpu", num_ranks=1, num_attempts=1, commit="0" * 40, finished_at="2000-01-01",
            **{"protocol_version": PROTOCOL_VERSION} | fields,
        )  # fmt: skip
        run.write_result(result)

    return finish
