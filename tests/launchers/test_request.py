"""From the command line to what runs may use, and to the image sets that they need."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from imagesets.prepare.__main__ import main as prepare
from launchers.command import grid_request as request
from launchers.command import plan_report as report
from launchers.command.command_line import parse_options
from launchers.command.grid_request import GridRequest
from launchers.command.options import make_resources
from launchers.core.plan import make_plan
from suite.base.arguments import spell_seeds
from suite.base.errors import DataError, SpecError
from suite.papers import get_suite
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status

SUITE = get_suite("sample_efficiency")
PROFILE = SUITE.profile("smoke")
GPU = ["--device", "gpu"]
ROOT = Path(__file__).parents[2]


def test_a_teacher_s_weights_are_passed_on_by_their_absolute_path(tmp_path, monkeypatch):
    (tmp_path / "teacher.pth").touch()
    monkeypatch.chdir(tmp_path)
    options = parse_options(["--teacher-weights", "teacher.pth"])
    assert make_resources(options, PROFILE, 1, 1).teacher_weights == str(tmp_path / "teacher.pth")


def test_a_teacher_without_weights_is_refused_before_anything_starts(tmp_path):
    paper = ["--suite", "convit_distillation", "--profile", "paper", "--runs", str(tmp_path)]
    with pytest.raises(SpecError, match=r"regnety_160 needs its trained weights.*--teacher-weights FILE"):
        GridRequest.of(parse_options(paper))
    assert GridRequest.of(parse_options([*paper, "--dry-run"])).experiments


def test_a_home_folder_that_the_shell_left_as_it_is_is_found_in_every_path(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    options = parse_options(["--data-dir=~/x", "--runs=~/y"])
    assert (options.data_dir, options.runs) == (tmp_path / "x", tmp_path / "y")
    assert parse_options(["--runs=~nobody-of-that-name/y"]).runs == Path("~nobody-of-that-name/y")
    packages = (
        path for name in ("suite", "launchers", "datasets", "leaderboards") for path in (ROOT / name).rglob("*.py")
    )
    unexpanded = [path.relative_to(ROOT).as_posix() for path in packages if "type=Path" in path.read_text()]
    assert unexpanded == ["suite/execute.py"]  # which is called by other programs of ours


def test_weights_that_are_not_there_are_misuse():
    with pytest.raises(SpecError, match=r"--teacher-weights nowhere.pth: there is no such file"):
        make_resources(parse_options(["--teacher-weights", "nowhere.pth"]), PROFILE, 1, 1)


def test_stage_is_a_folder_or_a_name_that_the_node_knows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given, expected in (("x", str(tmp_path / "x")), ("slurm", "slurm"), ("$SCRATCH/x", "$SCRATCH/x")):
        assert make_resources(parse_options(["--stage", given]), PROFILE, 1, 1).stage == expected


@pytest.fixture
def make_ready(tmp_path, monkeypatch, graph):
    """Asks for the data of one run on each of two sets, of which one cannot be had; returns which were asked for."""
    asked = []

    def fetch(name, storage_format, data_dir):
        asked.append(name)
        if name == "svhn":
            raise DataError("svhn cannot be fetched.")

    def make_ready(*datasets):
        monkeypatch.setattr(request, "make_ready", fetch)
        experiments = [graph["first"].model_copy(update={"dataset": name}) for name in datasets]
        grid = GridRequest(SUITE, "smoke", PROFILE, experiments, parse_options(["--runs", str(tmp_path)]))
        grid._make_data_ready(make_plan(experiments, tmp_path, Resources()))
        return asked

    return make_ready


def test_only_the_image_sets_of_runs_that_are_left_are_made_ready(make_ready):
    assert make_ready("cifar100", "cifar10") == ["cifar10", "cifar100"]


def test_where_one_image_set_cannot_be_had_it_is_said_how_to_train_on_the_others(make_ready):
    with pytest.raises(DataError, match=r"svhn cannot be fetched. `--only dataset=cifar10 dataset=cifar100` trains"):
        make_ready("svhn", "cifar10", "cifar100")
    with pytest.raises(DataError, match=r"^svhn cannot be fetched\.$"):
        make_ready("svhn")


def test_what_is_planned_again_since_it_is_void_is_set_aside(tmp_path, graph, finish):
    finish(graph["first"], protocol_version=0)
    finish(graph["second"])
    options = parse_options(["--runs", str(tmp_path), "--retry-failed"])
    grid = GridRequest(SUITE, "smoke", PROFILE, list(graph.values()), options)
    grid.forget_failures(make_plan(grid.experiments, tmp_path, Resources(), retry_failed=True))
    assert [RunDirectory.of(tmp_path, graph[name]).result_path.exists() for name in ("first", "second")] == [
        False,
        True,
    ]


def test_a_result_that_another_grid_has_made_since_the_plan_is_no_failure_to_forget(tmp_path, graph, finish):
    run = RunDirectory.of(tmp_path, graph["first"])
    run.create(graph["first"])
    run.record_failure("error", "no space left on the disk")
    options = parse_options(["--runs", str(tmp_path), "--retry-failed"])
    grid = GridRequest(SUITE, "smoke", PROFILE, [graph["first"]], options)
    plan = make_plan(grid.experiments, tmp_path, Resources(), retry_failed=True)
    finish(graph["first"])
    grid.forget_failures(plan)
    assert find_run_status(run, graph["first"]).state == "done"


def test_the_list_of_suites_says_how_many_runs_they_have_and_what_they_cost(monkeypatch):
    monkeypatch.setattr(report, "list_suites", lambda: ["sample_efficiency"])
    console = Console(width=120, file=io.StringIO())
    report.print_suites(console)
    text = console.file.getvalue()
    assert SUITE.question.split()[0] in text
    assert "laptop: 10 runs" in text
    assert "paper: 10 runs, 332 GPU-h" in text


@pytest.mark.parametrize(
    ("suite", "every_epoch"),
    [("convit_psa", True), ("convit_cifar100", True), ("convit_ablation", True), ("init_heads", False)],
)
def test_runs_that_any_suite_shows_with_their_best_are_evaluated_after_every_epoch_on_gpus(suite, every_epoch):
    for name, profile in get_suite(suite).profiles.items():
        options = parse_options(["--suite", suite, "--profile", name])
        expected = every_epoch and profile.device == "gpu"  # the ablation shares its S+ with Fig. 11b
        assert make_resources(options, profile, 1, 1).evaluate_every_epoch == expected


def test_another_device_than_the_profile_s_trains_the_same_experiments_there():
    here, there = (GridRequest.of(parse_options(["--suite", SUITE.name, "--profile", "smoke", *o])) for o in ([], GPU))
    assert (here.profile.device, there.profile.device) == ("cpu", "gpu")
    assert [experiment.id for experiment in there.experiments] == [experiment.id for experiment in here.experiments]
    assert make_resources(there.options, there.profile, 1, 1).device == "gpu"


def make_own_set(folder, counts):
    """A prepared set of so many training images of each class."""
    images = np.random.default_rng(0).integers(0, 256, (max(counts), 32, 32, 3), dtype=np.uint8)
    for label, count in enumerate(counts):
        for split, number in (("train", count), ("val", 1)):
            (folder / "own" / split / f"class{label}").mkdir(parents=True)
            for image in range(number):
                Image.fromarray(images[image]).save(folder / "own" / split / f"class{label}" / f"{image:03}.png")
    where = ["--source", str(folder / "own"), "--format", "folder", "--out", str(folder / "data")]
    assert prepare(["--dataset", "own", *where]) == 0


def test_a_plan_says_before_it_trains_what_too_few_images_of_one_s_own_come_to(tmp_path):
    make_own_set(tmp_path, [60, 50])
    where = ["--dataset", "own", "--data-dir", str(tmp_path / "data"), "--loader", "folder", "--runs", str(tmp_path)]
    grid = GridRequest.of(parse_options(["--suite", "sample_efficiency", "--profile", "laptop", *where]))
    said = io.StringIO()
    grid.plan(make_resources(grid.options, grid.profile, 1, 1), Console(file=said, width=1000))
    assert "warning: 8 runs train for 1 steps at most" in said.getvalue()
    assert "warning: 2 runs on own will fail: fraction 0.01 keeps none of the 60 training images" in said.getvalue()
    assert "use a fraction of 0.0" in said.getvalue()
    assert "CIFAR" not in said.getvalue()
    assert "own at 32 pixels, 20 % of it the full set, seen for 1.8 epochs" in said.getvalue()
    enough = GridRequest(SUITE, "smoke", PROFILE, PROFILE.experiments(), parse_options(["--runs", str(tmp_path)]))
    said = io.StringIO()
    enough.plan(Resources(), Console(file=said, width=1000))
    assert "warning" not in said.getvalue()


@pytest.mark.parametrize(("text", "seeds"), [("3", [0, 1, 2]), ("8-10", [8, 9, 10]), ("5-5", [5])])
def test_seeds_are_a_number_or_the_first_and_the_last(text, seeds):
    options = parse_options(["--suite", "sample_efficiency", "--seeds", text])
    planned = {experiment.seed for experiment in GridRequest.of(options).experiments}
    assert sorted(planned) == seeds
    assert spell_seeds(options.seeds) == text


@pytest.mark.parametrize("text", ["0", "9-8", "8-", "-8", "8-x", "0-10000", "1-99999999999"])
def test_seeds_that_are_none_or_too_many_are_refused(text, capsys):
    with pytest.raises(SystemExit):
        parse_options(["--suite", "sample_efficiency", f"--seeds={text}"])
    assert "argument --seeds: found" in capsys.readouterr().err
