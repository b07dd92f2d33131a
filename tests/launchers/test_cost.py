"""Runs of each kind have a cost before they start, and models are counted once."""

import json

import pytest

from launchers.core.cost_estimate import count_run_flops
from launchers.count_models import all_experiments
from suite.cost import known_flops
from suite.cost.costs import images_seen, models_to_count, write_hours
from suite.cost.known_flops import find_flops, read_shipped
from suite.models import flops
from suite.models.flops import count_flops
from suite.spec.model_options import read_options
from suite.spec.resources import Resources

RESOURCES = Resources()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder for counts, none in memory, and none that is shipped."""
    monkeypatch.setenv("SUITE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(known_flops, "read_shipped", dict)
    for remembered in (known_flops._read, flops._count_once):
        remembered.cache_clear()
    return tmp_path


def test_a_run_that_only_measures_costs_its_evaluation(graph):
    trained, masked = graph["first"], graph["mask_tuned"]
    assert images_seen(masked, RESOURCES) == 0
    forward = count_flops(masked.model, num_classes=10, image_size=32, **masked.model_options).total
    assert count_run_flops(masked, RESOURCES) == forward * 100
    assert count_run_flops(trained, RESOURCES) == 3 * forward * 60 * 32


def test_a_teacher_adds_its_count_pass_to_every_image(graph):
    teacher = graph["second"]
    student = graph["first"].model_copy(update={"kind": "distillation", "parents": (teacher,)})
    alone, forward = count_run_flops(graph["first"], RESOURCES), count_run_flops(teacher, RESOURCES) / 3
    assert count_run_flops(student, RESOURCES) == alone + forward


def test_a_count_is_kept_and_a_broken_file_is_counted_and_written_again(cache, graph):
    experiment = graph["first"]
    assert models_to_count([experiment, graph["tuned"]], RESOURCES) == [graph["tuned"]]
    expected = count_run_flops(experiment, RESOURCES)
    assert models_to_count([experiment], RESOURCES) == []
    (kept,) = cache.glob("suite-flops/*.json")
    for broken in (b"", b"[]", b'{"total": "many", "linear": 1}', kept.read_bytes()[:20]):
        kept.write_bytes(broken)
        for remembered in (known_flops._read, flops._count_once):
            remembered.cache_clear()
        assert count_run_flops(experiment, RESOURCES) == expected
        size, options = {"num_classes": 10, "image_size": 32}, experiment.model_options
        counted = flops.count_anew(experiment.model, *size.values(), options)  # type: ignore[call-arg]
        assert find_flops(experiment.model, **size, **options) == counted


def test_a_cache_that_cannot_be_written_costs_only_time(cache, graph, monkeypatch):
    (cache / "file").touch()
    monkeypatch.setenv("SUITE_CACHE_DIR", str(cache / "file"))
    assert count_run_flops(graph["first"], RESOURCES) > 0


def test_every_suites_models_come_counted_from_the_source_that_is_here(tmp_path, monkeypatch):
    monkeypatch.setenv("SUITE_CACHE_DIR", str(tmp_path))
    assert models_to_count(all_experiments(), RESOURCES) == [], "python -m launchers.count_models counts them anew"


def test_shipped_counts_are_those_that_are_counted_now():
    small = [key for key in sorted(read_shipped()) if json.loads(key)[2] == 32]  # pixels: large models take a second
    for key in small[:: len(small) // 8]:
        found = flops.count_anew(*json.loads(key))
        assert (found.total, found.linear) == read_shipped()[key], key


def test_counts_of_other_source_are_not_taken(monkeypatch):
    read_shipped.cache_clear()
    monkeypatch.setattr(known_flops, "digest_of_sources", lambda: "another")
    assert read_shipped() == {}
    read_shipped.cache_clear()


# Options beside a model's own that say only how it starts or is trained.
UNCHANGING = [
    ("vit_t", {"initialization": "impulse_3", "pseudo_input_first": "U", "same_for_all_layers": False}),
    ("vit_t", {"initialization": "mimetic", "mimetic_port": True}),
    ("vit_t", {"initialization": "impulse_5", "impulse_steps": 3, "renormalize": True, "drop_path": 0.1}),
    ("vit_t", {"pseudo_input_following": "PE+U", "weight_scale": 2.0}),
    ("deit_ti", {"drop_path": 0.1}),
    ("convit_ti", {"locality_strength": 2.0, "conv_init": False, "train_gates": False, "train_gpsa": False}),
    ("cmhsa", {"bias_strength": 10.0, "weight_std": 0.08, "query_key_std": 0.1, "initialization": "convolution"}),
    ("convmixer", {"spatial": "impulse"}),
    ("sa_quadratic", {"center_std": 2.0, "spread_std": 0.3, "attention_dropout": 0.0}),
    ("sa_learned", {"dropout": 0.0, "attention_dropout": 0.0}),
]


@pytest.mark.parametrize(("model", "options"), UNCHANGING)
def test_what_only_changes_the_start_leaves_the_count_as_it_is(model, options):
    assert set(options) <= read_options()[model].without_effect_on_flops
    counted, plain = (flops.count_anew(model, 10, 32, chosen) for chosen in (options, {}))
    assert counted == plain


def test_every_option_that_is_said_to_leave_the_count_as_it_is_was_tried():
    tried = {name for _, options in UNCHANGING for name in options}
    assert tried == set().union(*(options.without_effect_on_flops for options in read_options().values()))


@pytest.mark.parametrize(
    ("hours", "text"),
    [(0, "0"), (2.64e-7, "under 0.0001"), (0.00556, "0.00556"), (12.34, "12.3"), (99.96, "100"), (4287.3, "4,287")],
)
def test_hours_are_written_without_an_exponent(hours, text):
    assert write_hours(hours) == text
