import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.figures.parts.runs import curve_behind
from leaderboards.judged_claims import judge
from leaderboards.text.csv_files import render_csv, render_long_csv
from leaderboards.text.markdown import render_markdown
from suite.base.errors import RecordError
from suite.spec.claims import Claim, Logged, PaperClaims, number
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Place
from suite.spec.recipe import Recipe
from suite.store.results import Failure
from suite.store.run_directory import RunDirectory

RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)
TRAINED = Experiment(model="deit_ti", dataset="cifar10", image_size=32, recipe=RECIPE)
PRUNED = TRAINED.then("pruning")
MASKED = PRUNED.then("masking", mask="position_embedding")


@pytest.fixture
def suite(own_suite):
    entries = [
        Entry(row=(row,), columns={"a": "top1_percent"}, experiment=experiment)
        for row, experiment in (("pruned", PRUNED), ("masked", MASKED))
    ]
    return own_suite(*entries)


def cell_of(suite, store, row, seeds=None):
    return make_leaderboard(suite, "laptop", store, seeds).board().cells[(row,), "a"]


def test_a_result_of_another_protocol_is_void_and_says_how_to_replace_it(suite, finish_experiment, tmp_path):
    finish_experiment(TRAINED, 90)
    finish_experiment(TRAINED.with_seed(1), 90)
    finish_experiment(PRUNED, 80)
    finish_experiment(PRUNED.with_seed(1), 20, protocol_version=0)
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    cell = leaderboard.board().cells[("pruned",), "a"]
    assert (cell.status, cell.estimate.values) == ("void", {0: 80})
    assert "80.00 **not counted 1/2**" in render_markdown(leaderboard)
    assert "made under protocol 0, expected" in render_markdown(leaderboard)
    assert "--retry-failed" in render_markdown(leaderboard)
    assert render_csv(leaderboard.board()).splitlines()[1] == "pruned,,,"


def test_what_took_over_a_void_run_is_void_too(suite, finish_experiment, tmp_path):
    finish_experiment(TRAINED, 90, protocol_version=0)
    finish_experiment(PRUNED, 80, parent=TRAINED.id)
    cell = cell_of(suite, tmp_path, "pruned")
    assert (cell.status, cell.mean) == ("void", None)
    assert f"took over {TRAINED.id}, which is void" in cell.coverage.failures[0].reason


def test_a_run_that_waits_for_another_says_for_which(suite, tmp_path):
    cell = cell_of(suite, tmp_path, "masked")
    assert cell.status == "missing"
    assert cell.coverage.waiting == (f"needs {PRUNED.id}, which needs {TRAINED.id}, which is new",)
    markdown = render_markdown(make_leaderboard(suite, "laptop", tmp_path))
    assert f"- pruned: needs {TRAINED.id}, which is new\n" in markdown


def test_a_run_that_waits_for_an_unfinished_one_says_so(suite, tmp_path):
    run = RunDirectory.of(tmp_path, TRAINED)
    run.create(TRAINED)
    run.append_metrics({"step": 1})
    assert cell_of(suite, tmp_path, "pruned").coverage.waiting == (f"needs {TRAINED.id}, which is interrupted",)


def test_a_run_that_waits_for_a_failed_one_has_failed(suite, tmp_path):
    run = RunDirectory.of(tmp_path, TRAINED)
    run.create(TRAINED)
    run.write_failure(Failure(kind="error", reason="nan", log_path="log"))
    pruned, masked = (cell_of(suite, tmp_path, row) for row in ("pruned", "masked"))
    assert (pruned.status, masked.status) == ("failed", "failed")
    assert pruned.coverage.failures[0].reason == f"needs {TRAINED.id}, which failed: nan"
    assert masked.coverage.failures[0].reason == f"needs {PRUNED.id}, which {pruned.coverage.failures[0].reason}"


def test_a_finished_run_whose_parent_is_gone_is_shown_and_noted(suite, finish_experiment, tmp_path):
    finish_experiment(PRUNED, 80, parent=TRAINED.id)
    cell = cell_of(suite, tmp_path, "pruned")
    assert (cell.status, cell.mean) == ("done", 80)
    assert cell.provenance.notes == (f"seed 0 took over {TRAINED.id}, which is new in this store",)


def test_once_its_parents_are_done_a_run_waits_for_nothing(suite, finish_experiment, tmp_path):
    finish_experiment(TRAINED, 90)
    assert cell_of(suite, tmp_path, "pruned").coverage.waiting == ()


def test_seeds_of_different_origins_and_corrupt_images_are_noted_not_refused(suite, finish_experiment, tmp_path):
    for seed in range(3):
        finish_experiment(TRAINED.with_seed(seed), 90)
    first, second = "a" * 40, "b" * 40 + "+changes"
    finish_experiment(PRUNED, 80, commit=first, loader="memory", threads_per_rank=1)
    finish_experiment(PRUNED.with_seed(1), 80, commit=first, loader="ffcv", threads_per_rank=2)
    finish_experiment(
        PRUNED.with_seed(2), 80, commit=second, loader="ffcv", num_corrupt_images=7, compiled=True,
        device="another CPU", num_ranks=2,
    )  # fmt: skip
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    assert leaderboard.board().cells[("pruned",), "a"].status == "done"
    markdown = render_markdown(leaderboard)
    assert "- pruned, A: different commits: aaaaaaaaaa (seeds 0, 1), bbbbbbbbbb+changes (seed 2)\n" in markdown
    assert "- pruned, A: different loaders: memory (seed 0), ffcv (seeds 1, 2)\n" in markdown
    assert "- pruned, A: different modes: eager (seeds 0, 1), compiled (seed 2)\n" in markdown
    assert "- pruned, A: different devices: cpu (seeds 0, 1), another CPU (seed 2)\n" in markdown
    assert "- pruned, A: different numbers of ranks: 1 (seeds 0, 1), 2 (seed 2)\n" in markdown
    assert "- pruned, A: different numbers of threads a rank: 1 (seed 0), 2 (seed 1)\n" in markdown
    assert "- pruned, A: seed 2 went on without 7 corrupt images\n" in markdown


def test_batch_norms_that_saw_less_than_the_recipes_batch_are_noted(suite, finish_experiment, tmp_path):
    finish_experiment(TRAINED, 90)
    for seed, micro_batch_size, has_batch_norm in ((0, 8, True), (1, 4, True), (2, 2, False)):
        fields = {"micro_batch_size": micro_batch_size, "has_batch_norm": has_batch_norm}
        finish_experiment(PRUNED.with_seed(seed), 80, **fields)
    markdown = render_markdown(make_leaderboard(suite, "laptop", tmp_path))
    assert "- pruned, A: different sizes of micro-batches: 8 (seed 0), 4 (seed 1), 2 (seed 2)\n" in markdown
    assert "- pruned, A: batch norms saw 4 images at once, fewer than the recipe's batch\n" in markdown
    assert "batch norms saw 8" not in markdown
    assert "batch norms saw 2" not in markdown


def test_seeds_of_one_commit_are_not_called_mixed(suite, finish_experiment, tmp_path):
    for seed in range(2):
        finish_experiment(TRAINED.with_seed(seed), 90)
        finish_experiment(PRUNED.with_seed(seed), 80)
    assert "Mixed" not in render_markdown(make_leaderboard(suite, "laptop", tmp_path))


def test_two_folders_of_the_same_seed_are_refused_by_name(suite, finish_experiment, tmp_path):
    run = finish_experiment(PRUNED, 80)
    run.path.rename(run.path.with_name("seed-00"))
    finish_experiment(PRUNED, 85)
    with pytest.raises(RecordError, match="holds seed-0 and seed-00 for seed 0; expected one folder"):
        make_leaderboard(suite, "laptop", tmp_path)


def test_a_folder_that_spells_its_seed_otherwise_is_not_left_out_unsaid(suite, finish_experiment, tmp_path):
    run = finish_experiment(PRUNED, 80)
    run.path.rename(run.path.with_name("seed-00"))
    with pytest.raises(RecordError, match="holds seed-00 for seed 0"):
        make_leaderboard(suite, "laptop", tmp_path)


def test_a_folder_of_a_seed_that_no_run_can_have_is_refused_by_name(suite, finish_experiment, tmp_path):
    finish_experiment(PRUNED, 80).path.with_name("seed-99999999999").mkdir()
    with pytest.raises(RecordError, match="holds seed-99999999999; expected seeds below 2147483648"):
        make_leaderboard(suite, "laptop", tmp_path)


def test_what_stands_on_a_void_run_through_another_is_void_too(suite, finish_experiment, tmp_path):
    finish_experiment(TRAINED, 90, protocol_version=0)
    finish_experiment(PRUNED, 80, parent=TRAINED.id)
    finish_experiment(MASKED, 70, parent=PRUNED.id)
    cell = cell_of(suite, tmp_path, "masked")
    assert (cell.status, cell.mean) == ("void", None)
    assert f"took over {PRUNED.id}, which is void" in cell.coverage.failures[0].reason


def test_cells_of_different_commits_are_noted_with_their_number(suite, finish_experiment, tmp_path):
    finish_experiment(TRAINED, 90)
    finish_experiment(PRUNED, 80, commit="a" * 40)
    finish_experiment(MASKED, 70, commit="b" * 40)
    markdown = render_markdown(make_leaderboard(suite, "laptop", tmp_path))
    assert (
        "- versions of the code, all valid under this protocol: aaaaaaaaaa (1 cell), bbbbbbbbbb (1 cell)\n" in markdown
    )


def test_a_number_that_only_some_runs_have_recorded_counts_and_names_these_alone(
    own_suite, finish_experiment, tmp_path
):
    columns = {"a": "top1_percent", "b": "mean_gate", "c": "mfu_percent"}
    suite = own_suite(Entry(row=("deit",), columns=columns, experiment=TRAINED))
    finish_experiment(TRAINED, 90, commit="a" * 40)
    finish_experiment(TRAINED.with_seed(1), 80, commit="b" * 40, mean_gate=0.5)
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    gate, mfu = (leaderboard.board().cells[("deit",), column] for column in "bc")
    assert (gate.status, gate.coverage.num_done, gate.estimate.values) == ("partial", 1, {1: 0.5})
    assert ([*gate.provenance.runs], gate.provenance.commits) == ([1], ("b" * 40,))
    assert (mfu.status, mfu.coverage.num_done, mfu.mean) == ("done", 2, None)  # no run has one


# -- a place that several experiments compete for


def candidate(**recipe):
    return Experiment(model="deit_ti", dataset="cifar10", image_size=32, recipe=RECIPE.model_copy(update=recipe))


SLOW, FAST, FASTER = (candidate(learning_rate=rate) for rate in (3e-5, 3e-4, 3e-3))


@pytest.fixture
def searched(own_suite):
    entry = Entry(
        row=("deit",), columns={"a": "top1_percent", "b": "test_loss"}, experiment=SLOW, alternatives=(FAST, FASTER)
    )
    return own_suite(entry)


def searched_cell(suite, store, column="a", seeds=None):
    return make_leaderboard(suite, "laptop", store, seeds).board().cells[("deit",), column]


def test_the_candidate_with_the_best_mean_is_shown_not_the_one_with_the_best_seed(
    searched, finish_experiment, tmp_path
):
    for experiment, values in ((SLOW, (60, 60, 60)), (FAST, (70, 72, 74)), (FASTER, (90, 50, 50))):
        for seed, value in enumerate(values):
            finish_experiment(experiment.with_seed(seed), value, test_loss=value / 100)
    cell = searched_cell(searched, tmp_path)
    assert (cell.mean, cell.status, cell.coverage.num_done, cell.coverage.num_planned) == (72, "done", 3, 3)
    assert cell.provenance.experiment == FAST
    assert searched_cell(searched, tmp_path, "b").mean == pytest.approx(0.72)  # of the same runs


def test_no_seed_shows_a_candidate_that_it_chose_itself(searched, finish_experiment, tmp_path):
    for experiment, values in ((SLOW, (60, 60)), (FAST, (70, 72)), (FASTER, (90, 50))):
        for seed, value in enumerate(values):
            finish_experiment(experiment.with_seed(seed), value)
    cell = searched_cell(searched, tmp_path)
    assert cell.estimate.values == {0: 70, 1: 50}  # seed 0 takes seed 1's winner, and so the other way
    said = "learning_rate=0.0003 (seed 0); learning_rate=0.003 (seed 1)"
    assert (cell.coverage.search.chosen, cell.coverage.search.on_other_seeds) == (said, True)


@pytest.fixture
def finish_opposed(finish_experiment):
    """Finishes two seeds of two candidates, each of which is best on another seed; other fields of their results."""

    def finish_opposed(slow=(), fast=()):
        for experiment, values, fields in ((SLOW, (50, 10), slow), (FAST, (30, 40), fast)):
            for seed, value in enumerate(values):
                run = finish_experiment(experiment.with_seed(seed), value, **dict(fields))
                run.append_metrics({"step": 1, "num_steps": 1, "epoch": 1.0, "top1_percent": value})

    return finish_opposed


@pytest.fixture
def opposed(own_suite):
    return own_suite(Entry(row=("deit",), columns={"a": "top1_percent"}, experiment=SLOW, alternatives=(FAST,)))


def test_a_searched_cells_curve_claim_and_csv_are_of_the_runs_of_its_number(opposed, finish_opposed, tmp_path):
    finish_opposed()
    leaderboard = make_leaderboard(opposed, "laptop", tmp_path)
    cell = leaderboard.board().cells[("deit",), "a"]
    assert (cell.estimate.values, cell.mean) == ({0: 30, 1: 10}, 20)
    assert {seed: run.read_result().top1_percent for seed, run in cell.provenance.runs.items()} == {0: 30, 1: 10}
    curve = curve_behind(leaderboard, Place(row=("deit",), column="a"), "top1_percent")
    assert (curve.low[-1], curve.mean[-1], curve.high[-1]) == (10, 20, 30)
    effect = number("own", "deit", "a")
    term = effect.terms[0].model_copy(update={"logged": Logged(metric="top1_percent")})
    claims = (Claim(name="a", section="1", statement="", effects=(effect.model_copy(update={"terms": (term,)}),)),)
    (judged,) = judge(lambda _: leaderboard, "laptop", [PaperClaims(name="own", title="", claims=claims)])
    assert judged.shown.estimate.values == pytest.approx({0: 30, 1: 10})
    assert f",{SLOW.configuration} {FAST.configuration}," in render_long_csv(leaderboard)


def test_a_searched_cells_notes_and_commits_are_of_the_runs_that_it_shows(opposed, finish_opposed, tmp_path):
    finish_opposed({"commit": "a" * 40}, {"commit": "b" * 40, "num_corrupt_images": 7})
    provenance = searched_cell(opposed, tmp_path).provenance
    assert provenance.notes == (
        "different commits: bbbbbbbbbb (seed 0), aaaaaaaaaa (seed 1)", "seed 0 went on without 7 corrupt images"
    )  # fmt: skip
    assert provenance.commits == ("b" * 40, "a" * 40)


@pytest.mark.parametrize("experiment", [SLOW, FAST])
def test_a_failed_seed_of_any_candidate_that_is_shown_fails_the_cell(
    opposed, finish_opposed, finish_experiment, experiment, tmp_path
):
    finish_opposed()
    finish_experiment(experiment.with_seed(2), 80).result_path.write_text("{")
    assert searched_cell(opposed, tmp_path).status == "failed"


def test_candidates_are_compared_over_the_seeds_that_all_of_them_have(searched, finish_experiment, tmp_path):
    for experiment, values in ((SLOW, {0: 60, 1: 60}), (FAST, {0: 70, 1: 71, 2: 10}), (FASTER, {0: 50, 1: 50, 2: 99})):
        for seed, value in values.items():
            finish_experiment(experiment.with_seed(seed), value)
    cell = searched_cell(searched, tmp_path)
    assert (cell.estimate.values, cell.status) == ({0: 70, 1: 71}, "partial")


def test_the_choice_is_told_with_what_distinguishes_it(searched, finish_experiment, tmp_path):
    for experiment, value in ((SLOW, 80), (FAST, 70), (FASTER, 60)):
        finish_experiment(experiment, value)
    leaderboard = make_leaderboard(searched, "laptop", tmp_path)
    said = "- deit, A; B: learning_rate=3e-05, chosen among 3 candidates by the test accuracy of this seed itself"
    assert f"{said}, which flatters it" in render_markdown(leaderboard).splitlines()
    assert f",deit_ti-{SLOW.configuration_id}," in render_long_csv(leaderboard)


def test_a_search_is_partial_until_every_candidate_has_its_seeds(searched, finish_experiment, tmp_path):
    finish_experiment(SLOW, 80)
    finish_experiment(FAST, 70)
    cell = searched_cell(searched, tmp_path)
    assert (cell.mean, cell.status) == (80, "partial")
    markdown = render_markdown(make_leaderboard(searched, "laptop", tmp_path))
    assert "80.00 **partial 2/3**" in markdown
    assert "among the 2 of 3 candidates that could be compared" in markdown
    finish_experiment(FASTER, 60)
    assert searched_cell(searched, tmp_path).status == "done"
    assert searched_cell(searched, tmp_path, seeds=range(2)).status == "partial"


def test_a_candidate_that_diverged_leaves_the_shown_number_usable_but_is_told(searched, finish_experiment, tmp_path):
    finish_experiment(SLOW, 80)
    finish_experiment(FAST, 70)
    finish_experiment(FASTER, 60).result_path.write_text("{")
    cell = searched_cell(searched, tmp_path)
    assert (cell.mean, cell.status, len(cell.coverage.failures)) == (80, "partial", 1)


def test_the_shown_candidates_failed_seed_fails_the_cell(searched, finish_experiment, tmp_path):
    for experiment, value in ((SLOW, 80), (FAST, 70), (FASTER, 60)):
        finish_experiment(experiment, value)
    finish_experiment(SLOW.with_seed(1), 80).result_path.write_text("{")
    assert searched_cell(searched, tmp_path).status == "failed"


def test_without_any_result_nothing_is_chosen(searched, tmp_path):
    cell = searched_cell(searched, tmp_path)
    assert (cell.status, cell.mean) == ("missing", None)
    assert "Chosen" not in render_markdown(make_leaderboard(searched, "laptop", tmp_path))


def test_candidates_that_differ_by_model_options_say_so(own_suite, finish_experiment, tmp_path):
    options = [SLOW.model_copy(update={"model_options": {"patch_size": size}}) for size in (2, 4)]
    suite = own_suite(
        Entry(row=("deit",), columns={"a": "top1_percent"}, experiment=options[0], alternatives=(options[1],))
    )
    finish_experiment(options[1], 50)
    assert searched_cell(suite, tmp_path).coverage.search.chosen == "patch_size=4"


def test_the_cost_of_a_search_is_that_of_all_its_runs(searched, finish_experiment, tmp_path):
    for experiment, value in ((SLOW, 80), (FAST, 70), (FASTER, 60)):
        finish_experiment(experiment, value, device_hours=2.0)
    assert searched_cell(searched, tmp_path).provenance.device_hours == 6
