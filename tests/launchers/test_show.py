import io

from rich.console import Console

from launchers.command.resolved_profile import print_resolved
from suite.papers import get_suite
from suite.spec.recipe import Recipe


def shown(suite_name, profile):
    console = Console(width=200, file=io.StringIO())
    suite = get_suite(suite_name)
    print_resolved(console, suite, profile, suite.profile(profile).experiments())
    return [line.split() for line in console.file.getvalue().splitlines() if line.strip()]


def test_every_field_of_a_recipe_is_shown_and_the_papers_value_only_where_it_differs():
    lines = {words[0]: words[1:] for words in shown("sample_efficiency", "laptop")}
    assert set(Recipe.model_fields) - {"name"} <= set(lines)
    assert lines["batch_size"] == ["64", "1024"]
    assert lines["optimizer"] == ["adamw"]
    assert lines["images_drawn_by_seed"] == ["False"]
    assert lines["shuffle"] == ["none"]
    assert lines["epochs"][-5:] == ["6000,", "3000,", "1000,", "600,", "300"]


def test_the_paper_s_own_profile_differs_from_itself_in_nothing():
    fields = [words for words in shown("sample_efficiency", "paper") if words[0] == "batch_size"]
    assert fields == [["batch_size", "1024"]]


def test_a_run_is_held_against_the_paper_s_also_where_it_takes_over_from_others():
    pairs = {tuple(words[1:]) for words in shown("cmhsa_cifar100", "laptop") if words[0] == "model" and len(words) == 3}
    assert pairs == {("cmhsa_conv_micro", "cmhsa_conv"), ("cmhsa_micro", "cmhsa")}
    lines = shown("convit_distillation", "gpu")
    teacher = lines[lines.index(["recipe", "cordonnier_resnet"]) :]
    assert next(words for words in teacher if words[0] == "mix_group") == ["mix_group", "0"]  # the paper trains none
