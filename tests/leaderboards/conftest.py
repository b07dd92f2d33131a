"""A suite of ConViT's Table 2 that needs no real suite, and a store to put finished runs into."""

from collections.abc import Callable
from pathlib import Path

import pytest

from suite.spec.experiment import Experiment
from suite.spec.figures import LineFigure
from suite.spec.profile import Entry, Place, Profile
from suite.spec.recipe import Recipe
from suite.spec.suite import Headline, RelativeGain, Suite, Table
from suite.store.results import PROTOCOL_VERSION, Result
from suite.store.run_directory import RunDirectory

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


def make_result(experiment: Experiment, top1_percent: float, **fields: object) -> Result:
    known = {
        "experiment": experiment,
        "top1_percent": top1_percent,
        "top5_percent": top1_percent / 2 + 50,
        "test_loss": 1.0,
        "best_top1_percent": top1_percent,
        "num_parameters": 5_700_000,
        "num_train_images": 100,
        "num_test_images": 10_000,
        "num_steps": experiment.num_steps(100),
        "images_seen": experiment.num_steps(100) * experiment.recipe.batch_size,
        "train_s": 1.0,
        "images_per_s": 80.0,
        "device": "cpu",
        "num_ranks": 1,
        "num_attempts": 1,
        "commit": "0" * 40,
        "finished_at": "2000-01-01T00:00:00+00:00",
        "protocol_version": PROTOCOL_VERSION,
    }
    return Result.model_validate(known | fields)


def finish_run(store: Path, experiment: Experiment, top1_percent: float, **fields: object) -> RunDirectory:
    """A finished run of any experiment."""
    run = RunDirectory.of(store, experiment)
    run.create(experiment)
    run.write_result(make_result(experiment, top1_percent, **fields))
    return run


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
        tables=(
            Table(
                name="convit_table2",
                item="Table 2",
                row_keys=("train_size_percent",),
                ranked="in_rows",
                derived=(
                    RelativeGain(column="top1_gap_percent", better="convit_top1", baseline="deit_top1"),
                    RelativeGain(column="top5_gap_percent", better="convit_top5", baseline="deit_top5"),
                ),
            ),
        ),
        profiles={"laptop": make_profile(32, "tiny images"), "paper": make_profile(224, "")},
        headline=Headline(
            text="ConViT over DeiT on 5 %",
            better=Place(row=("5",), column="convit_top1"),
            baseline=Place(row=("5",), column="deit_top1"),
        ),
        figures=(
            LineFigure(
                name="figure2a",
                item="Fig. 2a",
                x_key="train_size_percent",
                x_label="Training set (%)",
                y_label="Top-1 accuracy (%)",
                lines={"ConViT": "convit_top1", "DeiT": "deit_top1"},
                gain_column="top1_gap_percent",
                gain_label="Relative gain (%)",
                log_x=True,
            ),
        ),
        footnotes=("a footnote",),
    )


@pytest.fixture
def finish(tmp_path: Path) -> Finish:
    """Puts a finished run of the laptop profile into the store ``tmp_path``: family, row, seed, top-1."""

    def finish(family: str, row: str, seed: int, top1_percent: float) -> RunDirectory:
        return finish_run(tmp_path, make_experiment(family, row, 32).with_seed(seed), top1_percent)

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


@pytest.fixture
def finish_experiment(tmp_path: Path) -> Callable[..., RunDirectory]:
    """Puts a finished run of any experiment into the store ``tmp_path``: experiment, top-1, other fields of it."""

    def finish(experiment: Experiment, top1_percent: float, **fields: object) -> RunDirectory:
        return finish_run(tmp_path, experiment, top1_percent, **fields)

    return finish


@pytest.fixture
def finish_in() -> Callable[..., RunDirectory]:
    """Puts a finished run of any experiment into any store: store, experiment, top-1, other fields of it."""
    return finish_run


@pytest.fixture
def own_suite() -> Callable[..., Suite]:
    """Makes a suite of one table of our own with the columns a, b, c: entries, and fields of the table."""

    def own_suite(*entries: Entry, **fields: object) -> Suite:
        table = Table(
            name="ours", item="Ours", row_keys=("model",), columns=("a", "b", "c"), ranked="in_columns", decimals=2
        )
        place = Place(row=entries[0].row, column="a")
        profile = Profile(entries=entries, scale_note="small", device="cpu", sustained_flops=1e9)
        return Suite(
            name="own",
            paper="Nobody",
            item="nothing",
            question="Who is best?",
            tables=(table.model_copy(update=fields),),
            profiles={"laptop": profile, "paper": profile.model_copy(update={"scale_note": ""})},
            headline=Headline(text="a over a", better=place, baseline=place),
        )

    return own_suite
