"""Every suite at every scale: it expands, fits its paper's table, and all its models can be built."""

import pytest
import torch

from imagesets.catalog import get_info
from leaderboards.layout import check_layout
from leaderboards.papers import load_paper_table
from suite.errors import SpecError
from suite.models.build import build_model
from suite.recipes import DEIT
from suite.suites import get_suite, list_suites

CASES = [(name, profile) for name in list_suites() for profile in (*get_suite(name).profiles, "smoke")]


@pytest.mark.parametrize(("name", "profile"), CASES)
def test_every_experiment_builds_and_has_its_place_in_the_papers_table(name, profile):
    suite = get_suite(name)
    scale = suite.profile(profile)
    check_layout(suite, scale, load_paper_table(suite.table, suite.row_keys))
    for experiment in scale.experiments(num_seeds=2):
        info = get_info(experiment.dataset)
        options = {**experiment.model_options, "drop_path": experiment.recipe.drop_path}
        with torch.device("meta"):
            model = build_model(
                experiment.model, num_classes=info.num_classes, image_size=experiment.image_size, **options
            )
            assert model(torch.empty(2, 3, experiment.image_size, experiment.image_size)).shape == (2, info.num_classes)


def test_sample_efficiency_is_two_models_times_five_fractions_at_constant_images_seen():
    suite = get_suite("sample_efficiency")
    for profile in suite.profiles.values():
        experiments = profile.experiments()
        assert len(experiments) == 10
        seen = {round(e.recipe.epochs * e.train_fraction, 9) for e in experiments}
        assert len(seen) == 1
    epochs = {e.train_fraction: e.recipe.epochs for e in suite.profiles["paper"].experiments()}
    assert epochs == {0.05: 6000, 0.1: 3000, 0.3: 1000, 0.5: 600, 1.0: 300}
    assert all(e.recipe.warmup_epochs == 5 for e in suite.profiles["paper"].experiments())


def test_the_paper_profile_trains_the_papers_models_with_deits_recipe_unchanged():
    experiments = get_suite("sample_efficiency").profile("paper").experiments()
    assert {e.model for e in experiments} == {"deit_s", "convit_s"}
    assert {(e.dataset, e.image_size) for e in experiments} == {("imagenet", 224)}
    assert all(e.recipe.with_epochs(300) == DEIT for e in experiments)


def test_unknown_names_are_refused_with_the_nearest_one():
    with pytest.raises(SpecError, match="Did you mean 'sample_efficiency'"):
        get_suite("sample_eficiency")
    with pytest.raises(SpecError, match="Did you mean 'laptop'"):
        get_suite("sample_efficiency").profile("labtop")
