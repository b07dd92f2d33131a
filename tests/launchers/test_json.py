"""``--json``: one answer on standard output and nothing else, of the published form, with the documented status."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from launchers import grid
from launchers.core.locks import is_at_work, show_work
from launchers.grid import main
from leaderboards.schemas.answers import ANSWERS, Checked, Plan, Shown, Status, SuiteList
from suite.base.exit_codes import Exit
from suite.papers import get_suite, list_suites
from suite.store.attempts import record_start, record_usage
from suite.store.results import Failure
from suite.store.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
GRID = ["--suite", "sample_efficiency", "--profile", "smoke"]
EXPERIMENTS = get_suite("sample_efficiency").profile("smoke").experiments()


@pytest.fixture
def ask(capsys, tmp_path):
    """The answer to options, whose form is checked, and the exit status."""

    def ask(form, *options):
        store = [] if {"--list", "--check"} & set(options) else ["--runs", str(tmp_path)]
        status = main([*options, *store, "--json"])
        said = capsys.readouterr()
        answer = form.model_validate(json.loads(said.out), strict=True)
        assert set(json.loads(said.out)) == set(form.model_fields)
        return answer, status, said.err

    return ask


def test_each_answer_has_a_published_schema():
    folder = ROOT / "leaderboards/schemas"
    for name, form in ANSWERS.items():
        schema = json.loads((folder / f"{name}.schema.json").read_text())
        assert schema["$id"] == f"convolutional-prior/{name}/{form.model_fields['format_version'].default}"
        assert set(schema["required"]) >= set(form.model_fields) - {"format_version"}


def test_list_names_every_suite_with_its_cost(ask):
    answer, status, _ = ask(SuiteList, "--list")
    assert status == Exit.DONE
    assert [suite.name for suite in answer.suites] == list_suites()
    by_name = {suite.name: suite for suite in answer.suites}
    laptop = by_name["sample_efficiency"].profiles["laptop"]
    assert (laptop.unit, laptop.runs) == ("core", len(get_suite("sample_efficiency").profile("laptop").experiments()))
    assert laptop.hours > 0


def test_dry_run_says_what_is_left_and_what_it_costs(ask, finish):
    finish(EXPERIMENTS[0])
    answer, status, said = ask(Plan, *GRID, "--dry-run", "--max-parallel", "2")
    assert status == Exit.DONE
    assert "1 finished" in said  # what people read goes to the other output
    assert [run.id for run in answer.runs] == [experiment.id for experiment in EXPERIMENTS]
    assert [run.state for run in answer.runs] == ["done", *["new"] * 9]
    assert answer.hours_needed == pytest.approx(sum(run.hours for run in answer.runs[1:]))
    assert answer.devices == 2


def test_status_says_where_each_run_stands_and_what_it_drew(ask, finish, tmp_path):
    finish(EXPERIMENTS[0], device_hours=2.0, energy_kwh=0.5, peak_memory_gb=1.5)
    for experiment in EXPERIMENTS[1:3]:
        run = RunDirectory.of(tmp_path, experiment)
        run.create(experiment)
        record_start(run, num_ranks=1)
        run.append_metrics({"step": 3, "num_steps": 60})
    record_usage(run, None, 2.25)
    run.write_failure(Failure(kind="error", reason="the loss is nan", log_path="log.txt"))
    answer, status, _ = ask(Status, *GRID, "--status")
    assert status == Exit.DONE
    assert [run.state for run in answer.runs[:3]] == ["done", "interrupted", "failed"]
    assert (answer.runs[2].step, answer.runs[2].detail) == (3, "the loss is nan; see log.txt")
    assert answer.is_over
    costs = answer.costs
    assert (costs.kwh_used, costs.runs_of_known_energy, costs.peak_memory_gb) == (0.5, 1, 2.25)
    assert costs.kwh_needed == pytest.approx(0.25 * costs.hours_needed)


def test_a_grid_between_two_runs_is_not_over(ask, tmp_path):
    (tmp_path / "experiments").mkdir()
    for _ in range(2):
        show_work(tmp_path, "sample_efficiency", "smoke")
    assert is_at_work(tmp_path, "sample_efficiency", "smoke")
    assert not ask(Status, *GRID, "--status")[0].is_over  # and it ends as a grid does
    assert ask(Status, *GRID, "--status")[0].is_over


def test_what_nobody_could_read_is_null_and_unknown(ask, finish):
    finish(EXPERIMENTS[0], device_hours=2.0)
    answer, _, said = ask(Status, *GRID, "--status")
    assert (answer.costs.kwh_used, answer.costs.kwh_needed, answer.costs.peak_memory_gb) == (None, None, None)
    assert "kWh: unknown; most memory of a run, GB: unknown" in " ".join(said.split())


def test_show_holds_every_field_and_the_papers_experiment(ask):
    answer, status, _ = ask(Shown, "--suite", "sample_efficiency", "--show")
    assert status == Exit.DONE
    experiment = get_suite("sample_efficiency").profile("laptop").experiments()[0]
    assert answer.runs[0].experiment == experiment.model_dump(mode="json")
    assert answer.runs[0].paper["dataset"] == "imagenet"


@pytest.mark.parametrize(("model", "is_sound"), [("def MODEL(**_): 1 / 0", False), (None, True)])
def test_check_answers_each_question_though_the_model_itself_prints(ask, tmp_path, model, is_sound):
    path = ROOT / "examples/my_vit.py:MyViT"
    if model:
        path = tmp_path / "own.py:MODEL"
        (tmp_path / "own.py").write_text(f"print('a model that talks')\n{model}\n")
    answer, status, _ = ask(Checked, "--check", f"mine={path}")
    assert (answer.is_sound, status) == (is_sound, Exit.DONE if is_sound else Exit.FAILED)
    assert bool(answer.findings[-1].problem) == (not is_sound)
    assert answer.findings[-1].cure
    assert [cost.model for cost in answer.costs[:1]] == ["mine"] * is_sound


@pytest.mark.parametrize(
    "options",
    [
        [*GRID],
        [*GRID, "--status", "--watch"],
        [*GRID, "--cancel"],
        [*GRID, "--show", "--freeze", "plan.json"],
        [*GRID, "--status", "--serve"],
    ],
)
def test_json_goes_with_one_look_alone(capsys, tmp_path, options):
    assert main([*options, "--json", "--runs", str(tmp_path)]) == Exit.MISUSE
    said = capsys.readouterr()
    assert said.out == ""
    assert "--json" in said.err or "--serve" in said.err


def test_an_error_leaves_standard_output_empty(tmp_path):
    command = [sys.executable, ROOT / "launchers/grid.py", "--suite", "no_such", "--dry-run", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert (ended.returncode, ended.stdout) == (Exit.MISUSE, "")
    assert "unknown suite" in ended.stderr


def test_the_manual_lists_every_exit_status():
    page = (ROOT / "docs/scripts.md").read_text()
    listed = re.findall(r"^\| (\d+) \| `(\w+)` \|", page, re.MULTILINE)
    assert [(int(number), name) for number, name in listed] == [(each.value, each.name) for each in Exit]


def test_ctrl_c_ends_with_the_status_of_the_manual_and_no_half_answer(monkeypatch, capsys):
    def interrupt(console):
        raise KeyboardInterrupt

    monkeypatch.setattr(grid, "print_suites", interrupt)
    assert main(["--list", "--json"]) == Exit.INTERRUPTED
    assert capsys.readouterr().out == ""
