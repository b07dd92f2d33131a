"""Plans that are frozen before their runs: what stands in them, and what a board says of runs that differ."""

import contextlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from launchers.command.command_line import parse_options
from launchers.command.grid_request import GridRequest
from launchers.command.options import make_resources
from launchers.grid import main
from leaderboards import judged_claims
from leaderboards.boards.board import make_leaderboard
from leaderboards.packed_records import pack_records, unpacked
from leaderboards.significance.estimates import single
from leaderboards.significance.verdicts import Measured, Question
from leaderboards.text.frozen_plan import describe_plan
from suite.base.errors import RecordError, RunError, SpecError
from suite.base.reading import seal, unseal
from suite.papers import get_suite
from suite.papers.convit.claims import CLAIMS
from suite.store.attempts import record_start
from suite.store.custom_models import record_custom_models
from suite.store.frozen_plan import read_plan, read_plan_file, write_plan
from suite.store.run_directory import RunDirectory

SUITE = get_suite("sample_efficiency")
PROFILE = SUITE.profile("laptop")
BOARD = "sample_efficiency/laptop"
AWAITED = "; until they end, no verdict is the plan's"


@pytest.fixture
def store(tmp_path):
    assert main(command(tmp_path)) == 0
    return tmp_path


def command(store, *more):
    freezing = ["--freeze", str(store / "plan.json"), "--runs", str(store)]
    return ["--suite", "sample_efficiency", "--seeds", "8-9", *freezing, *more]


@pytest.fixture
def finish(finish_in):
    def finish(store, seeds=(8, 9), plan=None):
        digest = read_plan(store, "sample_efficiency", "laptop").sha256 if plan is None else plan
        for experiment in PROFILE.experiments(seeds):
            finish_in(store, experiment, 40.0, plan_sha256=digest)

    return finish


def said(store):
    return describe_plan(make_leaderboard(SUITE, "laptop", store))


def test_a_plan_names_configurations_seeds_and_the_claims_of_the_suite(store):
    plan = json.loads((store / "plan.json").read_bytes())
    assert plan["seeds"] == [8, 9]
    assert set(plan["configurations"]) == {experiment.configuration for experiment in PROFILE.experiments()}
    claims = {claim["name"]: claim["primary"] for claim in plan["claims"]}
    assert claims["convit_gains_over_all_shares"] == "2026-11-25"
    assert (store / "plans" / "sample_efficiency-laptop.json").read_bytes() == (store / "plan.json").read_bytes()


def test_runs_of_a_plan_bear_its_digest_and_their_board_is_as_frozen(store, finish):
    options = parse_options(["--suite", "sample_efficiency", "--runs", str(store)])
    digest = read_plan(store, "sample_efficiency", "laptop").sha256
    assert make_resources(options, PROFILE, 1, 1).plan_sha256 == digest
    finish(store)
    (stated,) = said(store)
    assert stated.startswith("as frozen at 2")
    assert digest[:16] in stated


def test_a_plan_of_a_custom_model_too_is_as_frozen(tmp_path, finish_in):
    entering = ["--challenger", "mine=deit_micro", "depth=1"]
    assert main(command(tmp_path, *entering)) == 0
    grid = GridRequest.of(parse_options([*command(tmp_path, *entering)[:4], "--runs", str(tmp_path), *entering]))
    record_custom_models(tmp_path, [one.model_copy(boards=(BOARD,)) for one in grid.custom_models])
    digest = read_plan(tmp_path, "sample_efficiency", "laptop").sha256
    for experiment in grid.experiments:
        finish_in(tmp_path, experiment, 40.0, plan_sha256=digest)
    (stated,) = said(tmp_path)
    assert stated.startswith("as frozen at 2")
    assert "15 configurations" in stated


@pytest.mark.parametrize("look", [["--dry-run"], ["--show"], ["--status"], ["--cancel"]])
def test_a_plan_is_not_frozen_by_a_look(tmp_path, look, capsys):
    assert main(command(tmp_path, *look)) == 2
    assert "--freeze writes a plan, once" in capsys.readouterr().err


def test_a_plan_may_be_named_as_the_store_names_it(tmp_path):
    path = tmp_path / "plans/sample_efficiency-laptop.json"
    assert main(["--suite", "sample_efficiency", "--runs", str(tmp_path), "--freeze", str(path)]) == 0
    assert read_plan_file(path) == read_plan(tmp_path, "sample_efficiency", "laptop")


def test_a_board_names_seeds_and_runs_that_are_not_as_frozen(store, finish):
    finish(store, seeds=(8,))
    finish(store, seeds=(3,), plan="")
    stated, *differences = said(store)
    first = PROFILE.experiments()[0]
    assert stated.startswith("not as frozen")
    assert differences == [
        "seeds there and not planned: 3",
        "10 runs were not trained under this plan: they began before it, or it was changed since",
        f"runs without a result: 10 of 20 for the look at 2 seeds, such as {first.configuration} seed 9{AWAITED}",
    ]


def test_a_single_run_that_is_not_there_is_named(store, finish):
    finish(store)
    (left_out,) = PROFILE.experiments([8])[4:5]
    shutil.rmtree(RunDirectory.of(store, left_out).path)
    stated, missing = said(store)
    assert stated.startswith("as frozen at 2")
    assert ", incomplete: " in stated
    named = f"{left_out.configuration} seed 8{AWAITED}"
    assert missing == f"runs without a result: 1 of 20 for the look at 2 seeds, such as {named}"


def test_a_board_at_its_plans_first_look_lacks_no_seeds_of_the_second(tmp_path, finish):
    looks = ["--seeds", "3", "--looks", "2", "3"]
    assert main([*command(tmp_path), *looks]) == 0
    finish(tmp_path, seeds=(0, 1))
    assert len(said(tmp_path)) == 1
    finish(tmp_path, seeds=(2,))
    assert len(said(tmp_path)) == 1
    shutil.rmtree(RunDirectory.of(tmp_path, PROFILE.experiments([2])[0]).path)
    assert said(tmp_path)[1].startswith("runs without a result: 1 of 30 for the look at 3 seeds, such as ")
    for run in (tmp_path / "experiments").glob("*/seed-1"):
        shutil.rmtree(run)
    assert said(tmp_path)[1].startswith("runs without a result: 10 of 20 for the look at 2 seeds, such as ")


def test_runs_that_began_later_under_the_plan_of_another_suite_are_as_frozen(store, finish):
    finish(store, plan="another")
    assert "20 runs were not trained under this plan" in said(store)[1]  # no record says when they began
    for run in (store / "experiments").glob("*/seed-*"):
        record_start(RunDirectory(run), 1)
    (stated,) = said(store)
    assert stated.startswith("as frozen at 2")
    assert stated.endswith("20 of the runs began after it, under the plan of another suite that has them, too")


def test_a_board_without_a_plan_says_nothing_of_one(tmp_path, finish_in):
    for experiment in PROFILE.experiments():
        finish_in(tmp_path, experiment, 40.0)
    assert said(tmp_path) == []


def test_a_changed_plan_is_refused_by_its_digest(store):
    path = store / "plans" / "sample_efficiency-laptop.json"
    path.write_bytes(path.read_bytes().replace(b'"laptop"', b'"desktop"'))
    with pytest.raises(RecordError, match="another SHA-256"):
        said(store)


def test_a_plan_of_more_looks_than_have_levels_is_refused_in_a_sentence(store):
    path = next((store / "plans").glob("*.json"))
    path.write_bytes(seal(json.dumps(json.loads(unseal(path.read_bytes())) | {"looks": [1, 2, 3]}, indent=1).encode()))
    with pytest.raises(RecordError, match=r"looks: .* at most 2 items"):
        read_plan_file(path)


def test_a_plan_that_was_written_anew_is_not_the_one_that_runs_were_trained_under(store, finish):
    finish(store)
    for path in (store / "plans").iterdir():
        path.unlink()
    for folder in (store / "experiments").iterdir():
        folder.rename(store / folder.name)
    (store / "plan.json").unlink()
    assert main(command(store, "--looks", "1", "2")) == 0
    for folder in store.glob("*_micro-*"):
        folder.rename(store / "experiments" / folder.name)
    assert "20 runs were not trained under this plan" in said(store)[1]


def test_nothing_is_frozen_after_a_run_of_it_has_begun_or_twice(store, tmp_path_factory, capsys, finish_in):
    assert main(command(store)) == 1
    assert "is there already: a plan is frozen once" in capsys.readouterr().err
    other = tmp_path_factory.mktemp("runs")
    finish_in(other, PROFILE.experiments([9])[0], 40.0)
    assert main(command(other)) == 2
    assert "1 of the 20 runs of this plan have begun" in capsys.readouterr().err


def test_a_refused_plan_leaves_no_file(store, tmp_path_factory, capsys):
    again = ["--freeze", str(store / "again.json")]
    assert main([*command(store), *again]) == 1
    assert not (store / "again.json").exists()
    other = tmp_path_factory.mktemp("runs")
    assert main([*command(other), "--freeze", str(store / "plan.json")]) == 1
    assert not list(other.glob("plans/*"))
    assert f"{store / 'plan.json'} is there already" in capsys.readouterr().err


def test_of_two_plans_that_are_frozen_at_once_one_is_refused(store, tmp_path):
    plan, paths = read_plan(store, "sample_efficiency", "laptop"), [tmp_path / "new/a.json", tmp_path / "new/b.json"]

    def freeze(seeds):
        with contextlib.suppress(RunError):
            write_plan(paths, plan.model_copy(seeds=seeds, looks=(1,)))
            return seeds

    with ThreadPoolExecutor(8) as pool:
        (frozen,) = filter(None, pool.map(freeze, [(seed,) for seed in range(8)]))
    assert [read_plan_file(path).seeds for path in paths] == [frozen, frozen]


@pytest.mark.parametrize("looks", [["2", "1"], ["1"], ["1", "1", "2"], ["1", "2", "3"]])
def test_looks_rise_to_the_number_of_seeds(tmp_path, looks):
    with pytest.raises(SpecError, match="expected at most 2 rising numbers of seeds, the last of them 2"):
        parse_options(command(tmp_path, "--looks", *looks))


@pytest.mark.parametrize(
    ("looks", "seeds", "level"), [((5, 8), 5, 0.01), ((5, 8), 8, 0.045), ((8,), 8, 0.05), ((4, 9), 9, 0.0294)]
)
def test_a_claim_is_tested_at_the_level_of_its_plans_look(tmp_path, looks, seeds, level):
    command = ["--suite", "sample_efficiency", "--seeds", str(looks[-1]), "--runs", str(tmp_path)]
    assert main([*command, "--freeze", str(tmp_path / "plan.json"), "--looks", *map(str, looks)]) == 0
    board = SimpleNamespace(plan=read_plan(tmp_path, "sample_efficiency", "laptop"))
    (claim,) = (one for one in CLAIMS.claims if one.name == "convit_gains_over_all_shares")
    assert judged_claims._level(claim, seeds, lambda suite: board) == level
    effect = Measured(single({0: 1.0, 1: 2.0, 2: 3.5, 3: 2.0, 4: 1.0}))
    plain, strict = Question("a", [effect]), Question("a", [effect], level=level)
    assert strict.sides.holds == pytest.approx(plain.sides.holds * 0.05 / level)


def test_records_carry_the_plans_of_other_suites_that_their_runs_were_trained_under(store, finish, tmp_path):
    assert main(["--suite", "convit_shuffled", "--freeze", str(tmp_path / "other.json"), "--runs", str(store)]) == 0
    finish(store, plan=read_plan(store, "convit_shuffled", "laptop").sha256)
    (tmp_path / "packed").write_bytes(pack_records(make_leaderboard(SUITE, "laptop", store)).content)
    with unpacked(tmp_path / "packed") as found:
        assert sorted(path.name for path in (found / "plans").iterdir()) == [
            "convit_shuffled-laptop.json",
            "sample_efficiency-laptop.json",
        ]
