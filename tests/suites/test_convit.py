"""ConViT's suites: their cells, the paper's recipes to the letter, and which runs they share."""

import inspect
from collections import Counter
from typing import get_args

import pytest
import torch

from benchmarks import laptop_profile
from imagesets.augment.shuffling import Shuffle
from imagesets.randomness import Purpose, random_order
from leaderboards.boards.layout import check_layout, load_paper_table
from suite.models.convit.network import MODELS as CONVIT
from suite.models.convit.network import ConViT
from suite.models.deit import MODELS as DEIT_MODELS
from suite.models.registry import build_model
from suite.papers import get_suite, list_suites
from suite.papers.convit import recipes as convit
from suite.papers.shared.deit_recipes import DEIT
from suite.spec.experiment import Experiment
from suite.spec.figures import CurveFigure, LayerFigure, MapsFigure, PairFigure, ProgressFigure, RunFigure
from suite.spec.profile import ProfileName

NAMES = [name for name in list_suites() if name.startswith("convit_")]
ALL = [*NAMES, "sample_efficiency"]
PROFILES = [name for name in get_args(ProfileName) if name != "desktop"]  # those that every suite has
SMALL = ("laptop", "smoke")


def experiments(name: str, profile: str = "paper") -> list[Experiment]:
    return get_suite(name).profile(profile).experiments()


def find(name: str, row: tuple[str, ...], column: str, table: str = "", profile: str = "paper") -> Experiment:
    """The experiment of one cell."""
    suite = get_suite(name)
    (found,) = (
        entry.experiment
        for entry in suite.entries_of(suite.profile(profile), suite.table(table))
        if entry.row == row and column in entry.columns
    )
    return found


def test_the_papers_eight_questions_and_one_of_ours_beside_sample_efficiency_are_suites():
    assert [name.removeprefix("convit_") for name in NAMES] == [
        "ablation",
        "cifar100",
        "distillation",
        "imagenet",
        "locality",
        "masking",
        "probes",
        "psa",
        "shuffled",
    ]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("name", "num_cells", "num_trained", "num_teachers"),
    [
        ("convit_imagenet", 12 * 5 + 6, 12, 0),
        ("convit_ablation", 14, 14, 0),
        ("convit_distillation", 6, 6, 1),
        ("convit_masking", 4 + 9, 2, 0),
        ("convit_locality", 12, 10, 0),
        ("convit_psa", 6, 2, 0),
        ("convit_cifar100", 12, 6, 0),
        ("convit_probes", 6 + 6 + 3 + 4 + 3, 6, 0),
        ("convit_shuffled", 6, 6, 0),
        ("sample_efficiency", 10 * 3, 10, 0),
    ],
)
def test_every_profile_fills_every_cell(name, profile, num_cells, num_trained, num_teachers):
    if name == "convit_ablation" and profile in SMALL:
        num_cells, num_trained = 7, 7  # for time's sake: without the column of all images
    suite = get_suite(name)
    scale = suite.profile(profile)
    check_layout(suite, scale)
    assert sum(len(entry.columns) for entry in scale.entries) == num_cells
    trained = [experiment for experiment in scale.experiments() if experiment.is_trained]
    assert len(trained) == num_trained + (num_teachers if profile != "paper" else 0)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ALL)
def test_every_figure_and_headline_finds_the_runs_it_draws(name, profile):
    suite = get_suite(name)
    scale = suite.profile(profile)
    places = [suite.headline.better, suite.headline.baseline]
    for figure in suite.figures:
        if not isinstance(figure, RunFigure):
            continue
        gains = [pair.gain for pair in figure.pairs.values()] if isinstance(figure, PairFigure) else []
        for place in (place for place in figure.places if place not in gains):
            entry = suite.find_entry(scale, place)
            if (name, place.column) == ("convit_ablation", "full_data_top1") and profile in SMALL:
                assert entry is None
                continue
            assert entry is not None
            assert (entry.experiment.kind == "maps") == isinstance(figure, MapsFigure)
            if isinstance(figure, LayerFigure) and figure.quantity == "gates":
                assert entry.experiment.model.startswith("convit")
            places.append(place)
    assert all(suite.find_entry(scale, place) is not None for place in places)
    if name == "sample_efficiency" and profile in SMALL:
        assert scale.num_evaluations == 1  # for time's sake: its figure has bars, and no curves
        return
    if any(isinstance(figure, CurveFigure | ProgressFigure | PairFigure) for figure in suite.figures):
        assert scale.num_evaluations >= (3 if profile in SMALL else 6)


# -- the protocol at the paper's scale


@pytest.mark.parametrize("name", ALL)
def test_plus_models_train_with_half_the_batch_at_4e_4_and_all_others_with_deits_recipe(name):
    for experiment in experiments(name):
        length = {"epochs": experiment.recipe.epochs, "name": experiment.recipe.name}
        expected = DEIT.model_copy(update=length)
        if experiment.model.endswith("_plus"):
            expected = expected.model_copy(update={"batch_size": 512, "learning_rate": 4e-4, "mix_group": 64})
        if experiment.model.endswith("_b"):
            expected = expected.model_copy(update={"mix_group": 64})
        assert experiment.recipe == expected
        assert experiment.image_size == 224


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("convit_imagenet", {("imagenet", 1.0, 300): 12}),
        ("convit_ablation", {("imagenet", 1.0, 300): 7, ("imagenet", 0.1, 3000): 7}),
        ("convit_distillation", {("imagenet", 1.0, 300): 6}),
        ("convit_masking", {("imagenet", 1.0, 300): 2}),
        ("convit_locality", {("imagenet100", 1.0, 300): 10}),
        ("convit_psa", {("imagenet", 1.0, 300): 2}),
        ("convit_cifar100", {("cifar100", 1.0, 3000): 6}),
        ("convit_probes", {("imagenet", 1.0, 300): 6}),
        ("convit_shuffled", {("imagenet", 0.1, 3000): 6}),
        ("sample_efficiency", {("imagenet", f, 300 / f): 2 for f in (0.05, 0.1, 0.3, 0.5, 1.0)}),
    ],
)
def test_data_and_epochs_are_the_papers(name, lengths):
    trained = [experiment for experiment in experiments(name) if experiment.is_trained]
    assert Counter((e.dataset, e.train_fraction, e.recipe.epochs) for e in trained) == lengths


def test_table_1s_rows_are_the_models_with_those_heads_and_widths():
    for size, family in convit.SHAPES:
        row = (size, convit.TITLES[family], *map(str, convit.SHAPES[size, family]))
        experiment = find("convit_imagenet", row, "top1")
        assert experiment.model_options == {}
        built = {**CONVIT, **DEIT_MODELS}[experiment.model].keywords
        assert (built["num_heads"], built["dim"]) == convit.SHAPES[size, family]


@pytest.mark.parametrize(
    ("ref", "marks", "options"),
    [
        ("a (ConViT)", "1111", {}),
        ("b", "0111", {"train_gates": False}),
        ("c", "1011", {"conv_init": False}),
        ("d", "0011", {"train_gates": False, "conv_init": False}),
        ("f", "0101", {"train_gates": False, "train_gpsa": False}),
        ("g", "0001", {"train_gates": False, "conv_init": False, "train_gpsa": False}),
    ],
)
def test_table_3s_marks_are_the_models_switches(ref, marks, options):
    for column in ("full_data_top1", "ten_percent_data_top1"):
        experiment = find("convit_ablation", (ref, *marks), column)
        assert (experiment.model, experiment.model_options) == ("convit_s_plus", options)
    assert find("convit_ablation", ("e (DeiT)", *"0000"), "full_data_top1").model == "deit_s_plus"


def test_figure_8_varies_strength_and_gpsa_layers_and_without_layers_there_is_one_run():
    options = find("convit_locality", ("6", "0.01"), "top1").model_options
    assert options == {"num_gpsa_layers": 6, "locality_strength": 0.01}
    assert find("convit_locality", ("9", "1"), "top1").model_options == {"num_gpsa_layers": 9}
    assert len({find("convit_locality", ("0", strength), "top1").id for strength in ("0.01", "0.1", "1")}) == 1


def test_figure_8_right_shows_the_papers_epochs_at_the_models_own_strength():
    (figure,) = (figure for figure in get_suite("convit_locality").figures if isinstance(figure, ProgressFigure))
    assert [round(300 * share, 6) for share in figure.shares] == [20, 75, 130, 185, 240, 295]
    options = [find("convit_locality", place.row, place.column).model_options for place in figure.models.values()]
    assert options == [{"num_gpsa_layers": int(layers)} for layers in figure.models]


def test_figure_3_is_of_networks_that_take_nothing_over_and_train_nothing():
    (figure,) = (figure for figure in get_suite("convit_probes").figures if figure.name == "figure3")
    for profile in PROFILES:
        shown = [find("convit_probes", p.row, p.column, p.table, profile) for p in figure.models.values()]
        assert all(e.kind == "maps" and not e.parents for e in shown)
        switches = ("num_gpsa_layers", "attention", "locality_strength")
        gpsa, attention, strength = ([e.model_options.get(switch) for e in shown] for switch in switches)
        assert (gpsa[0], attention, strength) == (0, [None, "summed", "summed"], [None, 0.5, 2.0])
        assert {e.model_options.get("num_heads", 4) for e in shown} == {4}


@pytest.mark.parametrize("name", ["convit_cifar100", "convit_imagenet", "sample_efficiency"])
def test_figure_11s_bars_are_gains_between_the_best_accuracies_of_the_runs_whose_curves_it_draws(name):
    suite = get_suite(name)
    (figure,) = (figure for figure in suite.figures if isinstance(figure, PairFigure))
    assert figure.over_whole_sets == (name == "sample_efficiency")
    for pair in figure.pairs.values():
        table = suite.table(pair.gain.table)
        (gain,) = (derived for derived in table.derived if derived.column == pair.gain.column)
        for place, best in ((pair.baseline, gain.baseline), (pair.better, gain.better)):
            entry = suite.find_entry(suite.profile("paper"), pair.gain.model_copy(update={"column": best}))
            assert entry.columns[best] == "best_top1_percent"
            assert entry.experiment.id == find(name, place.row, place.column).id


def test_the_one_accuracy_that_figure_11a_has_in_words_is_a_cell():
    paper = load_paper_table("convit_figure11a", ("size",))
    numbers = {(row[0], column): paper.value(row, column) for row in paper.rows for column in paper.columns}
    assert {place: number for place, number in numbers.items() if number} == {("Ti+", "convit_best_top1"): 82.1}


def test_figure_9_is_vanilla_psa_beside_deit():
    assert [(e.model, e.model_options) for e in experiments("convit_psa")] == [
        ("convit_b", {"attention": "summed"}),
        ("deit_b", {}),
    ]


def test_students_differ_from_table_1s_runs_only_by_the_teacher():
    for column in ("deit_s", "deit_b", "convit_s_plus"):
        alone = find("convit_distillation", ("No distillation",), column)
        taught = find("convit_distillation", ("Hard distillation",), column)
        assert (taught.kind, taught.kind_options) == ("distillation", {"teacher": "regnety_160"})
        assert taught.recipe == alone.recipe
        for profile, width in (("gpu", {}), ("laptop", {"width": 4})):
            (teacher,) = find("convit_distillation", ("Hard distillation",), column, profile=profile).parents
            assert (teacher.model, teacher.model_options) == ("resnet18_cifar", width)


@pytest.mark.parametrize(("profile", "num_masked"), [("paper", [3, 5, 10]), ("gpu", [3, 5, 10]), ("laptop", [1, 2, 3])])
def test_table_6_masks_as_many_layers_as_it_says_or_as_many_of_the_laptops_three(profile, num_masked):
    for part in ("content", "position"):
        for row, expected in zip(("3", "5", "10"), num_masked, strict=True):
            experiment = find("convit_masking", (row,), f"mask_{part}", "convit_table6", profile)
            assert experiment.kind_options == {"mask": part, "num_layers": expected}
    experiment = find("convit_masking", ("DeiT-Ti",), "mask_pos_embed", profile=profile)
    assert experiment.kind_options == {"mask": "position_embedding"}


# -- sharing


def trained_ids(name: str, profile: str) -> set[str]:
    return {experiment.id for experiment in experiments(name, profile) if experiment.is_trained}


def test_masking_trains_nothing_that_table_1_does_not():
    for profile in PROFILES:
        assert trained_ids("convit_masking", profile) < trained_ids("convit_imagenet", profile)


@pytest.mark.parametrize("profile", ["paper", "gpu"])
def test_the_probes_train_nothing_that_table_1_does_not(profile):
    assert trained_ids("convit_probes", profile) < trained_ids("convit_imagenet", profile)


def test_runs_of_one_table_are_those_of_the_others_at_the_papers_scale():
    table1 = {e.model: e.id for e in experiments("convit_imagenet")}
    assert find("sample_efficiency", ("100",), "deit_top1").id == table1["deit_s"]
    assert find("convit_ablation", ("a (ConViT)", *"1111"), "full_data_top1").id == table1["convit_s_plus"]
    assert find("convit_ablation", ("e (DeiT)", *"0000"), "full_data_top1").id == table1["deit_s_plus"]
    assert find("convit_distillation", ("No distillation",), "deit_b").id == table1["deit_b"]
    assert find("convit_psa", ("DeiT-B",), "top1").id == table1["deit_b"]
    assert find("convit_masking", ("ConViT-Ti",), "no_mask").id == table1["convit_ti"]


def test_the_laptop_shares_runs_too():
    table1 = trained_ids("convit_imagenet", "laptop")
    assert not table1 & trained_ids("convit_ablation", "laptop")  # which has no column of all images there
    assert len(table1 & trained_ids("convit_locality", "laptop")) == 1
    assert len(table1 & trained_ids("convit_psa", "laptop")) == 1
    probed = trained_ids("convit_probes", "laptop")
    assert len(probed & trained_ids("convit_distillation", "laptop")) == 2
    assert len(trained_ids("convit_ablation", "laptop") & trained_ids("convit_distillation", "laptop")) == 1


def test_a_switch_left_at_the_models_default_makes_no_other_experiment():
    parameters = inspect.signature(ConViT).parameters
    defaults = {name: parameters[name].default for name in ("attention", "locality_strength", "conv_init")}
    switches = {name: parameters[name].default for name in ("train_gates", "train_gpsa")}
    for scale in (convit.laptop, convit.gpu, convit.paper):
        assert scale("convit", "Ti", **defaults, **switches).id == scale("convit", "Ti").id


def test_the_teacher_on_a_gpu_is_the_resnet_of_another_papers_table():
    resnets = {e.id for e in experiments("cordonnier_cifar10", "gpu") if e.model == "resnet18_cifar"}
    taught = find("convit_distillation", ("Hard distillation",), "deit_s", profile="gpu")
    assert {teacher.id for teacher in taught.parents} == resnets


def test_the_laptops_teacher_and_students_learn_from_the_same_images():
    for experiment in experiments("convit_distillation", "laptop"):
        assert (experiment.dataset, experiment.train_fraction) == ("cifar10", 0.04)


@pytest.mark.parametrize("profile", PROFILES)
def test_images_as_they_are_are_sample_efficiencys_runs_and_the_others_differ_by_their_shuffling_alone(profile):
    for column in ("deit_top1", "convit_top1"):
        plain, patches, within = (
            find("convit_shuffled", (row,), column, profile=profile)
            for row in ("as they are", "patches permuted", "pixels permuted within patches")
        )
        if profile != "smoke":  # which shrinks a suite by its largest share
            assert plain.id == find("sample_efficiency", ("10",), column, profile=profile).id
        size = plain.model_options.get("patch_size", 16)
        for shuffle, experiment in (("patches", patches), ("within_patches", within)):
            assert experiment == plain.model_copy(update={"shuffle": shuffle, "shuffle_patch_size": size})


@pytest.mark.parametrize(
    ("family", "shuffle"), [("deit", "patches"), ("deit", "within_patches"), ("convit", "within_patches")]
)
def test_a_network_with_its_random_start_permuted_does_on_shuffled_images_what_it_does_on_images_as_they_are(
    family, shuffle
):
    experiment = convit.micro(family).model_copy(update={"shuffle": shuffle, "shuffle_patch_size": 4})
    network = build_model(experiment.model, num_classes=10, image_size=32, **experiment.model_options).eval()
    images = torch.randn(8, 3, 32, 32)
    with torch.no_grad():
        expected = network(images)
        if shuffle == "patches":
            positions = network.pos_embed[:, 1:]  # without the class token's
            positions.copy_(positions[:, random_order(0, Purpose.SHUFFLE, 64)])
        else:
            weight = network.patch_embed.proj.weight.flatten(2)
            weight.copy_(weight[..., random_order(0, Purpose.SHUFFLE, 16)])
        shuffled = network(Shuffle(experiment)(images))
    torch.testing.assert_close(shuffled, expected, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(network(images), expected, atol=1e-2)


# -- the smaller scales


def test_the_laptops_sample_efficiency_sees_as_many_images_of_any_number():
    laptop = experiments("sample_efficiency", "laptop")
    assert sorted({round(50_000 * e.train_fraction) for e in laptop}) == [500, 1_000, 3_000, 5_000, 10_000]
    assert [round(50_000 * e.recipe.epochs * e.train_fraction) for e in laptop] == [18_000] * 10


def test_the_laptops_convit_has_as_many_plain_layers_as_the_papers_and_deit_the_same_recipe():
    deit, model = (find("sample_efficiency", ("5",), f"{f}_top1", profile="laptop") for f in ("deit", "convit"))
    assert model.recipe == deit.recipe
    assert model.model_options == {**deit.model_options, "num_gpsa_layers": model.model_options["depth"] - 2}


def test_the_laptop_trains_a_sixteenth_of_the_width_with_the_papers_heads():
    for (size, family), (num_heads, dim) in convit.SHAPES.items():
        options = convit.laptop(family, size).model_options
        assert (options["num_heads"], options["dim"]) == (num_heads, dim / 16)


def test_the_laptop_trains_what_its_search_chose():
    chosen = laptop_profile.CHOSEN.experiment("convit", 2e-3, seed=0)
    laptop = find("sample_efficiency", ("5",), "convit_top1", profile="laptop")
    assert {**laptop.model_options, "locality_strength": 1.0} == chosen.model_options
    same = {"recipe": chosen.recipe.model_copy(update={"name": laptop.recipe.name})}
    assert laptop == chosen.model_copy(update={**same, "model_options": laptop.model_options})


def test_the_laptop_upsamples_for_figure_11a_as_the_paper_does():
    for experiment in experiments("convit_cifar100", "laptop"):
        assert (experiment.image_size, experiment.model_options["patch_size"]) == (64, 8)
