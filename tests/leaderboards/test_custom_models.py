"""Models beside the papers': columns, ranks and tests of their own, and nothing changed for ours."""

import csv
import multiprocessing

import pytest
from scipy.stats import false_discovery_control, ttest_rel

from leaderboards.boards.board import make_leaderboard
from leaderboards.boards.joined_stores import joined
from leaderboards.report.suite_page import render_suite_page
from leaderboards.text.csv_files import render_accounting, render_csv, render_long_csv
from leaderboards.text.custom_models import find_comparisons, render_comparisons_csv, summarize_comparisons
from leaderboards.text.markdown import render_markdown
from leaderboards.text.notation import format_ranks
from suite.base.errors import RecordError, RunError, SpecError
from suite.papers import get_suite, list_suites
from suite.spec.custom_entries import with_custom_models
from suite.spec.custom_model import CustomModel, ModelSource, hash_source
from suite.store.custom_models import read_custom_models, record_custom_models
from suite.store.run_directory import RunDirectory
from suite.store.run_store import find_runs, list_configurations

CODE = "class Mine: ..."
SOURCE = ModelSource(kind="file", name="Mine", version=hash_source(CODE.encode()), code=CODE)
MINE = CustomModel(name="mine", words="mine.py:Mine", source=SOURCE, options={"dim": 8}, recipe={"learning_rate": 0.2})
ROW = ("5",)


def forget(store):
    for path in store.glob("challengers/*.json"):
        path.unlink()


OURS = {"deit": (30.0, 31.0, 32.5), "convit": (34.0, 34.5, 36.0)}
THEIRS = (40.0, 41.5, 42.0)


@pytest.fixture
def entered(table2, finish, finish_in, tmp_path):
    """The suite with a custom model, three seeds of the first row in a store, and the custom model's record."""
    suite = with_custom_models(table2, [MINE])
    for family, values in OURS.items():
        for seed, top1 in enumerate(values):
            finish(family, "5", seed, top1)
    entry = next(e for e in suite.profile("laptop").entries if e.custom_model and e.row == ROW)
    for seed, top1 in enumerate(THEIRS):
        finish_in(tmp_path, entry.experiment.with_seed(seed), top1)
    record_custom_models(tmp_path, [MINE])
    return suite


def test_a_custom_model_is_trained_in_every_row_as_the_row_s_first_model_but_for_what_is_overridden(table2):
    profile = with_custom_models(table2, [MINE]).profile("paper")
    deit = {e.row: e.experiment for e in table2.profile("paper").entries if "deit_top1" in e.columns}
    mine = {e.row: e.experiment for e in profile.entries if e.custom_model == "mine"}
    assert set(mine) == set(deit)
    for row, experiment in mine.items():
        recipe = deit[row].recipe.model_copy(update={"learning_rate": 0.2})
        same = {"model": "mine", "model_source": SOURCE, "model_options": {"dim": 8}, "recipe": recipe}
        assert experiment == deit[row].model_copy(update=same)


def test_a_leaderboard_finds_the_custom_models_of_the_store_by_itself(entered, table2, tmp_path):
    board = make_leaderboard(table2, "laptop", tmp_path).board()
    assert board.columns[-2:] == ["mine_top1", "mine_top5"]
    assert board.cells[ROW, "mine_top1"].mean == pytest.approx(sum(THEIRS) / 3)
    assert make_leaderboard(table2, "paper", tmp_path).suite.custom_models == ()  # no run at that scale


def test_a_board_shows_no_custom_model_that_was_entered_into_other_suites_alone(entered, table2, tmp_path):
    forget(tmp_path)
    for suites, shown in ((("other",), False), (("another",), False), ((table2.name,), True)):
        record_custom_models(tmp_path, [MINE.model_copy(update={"suites": suites})])
        assert ("mine_top1" in make_leaderboard(table2, "laptop", tmp_path).board().columns) == shown
    assert read_custom_models(tmp_path)[0].suites == tuple(sorted({"other", "another", table2.name}))


def test_a_board_shows_a_custom_model_whose_recipe_is_none_at_another_scale(table2, finish_in, tmp_path):
    mixed = table2.profile("paper").map_experiments(
        lambda e: e.model_copy(update={"recipe": e.recipe.model_copy(update={"mix_group": e.recipe.batch_size})})
    )
    suite = table2.model_copy(update={"profiles": {**table2.profiles, "paper": mixed}})
    mine = MINE.model_copy(update={"recipe": {"batch_size": 3}})
    entered = with_custom_models(suite, [mine], "laptop").profile("laptop").entries
    finish_in(tmp_path, next(entry for entry in entered if entry.custom_model).experiment, 40.0)
    record_custom_models(tmp_path, [mine])
    assert "mine_top1" in make_leaderboard(suite, "laptop", tmp_path).board().columns
    assert make_leaderboard(suite, "paper", tmp_path).suite.custom_models == ()


def test_what_is_ours_stays_as_it_was_with_its_ranks_and_the_custom_model_has_its_own(entered, table2, tmp_path):
    with_it = make_leaderboard(table2, "laptop", tmp_path).board().cells
    forget(tmp_path)
    without = make_leaderboard(table2, "laptop", tmp_path).board().cells
    assert {key: cell for key, cell in with_it.items() if key in without} == without
    assert without[ROW, "convit_top1"].comparison.ranks == (1, 1)
    assert with_it[ROW, "mine_top1"].comparison.ranks == (1, 1)
    ranks = [format_ranks(with_it[ROW, column]) for column in ("convit_top1", "mine_top1")]
    assert ranks == ["#1", "(#1)"]  # no two alike in a row


def test_comparisons_can_be_filtered_sorted_and_folded_on_the_page(entered, table2, tmp_path):
    page = render_suite_page(make_leaderboard(table2, "laptop", tmp_path), {})
    assert 'data-filter="t-custom"' in page
    assert 'id="t-custom"' in page
    assert "comparisons with the papers' models</summary>" in page.replace("&#39;", "'")
    assert "adjusted by Benjamini" in page


def test_each_of_the_row_s_models_is_tested_against_as_scipy_does_by_seed(entered, table2, tmp_path):
    found = find_comparisons(make_leaderboard(table2, "laptop", tmp_path))
    top1 = {comparison.against: comparison for comparison in found if comparison.column == "mine_top1"}
    assert set(top1) == {"deit_top1", "convit_top1"}
    p = {name: ttest_rel(THEIRS, OURS[name.removesuffix("_top1")]).pvalue for name in top1}
    adjusted = dict(zip(p, false_discovery_control(list(p.values())), strict=True))
    assert {name: comparison.p_value for name, comparison in top1.items()} == pytest.approx(adjusted)
    assert {comparison.verdict for comparison in top1.values()} == {"better"}
    assert top1["deit_top1"].difference.mean == pytest.approx(sum(THEIRS) / 3 - sum(OURS["deit"]) / 3)


def test_the_files_show_the_custom_model_without_a_number_of_the_paper(entered, table2, tmp_path):
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    text = render_markdown(leaderboard)
    assert "- mine: mine.py:Mine (sha256:" in text
    assert "dim=8; recipe changed: learning_rate=0.2" in text
    assert "mine_top1, ours" not in text
    assert render_csv(leaderboard.board()).splitlines()[1].endswith("41.2,70.6")
    long = [line for line in csv.DictReader(render_long_csv(leaderboard).splitlines()) if line["column"] == "mine_top1"]
    assert (long[0]["n"], long[0]["paper"], long[0]["best_rank"]) == ("3", "", "1")
    assert render_accounting(leaderboard).count("\ncustom-Mine-") == 3
    lines = list(csv.DictReader(render_comparisons_csv(leaderboard).splitlines()))
    assert {line["verdict"] for line in lines if line["column"] == "mine_top1"} == {"better"}
    (told,) = summarize_comparisons(leaderboard)
    assert told.startswith("mine: better in 4, worse in 0 of 4 comparisons")


def changed(**new):
    return MINE.model_copy(update=new)


def enter(store, custom_model, board):
    record_custom_models(store, [custom_model.model_copy(update={"boards": (board,)})])


def test_an_edited_model_takes_the_place_of_the_one_before_on_one_board_alone(table2, finish_in, tmp_path):
    other = changed(options={"dim": 9})
    for suite in (with_custom_models(table2, [one]) for one in (MINE, other)):
        for profile in ("laptop", "laptop@flowers"):
            finish_in(tmp_path, next(e for e in suite.profile(profile).entries if e.custom_model).experiment, 40.0)

    def shown():
        on = [make_leaderboard(table2, name, tmp_path).suite.custom_models for name in ("laptop", "laptop@flowers")]
        return [[one.options["dim"] for one in found] for found in on]

    record_custom_models(tmp_path, [MINE.model_copy(update={"suites": (table2.name,)})])  # an older record
    assert shown() == [[8], [8]]
    enter(tmp_path, other, f"{table2.name}/laptop@flowers")
    assert shown() == [[8], [9]]
    enter(tmp_path, changed(words="/home/mine.py:Mine"), f"{table2.name}/laptop@flowers")  # the first one
    assert shown() == [[8], [8]]
    assert {one.options["dim"] for one in read_custom_models(tmp_path)} == {8}
    next(tmp_path.glob("challengers/*.json")).write_text("{")
    with pytest.raises(RecordError, match=r"mine-\w+\.json.*start the grid with that --challenger again"):
        read_custom_models(tmp_path)


def test_a_custom_model_keeps_its_runs_under_another_name_and_with_its_defaults_spelt_out(entered, table2, tmp_path):
    code = "class Mine:\n    def __init__(self, *, num_classes, image_size, dim=8, depth=2): ..."
    source = ModelSource(kind="file", name="Mine", version=hash_source(code.encode()), code=code)
    spelt = [changed(source=source, options=options) for options in ({}, {"dim": 8}, {"depth": 2, "dim": 8})]
    ids = {
        next(e for e in with_custom_models(table2, [m]).profile("laptop").entries if e.beside).experiment.id
        for m in spelt
    }
    assert len(ids) == len({one.digest for one in spelt}) == 1
    enter(tmp_path, changed(name="theirs"), f"{table2.name}/laptop")
    columns = make_leaderboard(table2, "laptop", tmp_path).board().columns
    assert columns[-2:] == ["theirs_top1", "theirs_top5"]
    assert "mine_top1" not in columns


def test_runs_from_when_the_name_was_in_their_identity_are_found_where_they_are(entered, table2, tmp_path):
    first = next(e.experiment for e in entered.profile("laptop").entries if e.custom_model and e.row == ROW)
    assert first.old_configuration == "mine-dc54f8d07fa506b7"
    folder = tmp_path / "experiments" / first.configuration
    folder.rename(folder.with_name(first.old_configuration))
    forget(tmp_path)
    (tmp_path / "challengers/mine.json").write_text(MINE.model_dump_json(exclude={"boards"}))
    cell = make_leaderboard(table2, "laptop", tmp_path).board().cells[ROW, "mine_top1"]
    assert cell.mean == pytest.approx(sum(THEIRS) / 3)
    named = next(
        e.experiment
        for e in with_custom_models(table2, [changed(name="new")]).profile("laptop").entries
        if e.custom_model and e.row == ROW
    )
    run = RunDirectory.of(tmp_path, named)
    assert run.path.parent.name == first.old_configuration
    assert run.read_result().top1_percent == THEIRS[0]
    later = RunDirectory.of(tmp_path, named.with_seed(3))
    assert later.id == named.with_seed(3).id
    later.create(named.with_seed(3))
    assert list(find_runs(tmp_path, named)) == [0, 1, 2, 3]
    assert list_configurations(tmp_path) >= {named.configuration}
    with joined([tmp_path, tmp_path]) as store:
        assert list(find_runs(store, named)) == [0, 1, 2, 3]
    record_custom_models(tmp_path, [MINE])
    assert not (tmp_path / "challengers/mine.json").exists()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("mine", "mine"), "two custom models are called 'mine'"),
        (("deit_s",), "'deit_s' is called as a model of ours"),
        (("deit",), "Table 2 has a column deit_top[15] already: give the custom model another name"),
    ],
)
def test_a_name_that_is_taken_is_refused(table2, names, said):
    with pytest.raises(SpecError, match=said):
        with_custom_models(table2, [MINE.model_copy(update={"name": name}) for name in names])


def test_a_recipe_that_cannot_be_is_refused(table2):
    with pytest.raises(SpecError, match=r"custom model mine: recipe\.batch_size is 'many'"):
        with_custom_models(table2, [MINE.model_copy(update={"recipe": {"batch_size": "many"}})])


def test_every_suite_that_trains_takes_a_custom_model_at_every_scale_and_its_layout_still_fits(tmp_path):
    (tmp_path / "experiments").mkdir()
    plain = MINE.model_copy(update={"recipe": {}})
    refused = []
    for name in list_suites():
        try:
            suite = with_custom_models(get_suite(name), [plain])
        except SpecError:
            refused.append(name)
            continue
        for profile in suite.profiles:
            leaderboard = make_leaderboard(suite, profile, tmp_path)
            entries = [entry for entry in leaderboard.profile.entries if entry.custom_model]
            assert entries
            assert all(e.kind in ("training", "distillation") for entry in entries for e in entry.candidates)
            assert find_comparisons(leaderboard) == []
    assert refused == ["init_attention_maps"]


def test_a_suite_on_another_image_set_shows_no_number_of_the_paper(table2, finish_in, tmp_path):
    profile = table2.profile("laptop@flowers")
    assert {e.dataset for e in profile.experiments()} == {"flowers"}
    first = profile.entries[0]
    finish_in(tmp_path, first.experiment, 50.0)
    leaderboard = make_leaderboard(table2, "laptop@flowers", tmp_path)
    cell = leaderboard.board().cells[first.row, "deit_top1"]
    assert (cell.mean, cell.paper, cell.difference) == (50.0, None, None)
    text = render_markdown(leaderboard)
    assert "all of it on flowers, another image set than the suite's" in text
    assert "34.8" not in text
    assert " diff " not in text
    with pytest.raises(SpecError, match="profile smoke is one of packaged images"):
        table2.profile("smoke@flowers")


def _record(store, board, is_ready, others):
    is_ready.set()
    others.wait()
    record_custom_models(store, [MINE.model_copy(update={"boards": (board,)})])


def test_two_grids_that_enter_a_model_at_once_keep_both_its_boards(tmp_path):
    context = multiprocessing.get_context("fork")
    for number in range(20):
        store, ready = tmp_path / str(number), [context.Event(), context.Event()]
        boards = ("a/laptop", "b/laptop")
        grids = [context.Process(target=_record, args=(store, boards[i], ready[i], ready[1 - i])) for i in (0, 1)]
        for grid in grids:
            grid.start()
        for grid in grids:
            grid.join()
        assert read_custom_models(store)[0].boards == boards


def test_a_model_that_stands_on_a_board_by_two_names_takes_no_place_of_itself(tmp_path):
    entered = [changed(name=name, boards=("a/laptop",)) for name in ("one", "two")]
    assert [record_custom_models(tmp_path, entered) for _ in range(2)] == [[], []]


def test_a_full_disk_leaves_the_record_of_a_model_as_it_was(tmp_path, monkeypatch):
    record_custom_models(tmp_path, [MINE.model_copy(update={"boards": ("a/laptop", "c/laptop")})])

    def refuse(path, data):
        raise RunError("no space left on the disk")

    monkeypatch.setattr("suite.store.custom_models.write_atomically", refuse)
    with pytest.raises(RunError):
        record_custom_models(tmp_path, [MINE.model_copy(update={"boards": ("b/laptop",)})])
    other = MINE.model_copy(update={"options": {"dim": 16}, "boards": ("a/laptop",)})
    with pytest.raises(RunError):
        record_custom_models(tmp_path, [other, MINE.model_copy(update={"name": "ours", "boards": ("a/laptop",)})])
    assert [one.boards for one in read_custom_models(tmp_path)] == [("a/laptop", "c/laptop")]
