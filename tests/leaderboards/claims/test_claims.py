"""The papers' claims speak of places that exist and of what training logs, in the direction that the papers print."""

import datetime
import functools
import math
import re

import pytest
import torch

from leaderboards.boards.layout import lay_out
from leaderboards.boards.metrics import in_points
from suite.models.convit.probes import attention_layers
from suite.models.registry import build_model
from suite.papers import get_suite, list_claims
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory

CLAIMS = {claim.name: claim for paper in list_claims() for claim in paper.claims}
EFFECTS = [effect for claim in CLAIMS.values() for effect in claim.effects]
TERMS = [term for effect in (*EFFECTS, *filter(None, (e.control for e in EFFECTS))) for term in effect.terms]
PROFILES = ("laptop", "gpu", "paper")
BY_LAYER = ("nonlocality", "gates")
ELSEWHERE = ("centers", "precisions", "between")  # of quadratic encodings, and of runs of kind "maps"

# Transcribed from the papers' running text: what it says in numbers, apart from sizes and hyperparameters.
NUMBERS = {
    "cordonnier": "2, 4, 1, 2, 6 and 0; a fourth; alpha = 46; faster; 93.8",
    "convit": "82.2; 82.9; 59.5; 46.5; 56.4; 2.5; 2.9; 3.1; 6.8; 2.3; 2.8; 5.1; 5.4; 0.5; 6.5; 82.1; layer 6; "
    "After 20 of 300; first 4 layers; After 1000",
    "cmhsa": "85.6; 83.3; Nine; 25 heads; nearly 9; 2.62; 400 epochs; 78.90; 78.74; almost 80; epoch 20; bias of 40",
    "structured_init": "10,000; about 5 sec; 2 to 4; 90.67; 91.87; 91.76; 92.82",
}
AT_LAPTOP = (
    "quadratic_attention_as_good_as_resnet",
    "convit_over_deit_at_each_fraction",
    "convit_gains_most_where_data_are_scarce",
    "convit_gains_over_all_shares",
    "convit_gain_falls_with_the_share",
    "impulse_over_truncated_normal_on_cifar10",
    "two_phases_of_5x5_over_deit_base",
    "nearly_double_at_20_epochs",
    "gates_fall",
    "no_warmup_after_convolution",
    "impulse_by_queries_and_keys_alone_on_cifar10",
    "frozen_filters_close_to_trained",
    "box_filters_far_below_other_frozen_ones",
)


@functools.cache
def entry_at(suite_name, profile_name, place):
    suite = get_suite(suite_name)
    return suite.find_entry(suite.profile(profile_name), place)


@functools.cache
def num_layers(model, image_size, options, metric):
    """Of the layers that have this metric."""
    with torch.device("meta"):
        network = build_model(model, num_classes=10, image_size=image_size, **dict(options))
    layers = attention_layers(network).values()
    return len([layer for layer in layers if metric != "gates" or hasattr(layer, "gating_param")])


def is_there(term, profile):
    """Whether the profile fills the place, by a training of a network with so many layers where one is named."""
    entry = entry_at(term.suite, profile, term.place)
    if entry is None or term.logged is None or term.logged.layer is None:
        return entry is not None
    experiment = entry.experiment
    options = tuple(sorted(experiment.model_options.items()))
    return term.logged.layer <= num_layers(experiment.model, experiment.image_size, options, term.logged.metric)


def profiles_of(claim):
    """Where the claim can be judged."""
    return [p for p in PROFILES if all(is_there(term, p) for effect in claim.effects for term in effect.terms)]


@functools.cache
def printed(term):
    """The number at a term's place in the paper's table, in points where it is an accuracy; None without."""
    if term.logged is not None:
        return None
    suite = get_suite(term.suite)
    table = suite.table(term.place.table)
    entry = entry_at(term.suite, "paper", term.place)
    value = lay_out(table, suite.entries_of(suite.profile("paper"), table)).value(term.place.row, term.place.column)
    return None if value is None else value * in_points(entry.columns[term.place.column])


def size_of(effect):
    """The paper's size of an effect: as stated, or from what its tables print; None where it prints nothing."""
    numbers = [printed(term) for term in effect.terms]
    if effect.paper is not None or None in numbers:
        return effect.paper
    if effect.log_odds:
        numbers = [math.log(value / (100 - value)) for value in numbers]
    return effect.constant + sum(term.weight * value for term, value in zip(effect.terms, numbers, strict=True))


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_can_be_judged_at_the_papers_scale(name):
    assert "paper" in profiles_of(CLAIMS[name])


@pytest.mark.parametrize("name", AT_LAPTOP)
def test_what_each_paper_is_known_for_can_be_judged_on_a_laptop(name):
    assert profiles_of(CLAIMS[name]) == list(PROFILES)


def test_what_speaks_of_deep_layers_or_large_sets_is_judged_where_they_are():
    assert profiles_of(CLAIMS["gates_of_s_go_to_zero_from_layer_6"]) == ["gpu", "paper"]
    assert profiles_of(CLAIMS["impulse_costs_nothing_on_imagenet"]) == ["paper"]


@pytest.mark.parametrize("name", CLAIMS)
def test_the_papers_own_numbers_agree_with_the_claim(name):
    claim = CLAIMS[name]
    for size in filter(lambda size: size is not None, map(size_of, claim.effects)):
        holds = {"greater": size > 1e-9, "equal": abs(size) <= claim.margin + 1e-9, "no worse": size >= -claim.margin}
        assert holds[claim.relation]


def test_most_claims_have_a_size():
    """Else the check of directions would check little."""
    sized = [name for name, claim in CLAIMS.items() if all(size_of(effect) is not None for effect in claim.effects)]
    assert len(sized) >= len(CLAIMS) / 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("convit_over_deit_at_each_fraction", [13.0, 11.6, 7.6, 3.6, 1.5]),
        ("learned_attention_close_to_resnet", [-2.0]),  # from fractions
        ("quadratic_attention_not_below_learned", [2.0]),  # without the point that is tolerated
        ("convit_gains_over_all_shares", [7.46]),
        ("convit_gain_falls_with_the_share", [4.0370, 0.1491]),  # numpy.polyfit on -ln(share), points and log odds
        ("gpsas_parts_help_on_few_images", [6.8, 2.3, 2.8, 5.1, 2.3, 2.8]),  # four of them are in the text
        ("attention_phase_adds_to_convolution", [0.65, 2.62]),
        ("impulse_on_par_with_mimetic_on_cifar10", [0.46, -0.49]),
    ],
)
def test_sizes_are_the_papers(name, expected):
    assert [size_of(effect) for effect in CLAIMS[name].effects] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("paper", list_claims(), ids=lambda paper: paper.name)
def test_a_paper_has_one_primary_claim_and_others_only_after_it(paper):
    primary = [claim for claim in paper.claims if claim.primary]
    assert [claim.after for claim in primary] == ["", *(claim.name for claim in primary[:-1])]
    assert [claim.name for claim in paper.claims if claim.after and not claim.primary] == []
    assert all(datetime.date.fromisoformat(claim.primary) for claim in primary)


def test_a_scale_that_cannot_test_a_claim_is_one_that_fills_its_places():
    for claim in CLAIMS.values():
        assert set(claim.not_testable) <= {"desktop", *profiles_of(claim)}, claim.name


def test_names_are_unique_and_sentences_end():
    assert len(CLAIMS) == sum(len(paper.claims) for paper in list_claims())
    assert all(re.fullmatch("[a-z0-9_]+", name) for name in CLAIMS)
    assert len({paper.name for paper in list_claims()}) == len(list_claims())
    sentences = [
        s for p in list_claims() for e in (*p.claims, *p.not_judged) for s in (e.statement, getattr(e, "reason", "."))
    ]
    assert [text for text in sentences if not text.endswith(".")] == []


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_of_the_running_text_is_claimed_or_listed_as_not_judged(name):
    paper = next(paper for paper in list_claims() if paper.name == name)
    text = " ".join(f"{entry.statement} {getattr(entry, 'reason', '')}" for entry in (*paper.claims, *paper.not_judged))
    assert [number for number in NUMBERS[name].split("; ") if number not in text] == []


def test_an_effect_is_in_one_unit():
    """A fraction's difference is turned into points, what is logged is not."""
    for claim in CLAIMS.values():
        for effect in claim.effects:
            columns = [entry_at(t.suite, "paper", t.place).columns[t.place.column] for t in effect.terms]
            shown = [t.logged.metric if t.logged else column for t, column in zip(effect.terms, columns, strict=True)]
            assert len(set(shown)) == 1, claim.name
            is_accuracy = "top1" in shown[0]
            assert is_accuracy == (claim.unit == "points"), claim.name


@pytest.fixture(scope="module")
def lines(start, tmp_path_factory):
    """The log of a ConViT's short training."""
    recipe = DEIT_LAPTOP.model_copy(update={"epochs": 0.5, "batch_size": 32, "warmup_epochs": 0.0})
    experiment = Experiment(model="convit_micro", dataset="cifar10_sample", image_size=32, recipe=recipe)
    run = RunDirectory.of(tmp_path_factory.mktemp("runs"), experiment)
    run.create(experiment)
    (process,) = start(run, Resources())
    process.join()
    assert process.exitcode == 0, run.log_path.read_text()
    return run.read_metrics()


def test_maps_are_read_of_runs_that_record_them():
    for term in (term for term in TERMS if term.logged and term.logged.metric == "between"):
        assert entry_at(term.suite, "paper", term.place).experiment.kind == "maps"


def test_training_logs_what_claims_read(lines):
    for term in TERMS:
        if term.logged is None or term.logged.metric in ELSEWHERE:
            continue
        entry = entry_at(term.suite, "paper", term.place)
        assert entry.experiment.kind not in ("maps", "masking")  # which train nothing
        values = {line["step"]: line[term.logged.metric] for line in lines if term.logged.metric in line}
        assert lines[0]["num_steps"] in values  # at the end
        is_by_layer = isinstance(values[lines[0]["num_steps"]], list)
        assert is_by_layer == (term.logged.metric in BY_LAYER) == (term.logged.layer is not None)
        if term.logged.at == 0:  # of accuracies, what is left after pruning
            assert 0 in values or (term.logged.metric, entry.experiment.kind) == ("top1_percent", "pruning")
