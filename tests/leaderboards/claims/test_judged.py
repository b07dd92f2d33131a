import csv
import io
import json
import math

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.build import main
from leaderboards.judged_claims import judge, read_logged
from leaderboards.text.claims import render_claims_csv, render_claims_page, summarize_claims
from suite.base.errors import SpecError
from suite.papers import get_suite
from suite.spec.claims import Claim, Logged, NotJudged, PaperClaims, number
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry
from suite.spec.recipe import Recipe

RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)
MODELS = ("deit", "convit", "resnet")
EXPERIMENTS = {m: Experiment(model=m, dataset="cifar10", image_size=32, recipe=RECIPE) for m in MODELS}
DEIT, CONVIT, RESNET = (number("own", model, "a") for model in MODELS)
SPREAD = (-0.2, -0.1, 0.0, 0.1, 0.2)  # of the seeds; ResNet's are in another order, DeiT's scatter half as much
ORDERS = {"deit": (-0.1, -0.05, 0.0, 0.05, 0.1), "convit": SPREAD, "resnet": (0.1, -0.2, 0.2, 0.0, -0.1)}


@pytest.fixture
def suite(own_suite):
    """Whose table prints no number of any paper."""
    columns = {"a": "top1_fraction"}
    return own_suite(*(Entry(row=(model,), columns=columns, experiment=EXPERIMENTS[model]) for model in MODELS))


@pytest.fixture
def train(finish_experiment):
    """Finishes a model's seeds about an accuracy."""

    def train(model, center, num_seeds=5):
        for seed, shift in enumerate(ORDERS[model][:num_seeds]):
            finish_experiment(EXPERIMENTS[model].with_seed(seed), center + shift)

    return train


def claim(*effects, **fields):
    return Claim(**{"name": "a_claim", "section": "Sec. 3", "statement": "It helps.", "effects": effects} | fields)


def judged(suite, store, *claims, scale="laptop"):
    paper = PaperClaims(name="own", title="Our paper", claims=claims)
    return judge(lambda name: make_leaderboard(suite, scale, store) if name == "own" else None, scale, [paper])


def test_an_effect_is_in_points_whatever_the_columns_unit(suite, train, tmp_path):
    train("deit", 70.0)
    train("convit", 74.0)
    (found,) = judged(suite, tmp_path, claim((CONVIT - DEIT).model_copy(update={"paper": 3.0})))
    assert found.shown.estimate.mean == pytest.approx(4.0)
    assert (found.verdict, str(found)) == ("same direction", "same direction at laptop scale")
    assert (found.shown.num_seeds, found.shown.paper) == (5, 3.0)


def test_at_the_papers_own_scale_the_verdict_says_so_by_itself(suite, train, tmp_path):
    train("deit", 70.0)
    train("convit", 74.0)
    (found,) = judged(suite, tmp_path, claim(CONVIT - DEIT), scale="paper")
    assert str(found) == "reproduced"


def test_a_difference_of_differences_is_made_seed_by_seed(suite, train, tmp_path):
    for model, center in zip(MODELS, (70.0, 74.0, 75.0), strict=True):
        train(model, center)
    (found,) = judged(suite, tmp_path, claim((CONVIT - DEIT) - (RESNET - CONVIT)))
    assert found.shown.estimate.mean == pytest.approx(3.0)
    by_seed = [2 * c - d - r for d, c, r in zip(*(ORDERS[model] for model in MODELS), strict=True)]
    assert found.shown.estimate.vector == pytest.approx([3.0 + shift for shift in by_seed])


def test_a_claim_is_told_by_its_weakest_effect_and_how_many_hold(suite, train, tmp_path):
    for model, center in zip(MODELS, (70.0, 74.0, 69.9), strict=True):
        train(model, center)
    (found,) = judged(suite, tmp_path, claim(CONVIT - DEIT, DEIT - RESNET))
    assert found.shown.estimate.mean == pytest.approx(0.1)
    assert (found.verdict, found.num_hold, found.num_opposite) == ("unresolved", 1, 0)
    assert found.seeds_needed == 26  # 31 by the noncentral t, at a deviation of .19; 5 are there


def test_too_few_seeds_and_no_runs_are_told_apart(suite, train, tmp_path):
    assert judged(suite, tmp_path, claim(CONVIT - DEIT))[0].verdict == "no runs"
    train("deit", 70.0, 4)
    train("convit", 74.0)
    assert judged(suite, tmp_path, claim(CONVIT - DEIT))[0].verdict == "too few seeds"


def test_a_cell_with_a_failed_run_decides_nothing(suite, train, finish_experiment, tmp_path):
    train("deit", 70.0)
    train("convit", 74.0)
    finish_experiment(EXPERIMENTS["convit"].with_seed(5), 74.0).result_path.write_text("{")
    assert judged(suite, tmp_path, claim(CONVIT - DEIT))[0].verdict == "failed runs"


def test_a_claim_about_places_that_this_scale_leaves_empty_is_left_out(suite, train, tmp_path):
    assert judged(suite, tmp_path, claim(CONVIT - number("own", "deit", "b"))) == []
    assert judged(suite, tmp_path, claim(CONVIT - number("another", "deit", "a"))) == []


def test_a_claim_that_names_a_table_which_does_not_exist_is_refused(suite, tmp_path):
    with pytest.raises(SpecError, match="nowhere"):
        judged(suite, tmp_path, claim(number("own", "deit", "a", "nowhere")))


# -- what cannot be tested


def test_a_claim_that_a_scale_cannot_test_says_why(suite, train, tmp_path):
    train("deit", 70.0)
    train("convit", 74.0)
    asked = claim(CONVIT - DEIT, not_testable={"laptop": "The treatment is absent."})
    (found,) = judged(suite, tmp_path, asked)
    assert (found.verdict, found.reasons) == ("not testable here", ("The treatment is absent.",))
    assert "It helps. The treatment is absent." in render_claims_page(found.paper, [found])
    assert judged(suite, tmp_path, asked, scale="paper")[0].verdict == "reproduced"


def test_an_effect_whose_positive_control_fails_says_nothing_for_the_claim(suite, train, tmp_path):
    for model, center in zip(MODELS, (70.0, 74.0, 70.0), strict=True):
        train(model, center)
    passes, fails = ((CONVIT - DEIT).model_copy(control=model - RESNET) for model in (CONVIT, DEIT))
    found = judged(suite, tmp_path, claim(passes), claim(fails), claim(fails, RESNET - CONVIT))
    assert [one.verdict for one in found] == ["same direction", "not testable here", "opposite direction"]
    assert found[1].reasons[0].startswith("Its positive control is not above zero (+0,")


def test_an_effect_waits_for_the_seeds_of_its_positive_control(suite, train, tmp_path):
    for model, center, num_seeds in zip(MODELS, (70.0, 74.0, 70.0), (5, 5, 4), strict=True):
        train(model, center, num_seeds)
    (found,) = judged(suite, tmp_path, claim((CONVIT - DEIT).model_copy(control=CONVIT - RESNET)))
    assert (found.verdict, found.reasons) == ("not testable here", ("Its positive control has too few seeds.",))


def test_a_claim_whose_runs_share_no_seed_has_too_few_seeds_and_not_no_runs(suite, train, tmp_path):
    train("deit", 70.0)
    (found,) = judged(suite, tmp_path, claim(CONVIT - DEIT))
    assert (found.verdict, found.shown.estimate.num_unmatched) == ("too few seeds", 5)


def test_a_second_primary_claim_waits_for_the_first(suite, train, tmp_path):
    for model, center in zip(MODELS, (70.0, 74.0, 70.0), strict=True):
        train(model, center)
    first = claim(DEIT - RESNET, name="first", primary="2026-11-25")
    found = judged(suite, tmp_path, first, claim(CONVIT - DEIT, name="next", primary="2026-11-26", after="first"))
    assert [one.verdict for one in found] == ["unresolved", "unresolved"]
    assert found[1].reasons == ("Tested only if first holds.",)
    assert "primary, 2026-11-26" in render_claims_page(found[0].paper, found)


def test_log_odds_are_taken_seed_by_seed(suite, train, tmp_path):
    train("deit", 20.0)
    train("convit", 74.0)
    (found,) = judged(suite, tmp_path, claim((CONVIT - DEIT).model_copy(update={"log_odds": True})))
    odds = [math.log(p / (100 - p)) - math.log(q / (100 - q)) for p, q in ((73.8, 19.9), (73.9, 19.95))]
    assert found.shown.estimate.vector[:2] == pytest.approx(odds)
    assert found.unit == "log odds"


# -- what runs have logged


def logged(model, **fields):
    effect = number("own", model, "a")
    return effect.model_copy(update={"terms": (effect.terms[0].model_copy(update={"logged": Logged(**fields)}),)})


@pytest.fixture
def log(suite, finish_experiment):
    def log(model, seed, lines):
        run = finish_experiment(EXPERIMENTS[model].with_seed(seed), 50.0)
        run.metrics_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return run

    return log


def test_a_logged_number_is_read_at_a_share_of_the_training(log):
    run = log("deit", 0, [{"step": s, "epoch": s / 10, "top1_percent": 10.0 * s} for s in (1, 2, 3, 4)])
    assert [read_logged(run, Logged(metric="top1_percent", at=at)) for at in (0.1, 0.5, 0.51, 1.0)] == [10, 20, 30, 40]
    assert read_logged(run, Logged(metric="gates")) is None


def test_a_number_that_is_logged_later_than_a_claim_speaks_of_says_so(suite, log, tmp_path):
    for model in ("deit", "convit"):
        for seed in range(5):
            log(model, seed, [{"step": s, "epoch": s / 10, "top1_percent": 10.0 * s + seed} for s in (2, 4, 6)])
    early, half, whole = (
        logged("convit", metric="top1_percent", at=at) - logged("deit", metric="top1_percent", at=at)
        for at in (0.1, 0.5, 1.0)
    )
    found = judged(suite, tmp_path, claim(early, half, whole), claim(whole, name="in_time"))
    late = ("Read after 33 % of the training, not 10 %.", "Read after 67 % of the training, not 50 %.")
    assert [one.reasons for one in found] == [late, ()]
    assert [one.verdict for one in found] == ["not testable here", "unresolved"]
    assert render_claims_page(found[0].paper, found).count(" ".join(late)) == 1


def test_a_number_that_is_logged_at_the_end_alone_is_read_after_all_of_the_training(suite, log, tmp_path):
    for seed in range(5):
        log("deit", seed, [{"step": 6, "epoch": 1, "top1_percent": 60.0 + seed}])
    (found,) = judged(suite, tmp_path, claim(logged("deit", metric="top1_percent", at=0.5)))
    assert "Read after 100 % of the training, not 50 %." in render_claims_page(found.paper, [found])


def test_a_layers_number_is_the_mean_over_its_heads(log):
    run = log("deit", 0, [{"step": 1, "epoch": 1, "gates": [[0.2, 0.4], []]}])
    assert read_logged(run, Logged(metric="gates", layer=1)) == pytest.approx(0.3)
    assert read_logged(run, Logged(metric="gates", layer=2)) is None


def test_centers_are_measured_to_the_nearest_other_one(log):
    run = log("deit", 0, [{"step": 1, "epoch": 1, "centers": [[[0.0, 0.0], [3.0, 4.0], [0.0, 2.0]], [[1.0, 1.0]]]}])
    near = Logged(metric="centers", layer=1, of_heads="distance to nearest")
    assert read_logged(run, near) == pytest.approx((2 + math.sqrt(9 + 4) + 2) / 3)
    assert read_logged(run, near.model_copy(update={"layer": 2})) is None  # a single head has no other


def test_the_aspect_of_a_gaussian_does_not_change_as_it_turns(log):
    heads = []
    for angle, (long, short) in ((0.0, (2.0, 1.0)), (0.7, (3.0, 0.5)), (2.1, (1.0, 1.0))):
        c, s, p, q = math.cos(angle), math.sin(angle), long**-2, short**-2  # the precision's eigenvalues
        heads.append([p * c * c + q * s * s, (p - q) * c * s, p * s * s + q * c * c])
    run = log("deit", 0, [{"step": 1, "epoch": 1, "precisions": [heads]}])
    found = read_logged(run, Logged(metric="precisions", layer=1, of_heads="log aspect"))
    assert found == pytest.approx((math.log(2) + math.log(6) + 0) / 3)


def test_a_claim_about_a_layer_that_the_networks_do_not_have_is_left_out(suite, log, tmp_path):
    for seed in range(5):
        log("deit", seed, [{"step": 1, "epoch": 1, "gates": [[0.2]]}])
    first, second = (claim(logged("deit", metric="gates", layer=layer), name=f"layer_{layer}") for layer in (1, 2))
    assert [found.claim.name for found in judged(suite, tmp_path, first, second)] == ["layer_1"]


def test_gates_that_are_the_same_in_all_seeds_are_believed_to_their_last_digit(suite, log, tmp_path):
    for seed in range(5):
        log("deit", seed, [{"step": 1, "epoch": 1, "gates": [[0.2]]}])
    (found,) = judged(suite, tmp_path, claim(logged("deit", metric="gates", layer=1)))
    assert (found.verdict, found.shown.estimate.standard_error > 0) == ("same direction", True)


def test_a_claim_of_logged_numbers_has_its_verdict(suite, log, tmp_path):
    for seed, shift in enumerate(SPREAD):
        for model, gate in (("deit", 0.1), ("convit", 0.9)):
            log(model, seed, [{"step": 1, "epoch": 1, "gates": [[gate + gate * shift / 100]]}])
    gates = [logged(model, metric="gates", layer=1) for model in ("convit", "deit")]
    (found,) = judged(suite, tmp_path, claim(gates[0] - gates[1], unit="gate"))
    assert found.shown.estimate.mean == pytest.approx(0.8)
    assert (found.verdict, found.shown.paper) == ("same direction", None)


# -- what is written


def test_the_csv_has_a_line_a_claim(suite, train, tmp_path):
    train("deit", 70.0)
    train("convit", 74.0)
    claims = judged(suite, tmp_path, claim(CONVIT - DEIT), claim(RESNET - DEIT, name="another"))
    first, second = csv.DictReader(io.StringIO(render_claims_csv(claims)))
    expected = {
        "claim": "a_claim",
        "paper": "own",
        "scale": "laptop",
        "verdict": "same direction",
        "n": "5",
        "effects": "1",
    }
    assert expected.items() <= first.items()
    assert (float(first["effect"]), first["seeds_needed"], first["paper_effect"]) == (pytest.approx(4.0), "0", "")
    assert float(first["low"]) < 4 < float(first["high"])
    assert (second["verdict"], second["effect"], second["n"], second["p"]) == ("too few seeds", "", "0", "")


def test_the_page_has_every_scale_and_what_is_not_judged(suite, train, tmp_path):
    train("deit", 70.0)
    train("convit", 74.0)
    claims = judged(suite, tmp_path, claim(CONVIT - DEIT)) + judged(
        suite, tmp_path, claim(RESNET - DEIT), scale="paper"
    )
    other = NotJudged(section="Sec. 4", statement="It is fast.", reason="About their hardware.")
    page = render_claims_page(PaperClaims(name="own", title="Our paper", claims=(), not_judged=(other,)), claims)
    assert "## Profile laptop\n\n1 same direction." in page
    assert "## Profile paper\n\n1 too few seeds." in page
    assert "| +4.000 ± 0.098 |" in page
    assert "- Sec. 4: It is fast. About their hardware." in page


def test_the_terminal_tells_the_verdicts(suite, train, tmp_path):
    train("deit", 70.0)
    train("convit", 74.0)
    train("resnet", 74.0, 2)
    claims = judged(suite, tmp_path, claim(CONVIT - DEIT), claim(RESNET - DEIT))
    assert summarize_claims(claims) == [
        "same direction at laptop scale: It helps. +4.000 ± 0.098",
        "1 claim of the paper: too few seeds; five of each configuration are judged",
    ]


def test_the_build_of_all_suites_judges_all_claims(finish_experiment, tmp_path, capsys):
    for experiment in get_suite("sample_efficiency").profile("laptop").experiments(range(5)):
        better = 4.0 if experiment.model.startswith("convit") else 0.0
        scatter = ORDERS["convit" if better else "resnet"][experiment.seed]
        finish_experiment(experiment, 40 + better + scatter)
    assert main(["--all", "--runs", str(tmp_path)]) == 0
    lines = {line["claim"]: line for line in csv.DictReader((tmp_path / "leaderboards/claims.csv").open())}
    first = lines["convit_gains_over_all_shares"]
    assert (first["verdict"], first["primary"], first["adjustment"]) == ("same direction", "2026-11-25", "")
    second = lines["convit_gain_falls_with_the_share"]  # accuracy is the same on all shares
    assert second["verdict"] == "not testable here"
    assert second["not_testable"].startswith("Its positive control is not above zero")
    assert lines["convit_over_deit_at_each_fraction"]["adjustment"] == "Benjamini-Hochberg"
    assert {line["scale"] for line in lines.values()} == {"laptop"}
    pages = {path.name for path in (tmp_path / "leaderboards/claims").iterdir()}
    papers = ("convit", "cordonnier", "cmhsa", "structured_init")
    pictures = {f"effects.laptop.{suffix}" for suffix in ("png", "svg")}
    assert pages == {f"{paper}.{suffix}" for paper in papers for suffix in ("md", "html")} | pictures
    assert main(["--suite", "sample_efficiency", "--runs", str(tmp_path)]) == 0
    assert "at laptop scale: " in capsys.readouterr().out


def test_no_claim_is_judged_by_a_smoke_test(finish_experiment, tmp_path, capsys):
    for experiment in get_suite("sample_efficiency").profile("smoke").experiments(range(5)):
        finish_experiment(experiment, 40 + (4.0 if experiment.model.startswith("convit") else 0.0))
    assert main(["--suite", "sample_efficiency", "--profile", "smoke", "--runs", str(tmp_path)]) == 0
    assert main(["--all", "--runs", str(tmp_path)]) == 0
    assert "smoke scale" not in capsys.readouterr().out
    assert len((tmp_path / "leaderboards/claims.csv").read_text().splitlines()) == 1
