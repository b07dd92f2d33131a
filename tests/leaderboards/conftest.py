"""A suite of ConViT's Table 2 that needs no real suite, and a store to put finished runs into."""

from collections.abc import Callable
from pathlib import Path

import pytest

from suite.records import Result, RunDirectory
from suite.spec import Entry, Experiment, LineFigure, Profile, Recipe, RelativeGain, Suite

ROWS = ("5", "10", "30", "50", "100")
RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)

Finish = Callable[[str, str, int, float], RunDirectory]


def make_experiment(family: str, row: str, image_size: int) -> Experiment:
    return Experiment(
        model=family, dataset="cifar10", image_size=image_size, recipe=RECIPE, train_fraction=int(row) / 100
    )


def make_profile(image_size: int, scale_note: str) -> Profile:
    entries = tuple(
        Entry(
            row=(row,),
            columns={f"{family}_top1": "top1_percent", f"{family}_top5": "top5_percent"},
            experiment=make_experiment(family, row, image_size),
        )
        for row in ROWS
        for family in ("deit", "convit")
    )
    return Profile(entries=entries, scale_note=scale_note, device="cpu", sustained_flops=1e9)


def make_result(experiment: Experiment, top1_percent: float) -> Result:
    return Result(
        experiment=experiment,
        top1_percent=top1_percent,
        top5_percent=top1_percent / 2 + 50,
        test_loss=1.0,
        best_top1_percent=top1_percent,
        num_parameters=5_700_000,
        num_train_images=100,
        num_test_images=100,
        num_steps=10,
        images_seen=80,
        train_s=1.0,
        images_per_s=80.0,
        device="cpu",
        num_ranks=1,
        num_attempts=1,
        commit="0" * 40,
        finished_at="2000-01-01T00:00:00+00:00",
    )


@pytest.fixture(autouse=True)
def skip_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of small records; that they would survive a power cut is not what is tested here."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture
def table2() -> Suite:
    return Suite(
        name="table2",
        paper="ConViT",
        item="Table 2",
        question="Does a convolutional prior help?",
        table="convit_table2",
        row_keys=("train_size_percent",),
        profiles={"laptop": make_profile(32, "tiny images"), "paper": make_profile(224, "")},
        derived=(
            RelativeGain(column="top1_gap_percent", better="convit_top1", baseline="deit_top1"),
            RelativeGain(column="top5_gap_percent", better="convit_top5", baseline="deit_top5"),
        ),
        figure=LineFigure(
            x_key="train_size_percent",
            x_label="Training set (%)",
            y_label="Top-1 accuracy (%)",
            lines={"ConViT": "convit_top1", "DeiT": "deit_top1"},
            gain_column="top1_gap_percent",
            gain_label="Relative gain (%)",
            log_x=True,
        ),
        footnotes=("a footnote",),
    )


@pytest.fixture
def finish(tmp_path: Path) -> Finish:
    """Puts a finished run of the laptop profile into the store ``tmp_path``: family, row, seed, top-1."""

    def finish(family: str, row: str, seed: int, top1_percent: float) -> RunDirectory:
        experiment = make_experiment(family, row, 32).with_seed(seed)
        run = RunDirectory.of(tmp_path, experiment)
        run.create(experiment)
        run.write_result(make_result(experiment, top1_percent))
        return run

    return finish


@pytest.fixture
def fill(finish: Finish) -> Callable[[int], None]:
    """Finishes every cell with so many seeds; values differ by cell and seed."""

    def fill(num_seeds: int) -> None:
        for place, row in enumerate(ROWS):
            for seed in range(num_seeds):
                finish("deit", row, seed, 40 + 8 * place + 0.5 * seed)
                finish("convit", row, seed, 50 + 6 * place + 0.25 * seed**2)

    return fill
