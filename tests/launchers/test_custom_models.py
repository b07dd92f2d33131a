"""Custom models on the command line: their grammar, their trial, and what is refused before anything is trained."""

import io

import pytest
from rich.console import Console

from launchers.command.command_line import parse_options
from launchers.command.custom_models import check, parse_custom_model, refuse_broken
from launchers.command.grid_request import GridRequest
from launchers.grid import main
from launchers.slurm.submit import _locate
from suite.base.errors import SpecError
from suite.base.exit_codes import Exit
from suite.papers import get_suite
from suite.store.run_directory import RunDirectory

MODEL = """
import sys
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, *, num_classes, image_size, dim=8, fault=""):
        super().__init__()
        self.fault, self.num_calls = fault, 0
        self.first = nn.Conv2d(3, dim, image_size)
        self.last = nn.Linear(dim, num_classes + (fault == "wrong shape"))
        if fault == "exits early":
            sys.exit(4)
        if fault == "huge":
            self.huge = nn.Linear(10**6, 10**6)
        if fault == "unused":
            self.idle = nn.Linear(2, 2)
        if fault == "hidden state":
            self.scale = torch.rand(())
        if fault == "random elsewhere":
            self.first.weight.data += torch.rand((), generator=torch.Generator().manual_seed(id(self)))
        if fault == "shared":
            self.again = self.last.weight

    def forward(self, images):
        logits = self.last(self.first(images).flatten(1))
        if self.fault == "hidden state":
            logits = logits * self.scale
        if self.fault == "detached":
            logits = logits.detach()
        if self.fault == "exits":
            sys.exit(3)
        if self.fault == "random evaluation" and not self.training:
            logits = logits * torch.rand(())
        if self.fault == "counts its calls" and not self.training:
            self.num_calls += 1
            logits = logits + self.num_calls
        return logits / 0 if self.fault == "infinite" else logits
"""


LONG_NAME = "mine_of_twenty_letters"


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return "mine=model.py:Model"


def test_options_and_recipe_are_read_with_their_types(model):
    given = parse_options(["--challenger", model, "dim=192", "flat=true", "rate=0.5", "kind=b", "recipe.epochs=2"])
    (words,) = given.custom_models
    custom_model = parse_custom_model(words)
    assert custom_model.options == {"dim": 192, "flat": True, "rate": 0.5, "kind": "b"}
    assert custom_model.recipe == {"epochs": 2}
    assert (custom_model.source.kind, custom_model.source.name) == ("file", "Model")


def test_one_of_ours_and_several_can_be_entered_and_chosen_by_only(model, tmp_path):
    words = ["--challenger", model, "--challenger", "other=deit_micro", "depth=2", "--only", "model=mine"]
    grid = GridRequest.of(parse_options(["--suite", "sample_efficiency", *words]))
    assert {experiment.model for experiment in grid.experiments} == {"mine"}
    assert [custom_model.source is None for custom_model in grid.custom_models] == [False, True]


def test_a_recipe_is_asked_of_the_scale_that_is_trained_alone(model):
    words = ["--suite", "sample_efficiency", "--challenger", model, "recipe.batch_size=48"]
    grid = GridRequest.of(parse_options(words))
    assert {e.recipe.batch_size for e in grid.experiments if e.model == "mine"} == {48}
    with pytest.raises(SpecError, match="mix_group of 256 for a batch of 48"):  # the paper's recipe has one
        GridRequest.of(parse_options([*words, "--profile", "paper"]))
    with pytest.raises(SpecError, match="unknown profile 'laptpo-bf16'"):
        GridRequest.of(parse_options([*words, "--profile", "laptpo", "--precision", "bf16"]))


def test_it_is_said_in_whose_place_a_custom_model_is_entered(tmp_path):
    console = Console(file=io.StringIO(), width=40)
    for depth in ("2", "2", "3"):
        words = ["--suite", "sample_efficiency", "--challenger", "mine=deit_micro", f"depth={depth}"]
        grid = GridRequest.of(parse_options([*words, "--runs", str(tmp_path)]))
        own = next(entry.experiment for entry in grid.profile.entries if entry.custom_model)
        RunDirectory.of(tmp_path, own).create(own)
        grid.prepare((), console)
    (said,) = console.file.getvalue().splitlines()
    assert said.startswith("sample_efficiency/laptop shows no longer, though its runs stay: ")
    assert said.endswith("mine: deit_micro, depth=2")


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (["model.py:Model", "depth=3", "rate=0.5"], {}),
        (["model.py:Model", "depth=3.0", "rate=0.25"], {"depth": 3.0, "rate": 0.25}),
        (["model.py:make", "depth=3"], {}),
        (["model.py:wrapped", "depth=3"], {"depth": 3}),
        (["model.py:again", "depth=3"], {"depth": 3}),
        (["model.py:made", "depth=3"], {"depth": 3}),
        (["model.py:NoInit", "depth=3"], {"depth": 3}),
        (["deit_micro", "depth=6"], {"depth": 6}),
        (["deit_micro", "depth=3"], {}),
    ],
)
def test_a_default_that_is_spelt_out_is_left_out_where_the_source_alone_tells_it(given, left, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(
        "class Model(Base):\n    def __init__(self, num_classes, depth=3, *, rate=0.5, width=f()): ...\n"
        "def make(*, num_classes, depth=3): ...\n@wrap\ndef wrapped(depth=3): ...\n"
        "def again(depth=3): ...\nagain = wrap(again)\nmade = partial(make, depth=4)\nclass NoInit: ...\n"
    )
    assert parse_custom_model([f"mine={given[0]}", *given[1:]]).options == left


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mine"], "expected NAME=MODEL first"),
        (["my-vit=deit_s"], "expected letters, digits and _"),
        (["mine=deit_s", "dim"], "found 'dim', expected OPTION=VALUE"),
        (["mine=deit_s", "recipe.learning_rat=1"], "Did you mean 'learning_rate'"),
        (["mine=deit_s", "drop_path=0.1"], "it is the recipe's: recipe.drop_path"),
        (["mine=deit_s", "image_size=64"], "the suite says it"),
        (["mine=gone.py:Model"], "gone.py cannot be read"),
    ],
)
def test_what_is_no_custom_model_is_misuse(words, said):
    with pytest.raises(SpecError) as refused:
        parse_custom_model(words)
    assert said in str(refused.value)


def test_an_image_set_that_is_not_there_is_misuse():
    with pytest.raises(SpecError, match="unknown dataset 'flowerz'"):
        GridRequest.of(parse_options(["--suite", "sample_efficiency", "--dataset", "flowerz"]))


@pytest.fixture
def checked(model, monkeypatch):
    monkeypatch.setattr("suite.cost.known_flops.cache_folder", lambda name: __import__("pathlib").Path("cache"))

    def checked(*options, name="mine"):
        console = Console(file=io.StringIO(), width=80)
        found = check(parse_options(["--check", model.replace("mine", name), *options]), console)
        return int(not found.is_sound), console.file.getvalue()

    return checked


def test_a_sound_model_is_shown_with_its_cost_beside_the_papers_models(checked):
    status, said = checked("dim=8", name=LONG_NAME)
    assert status == 0
    assert said.count(": yes") == 10
    lines = {line.split()[0]: line.split() for line in said.splitlines() if line.strip()}
    num_parameters = 8 * 3 * 32 * 32 + 8 + 8 * 10 + 10
    (mine,) = (line for start, line in lines.items() if LONG_NAME.startswith(start))
    assert LONG_NAME.removeprefix(mine[0]) in lines  # in a terminal's width it goes on in the next line
    assert mine[3] == f"{num_parameters:,}"
    assert float(mine[4]) == round(2 * (8 * 3 * 32 * 32 + 8 * 10) / 1e6, 1)
    assert mine[5] == f"{16 * num_parameters / 1e6:.1f}"
    assert {"deit_micro", "convit_micro"} <= set(lines)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("wrong shape", "become logits (4, 10): no: found (4, 11)"),
        ("infinite", "the loss is finite: no: found nan"),
        (
            "detached",
            "every trainable parameter gets a gradient: no: RuntimeError: element 0 of tensors does not require grad",
        ),
        ("unused", "every trainable parameter gets a gradient: no: none in idle.weight, idle.bias"),
        ("random elsewhere", "the same numbers twice: no: two networks of one seed differ"),
        ("hidden state", "the same after saving and loading: no: the loaded network computes other logits"),
        ("exits", "become logits (4, 10): no: SystemExit: 3"),
        ("exits early", "builds for 10 classes and images of 32 pixels: no: model Model cannot be built"),
        ("random evaluation", "the same twice in evaluation: no: the same images get other logits each time"),
        ("counts its calls", "the same twice in evaluation: no: the same images get other logits each time"),
        ("huge", "parameters fits in memory, with 20,000.0 GB: no: this machine has"),
        ("shared", "the same after saving and loading: no: RuntimeError: Some tensors share memory"),
        ("dimm=3", "builds for 10 classes and images of 32 pixels: no: unknown option of model Model 'dimm'"),
    ],
)
def test_each_fault_is_found_and_told_with_its_cure(checked, fault, said):
    status, text = checked(fault if "=" in fault else f"fault={fault}")
    assert status == 1
    assert said in text
    assert "To do: " in text


def test_a_model_that_cannot_be_trained_is_refused_before_anything_is(model):
    options = parse_options(["--suite", "sample_efficiency", "--challenger", model, "fault=wrong shape"])
    with pytest.raises(SpecError, match=r"mine: not so: .* become logits \(4, 10\): found \(4, 11\)\. To do: "):
        refuse_broken(GridRequest.of(options).experiments, options)


@pytest.mark.parametrize("fault", ["exits", "exits early"])
def test_a_model_that_would_end_the_process_as_it_is_counted_is_named(model, tmp_path, capsys, monkeypatch, fault):
    monkeypatch.setattr("suite.cost.known_flops.cache_folder", lambda name: tmp_path / "cache")
    words = ["--suite", "sample_efficiency", "--challenger", model, f"fault={fault}", "--dry-run"]
    assert main([*words, "--runs", str(tmp_path / "runs")]) == Exit.MISUSE
    assert "SystemExit: " in capsys.readouterr().err


def test_a_file_without_the_name_of_what_is_meant_in_it_is_told_with_all_that_it_has(model):
    for words in ("model.py", "model.py:", "model"):
        with pytest.raises(SpecError, match=r"a name in it is missing: expected model.py:Model$"):
            parse_custom_model([f"mine={words}"])
    with pytest.raises(SpecError, match=r"a name in it is missing: expected model.py:Model$"):
        get_suite("model.py")


def test_a_suite_of_one_s_own_is_found_by_a_job_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _locate("my_suite.py:SUITE") == f"{tmp_path}/my_suite.py:SUITE"
    assert _locate("sample_efficiency") == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SUITE = 3", "is int, expected a suite.spec.suite.Suite"),
        ("import nothing_like_it", "breaks when it is imported: ModuleNotFoundError"),
        ("from suite.papers.convit.sample_efficiency import SUITE", "is called 'sample_efficiency', as one of ours"),
    ],
)
def test_a_suite_that_breaks_is_named(tmp_path, text, said):
    (tmp_path / "my_suite.py").write_text(text)
    with pytest.raises(SpecError) as refused:
        get_suite(f"{tmp_path}/my_suite.py:SUITE")
    assert said in str(refused.value)
