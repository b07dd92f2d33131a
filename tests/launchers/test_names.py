"""What runs are called."""

from launchers.names import describe
from suite.suites import get_suite


def test_a_name_says_what_differs_between_the_runs_of_a_model_and_no_more(graph):
    assert list(describe(list(graph.values())).values()) == [
        "deit_micro 5 % seed 0",
        "convit_micro 5 % seed 0",
        "deit_micro pruning 5 % seed 0",
        "deit_micro masking mask=content 5 % seed 0",
        "convit_micro masking mask=content 5 % seed 0",
    ]
    searched = [
        graph["first"].model_copy(update={"recipe": graph["first"].recipe.model_copy(update={"learning_rate": rate})})
        for rate in (1e-3, 3e-3)
    ]
    assert [name.split()[1] for name in describe(searched).values()] == ["learning_rate=0.001", "learning_rate=0.003"]


def test_runs_of_one_fraction_of_the_data_and_one_seed_have_names_of_their_own():
    experiments = get_suite("init_width_heads").profile("paper").experiments(num_seeds=2)
    assert len(set(describe(experiments).values())) == len(experiments)
