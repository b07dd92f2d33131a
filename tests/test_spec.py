"""An experiment's identity: what changes it, what must not."""

import json
import subprocess
import sys

import pytest

from suite.papers import get_suite
from suite.papers.shared.deit_recipes import DEIT, DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe

EXPERIMENT = Experiment(model="deit_s", dataset="imagenet", image_size=224, recipe=DEIT)


def test_the_identity_is_the_hash_of_what_differs_from_the_defaults():
    # written out by hand: a change here orphans every finished run
    recipe = Recipe(name="any label", epochs=2, batch_size=8, learning_rate=0.1)
    experiment = Experiment(model="m", dataset="d", image_size=32, recipe=recipe)
    text = '{"dataset":"d","image_size":32,"model":"m","recipe":{"batch_size":8,"epochs":2.0,"learning_rate":0.1}}'
    digest = subprocess.run(["sha256sum"], input=text, capture_output=True, text=True).stdout[:16]
    assert experiment.configuration_id == digest
    assert experiment.id == f"m-{digest}/seed-0"


def test_naming_a_default_or_a_recipe_changes_no_identity():
    same = Experiment(model="deit_s", dataset="imagenet", image_size=224, recipe=DEIT, train_fraction=1, seed=0)
    renamed = EXPERIMENT.model_copy(update={"recipe": DEIT.model_copy(update={"name": "other"})})
    assert EXPERIMENT.configuration_id == same.configuration_id == renamed.configuration_id


@pytest.mark.parametrize(
    "change",
    [
        {"model": "convit_s"},
        {"train_fraction": 0.1},
        {"normalization": "half"},
        {"images_drawn_by_seed": True},
        {"shuffle": "patches", "shuffle_patch_size": 16},
        {"shuffle": "within_patches", "shuffle_patch_size": 16},
        {"model_options": {"patch_size": 8}},
        {"recipe": DEIT_LAPTOP},
        {"recipe": DEIT.model_copy(update={"mixup": 0.1})},
    ],
)
def test_whatever_changes_results_changes_the_identity(change):
    assert EXPERIMENT.configuration_id != EXPERIMENT.model_copy(update=change).configuration_id


def test_a_seed_changes_the_run_but_not_the_cell():
    assert EXPERIMENT.with_seed(3).configuration_id == EXPERIMENT.configuration_id
    assert EXPERIMENT.with_seed(3).id != EXPERIMENT.id


def test_the_smoke_profile_never_shares_a_folder_with_the_laptops():
    suite = get_suite("sample_efficiency")
    laptop = {e.id for e in suite.profile("laptop").experiments()}
    assert laptop.isdisjoint(e.id for e in suite.profile("smoke").experiments())


def test_only_a_student_may_be_normalized_otherwise_than_its_parent():
    fields = {"normalization": "half", "parents": (EXPERIMENT,)}
    with pytest.raises(ValueError, match="normalization 'half' and a parent with 'own'"):
        EXPERIMENT.model_copy(update={"kind": "maps", **fields})
    assert EXPERIMENT.model_copy(update={"kind": "distillation", **fields}).parents == (EXPERIMENT,)
    halved = EXPERIMENT.model_copy(update={"normalization": "half"})
    assert halved.then("maps").normalization == "half"


@pytest.mark.parametrize(
    ("shuffle", "size", "found"),
    [
        ("none", 16, "shuffle_patch_size is 16 and shuffle 'none'; expected 0"),
        ("patches", 0, "shuffle_patch_size 0; expected pixels that divide image_size 224"),
        ("within_patches", 15, "shuffle_patch_size 15; expected pixels that divide image_size 224"),
    ],
)
def test_images_are_shuffled_in_patches_that_they_consist_of(shuffle, size, found):
    with pytest.raises(ValueError, match=found):
        EXPERIMENT.model_copy(update={"shuffle": shuffle, "shuffle_patch_size": size})


def test_an_experiment_survives_json():
    assert Experiment.model_validate_json(EXPERIMENT.model_dump_json()).id == EXPERIMENT.id


@pytest.mark.parametrize("mix_group", [5, 3, 64])
def test_a_mix_group_that_is_odd_or_does_not_divide_the_batch_is_refused(mix_group):
    with pytest.raises(ValueError, match=f"mix_group of {mix_group} for a batch of 96; expected an even divisor"):
        DEIT.model_copy(update={"batch_size": 96, "mix_group": mix_group})


def test_a_misspelt_field_is_an_error():
    with pytest.raises(ValueError, match="train_frac"):
        Experiment.model_validate({**json.loads(EXPERIMENT.model_dump_json()), "train_frac": 0.1})


def test_planning_imports_no_torch():
    code = "import sys, launchers.grid, launchers.local.display, leaderboards.build, suite.papers as s; "
    code += "[s.get_suite(n) for n in s.list_suites()]; print('torch' in sys.modules, 'deepspeed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"
