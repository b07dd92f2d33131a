"""Runs that take over from other runs, and what is logged of attention: against what their definitions say."""

import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from imagesets.catalog import get_info
from imagesets.loader import ImageLoader
from suite.base.errors import DataError, RunError, SpecError
from suite.base.exit_codes import Exit
from suite.base.files import sha256_of
from suite.execute import run
from suite.models.convit.masking import masked
from suite.models.convit.probes import gating_values, nonlocality, probe
from suite.models.cordonnier.head_pruning import degenerate_heads
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment, with_ancestors
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status
from suite.training.distillation import Teacher
from suite.training.distributed import Ranks
from suite.training.loop import Training
from suite.training.measure.evaluate import evaluate
from suite.training.measure.untrained import measure
from suite.training.start import start_network, trained_network

SHORT = DEIT_LAPTOP.model_copy(update={"epochs": 0.5, "batch_size": 32, "warmup_epochs": 0.0})
NOTHING = SHORT.model_copy(update={"epochs": 0.1, "learning_rate": 1e-12})  # one step that moves nothing


def experiment(model: str, recipe: Recipe = SHORT, **options: object) -> Experiment:
    return Experiment(model=model, dataset="cifar10_sample", image_size=32, recipe=recipe, model_options=options)


CONVIT = experiment("convit_micro")
PHASE_1 = tuple(
    experiment("cmhsa_conv_micro", SHORT.model_copy(update={"learning_rate": rate})) for rate in (1e-3, 1e-7)
)
PHASE_2 = experiment("cmhsa_micro", NOTHING, bias_strength=40.0).model_copy(
    update={"kind": "transfer", "parents": PHASE_1}
)
SMALL_SA = {"dim": 16, "hidden_dim": 16, "depth": 2, "patch_size": 8, "num_heads": 4, "spread_std": 0.6}
GENERALIZED = experiment("sa_quadratic_generalized", **SMALL_SA)
PRUNED = GENERALIZED.then("pruning", max_condition_number=3.0).model_copy(update={"recipe": NOTHING})
HARMED = PRUNED.model_copy(update={"recipe": SHORT.model_copy(update={"learning_rate": 0.3})})
STUDENT = experiment("deit_micro", NOTHING).model_copy(update={"kind": "distillation", "parents": (CONVIT,)})
MASKS = {
    "position_embedding": CONVIT.then("masking", mask="position_embedding"),
    "content": CONVIT.then("masking", mask="content", num_layers=2),
}
MAPS = CONVIT.then("maps")
ALL = with_ancestors([PHASE_2, PRUNED, STUDENT, *MASKS.values(), MAPS])
INFO = get_info("cifar10_sample")
INTERRUPTED_IN_THE_THIRD_STEP = """
import os, signal
from suite.training.loop import Training

train_step = Training.train_step
def stop_in_the_third_step(self, step, batch):
    if step == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    return train_step(self, step, batch)
Training.train_step = stop_in_the_third_step
"""


@pytest.fixture(scope="module")
def store(execute, tmp_path_factory):
    store = tmp_path_factory.mktemp("runs")
    for one in ALL:
        RunDirectory.of(store, one).create(one)
    for one in ALL:
        directory = RunDirectory.of(store, one)
        assert execute(directory) == [0], directory.log_path.read_text()
    return store


def result(store, one):
    return RunDirectory.of(store, one).read_result()


def trained(store, one):
    return trained_network(RunDirectory.of(store, one), one, 10)


def logits(network, images):
    with torch.no_grad():
        return network.eval()(images)


@pytest.fixture(scope="module")
def images():
    return ImageLoader(CONVIT).test_batch(0, 20).images


def test_the_second_phase_starts_as_the_function_of_the_better_first_phase(store, images):
    best = max(PHASE_1, key=lambda one: result(store, one).top1_percent)
    first = trained_network(RunDirectory.of(store, best), best, 10)
    second = trained_network(RunDirectory.of(store, PHASE_2), PHASE_2, 10)
    torch.testing.assert_close(logits(second, images), logits(first, images), rtol=1e-3, atol=1e-4)
    assert result(store, PHASE_2).parent == best.id
    trained_s = result(store, PHASE_2).train_s + result(store, best).train_s
    assert result(store, PHASE_2).lineage_train_s == pytest.approx(trained_s)


def test_a_pruned_run_trains_on_without_the_heads_that_the_rule_removes(store):
    parent = trained_network(RunDirectory.of(store, GENERALIZED), GENERALIZED, 10)
    layers = [block.attention for block in parent.blocks]
    kept = [int((~degenerate_heads(layer, 3.0, 1e-5)).sum()) for layer in layers]
    assert 0 < sum(kept) < 8, "the test needs a network with heads of both kinds"
    assert result(store, PRUNED).num_pruned_heads == tuple(4 - heads for heads in kept)
    assert result(store, GENERALIZED).num_pruned_heads == ()
    state = load_file(RunDirectory.of(store, PRUNED).weights_path)
    assert [len(state[f"blocks.{number}.attention.centers_H2"]) for number in range(2)] == kept
    assert result(store, PRUNED).num_parameters < result(store, GENERALIZED).num_parameters
    assert result(store, PRUNED).num_linear_macs < result(store, GENERALIZED).num_linear_macs


def test_a_pruned_network_is_evaluated_once_before_its_first_step_however_often_its_training_is_resumed(execute, store):
    run = RunDirectory.of(store, HARMED)
    run.create(HARMED)
    assert execute(run, before=INTERRUPTED_IN_THE_THIRD_STEP) == [Exit.INTERRUPTED]
    assert execute(run) == [0], run.log_path.read_text()
    assert result(store, HARMED).num_attempts == 2
    measured = [line for line in run.read_metrics() if "top1_percent" in line]
    assert [line["step"] for line in measured] == [0, 1, 3, 5]
    pruned = start_network(run, HARMED, 10)
    expected = evaluate(pruned, ImageLoader(HARMED), Ranks(0, 1, torch.device("cpu")), "fp32")
    assert measured[0]["test_loss"] == pytest.approx(expected.loss)
    assert measured[0]["top1_percent"] == expected.top1_percent
    after = max(line["top1_percent"] for line in measured[1:])
    assert after < expected.top1_percent, "the test needs a training that harms"
    assert result(store, HARMED).best_top1_percent == after


def test_no_other_training_is_evaluated_before_its_first_step(store):
    for other in (GENERALIZED, PHASE_2, STUDENT):
        assert all(line["step"] > 0 for line in RunDirectory.of(store, other).read_metrics() if "top1_percent" in line)


@pytest.mark.parametrize("mask", MASKS)
def test_a_masking_run_reports_the_masked_accuracy_and_trains_nothing(store, mask):
    network = trained_network(RunDirectory.of(store, CONVIT), CONVIT, 10)
    with masked(network, mask, 2):
        expected = evaluate(network, ImageLoader(CONVIT), Ranks(0, 1, torch.device("cpu")), "fp32")
    found = result(store, MASKS[mask])
    assert (found.top1_percent, found.test_loss) == pytest.approx((expected.top1_percent, expected.loss))
    assert found.test_loss != pytest.approx(result(store, CONVIT).test_loss)
    assert (found.num_steps, found.images_seen, found.train_s) == (0, 0, 0)
    assert found.device_hours > 0
    assert found.parent == CONVIT.id


def test_recorded_maps_are_those_of_the_networks_before_and_after_training(store, images):
    batch = ImageLoader(CONVIT).spread_batch(100).images
    assert result(store, MAPS).maps_sha256 == sha256_of(RunDirectory.of(store, MAPS).maps_path)
    run = RunDirectory.of(store, CONVIT)
    networks = {"before": start_network(run, CONVIT, 10), "after": trained_network(run, CONVIT, 10)}
    with safe_open(RunDirectory.of(store, MAPS).maps_path, "pt") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        ((_, about),) = file.metadata().items()  # a second entry would stand before or after it by chance
    assert json.loads(about)["grid"] == [4, 4]
    assert json.loads(about)["queries"] == [[2, 2], [1, 1], [0, 2], [3, 3]]
    for when, network in networks.items():
        for number, map_BHNN in enumerate(probe(network, batch, torch.clone).values()):
            patches = map_BHNN[:, :, -16:, -16:]
            single = patches[:, :, 10].unflatten(-1, (4, 4))  # row 2, column 2
            torch.testing.assert_close(tensors[f"{when}/{number:02d}/images"], single[:4])
            torch.testing.assert_close(tensors[f"{when}/{number:02d}/central"], single.mean(0))
            others = patches[:, :, [10, 5, 2, 15]].mean(0).unflatten(-1, (4, 4))
            torch.testing.assert_close(tensors[f"{when}/{number:02d}/queries"], others)
            between = tensors[f"{when}/{number:02d}/between"]
            torch.testing.assert_close(between, patches.mean((0, 1)).half(), rtol=2e-3, atol=1e-6)  # a step of half's
    torch.testing.assert_close(tensors["after/00/gates"], next(iter(gating_values(networks["after"]).values())))
    assert torch.equal(tensors["images"], ImageLoader(CONVIT).spread_pixels(100)[:4])  # those of the single maps
    assert tensors["images"].dtype == torch.uint8


def test_maps_without_a_parent_are_those_of_the_network_as_initialized(tmp_path):
    maps = experiment("convit_micro", attention="summed", locality_strength=2.0).model_copy(update={"kind": "maps"})
    run = RunDirectory.of(tmp_path, maps)
    run.create(maps)
    found = measure(run, maps, Resources(), Ranks(0, 1, torch.device("cpu")))
    assert (found.num_steps, found.parent, maps.is_trained) == (0, "", False)
    tensors = load_file(run.maps_path)
    assert {name.split("/")[0] for name in tensors} == {"images", "before"}
    head_8 = torch.tensor([1, 1])  # the last of 3 x 3 offsets, (rows, columns)
    place = torch.cartesian_prod(torch.arange(4), torch.arange(4)) - torch.tensor([2, 2])
    expected = (-2.0 * (place - head_8).square().sum(-1)).softmax(0)  # Eq. 5; queries and keys add a little
    torch.testing.assert_close(tensors["before/00/central"][8].flatten(), expected, rtol=0.1, atol=1e-3)


def test_nonlocality_and_gates_are_logged_at_the_start_and_after_each_epoch(store):
    run = RunDirectory.of(store, CONVIT)
    lines = [line for line in run.read_metrics() if "nonlocality" in line]
    assert [line["step"] for line in lines] == [0, 5]  # half an epoch
    network = trained_network(run, CONVIT, 10)
    batch = ImageLoader(CONVIT).test_batch(0, 100).images
    for layer, expected in zip(lines[-1]["nonlocality"], nonlocality(network, batch).values(), strict=True):
        assert layer == pytest.approx(expected.tolist(), abs=2e-6)
    assert len(lines[-1]["gates"]) == 2
    assert result(store, CONVIT).mean_nonlocality == pytest.approx(np.mean(lines[-1]["nonlocality"]), abs=1e-6)


def test_where_gaussian_heads_are_is_logged_from_the_start_to_the_end(store):
    run = RunDirectory.of(store, GENERALIZED)
    lines = [line for line in run.read_metrics() if "centers" in line]
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4, 5]  # half an epoch in fewer steps than twenty
    for line, network in ((lines[0], start_network(run, GENERALIZED, 10)), (lines[-1], trained(store, GENERALIZED))):
        for number, block in enumerate(network.blocks):
            layer = block.attention
            centers, precisions = (torch.tensor(line[key][number]) for key in ("centers", "precisions"))
            torch.testing.assert_close(centers, layer.centers_H2.data, rtol=0, atol=5.1e-4)
            expected = (layer.spreads @ layer.spreads.mT).detach()
            torch.testing.assert_close(precisions[:, [[0, 1], [1, 2]]], expected, rtol=5.1e-3, atol=0)
    assert lines[0]["centers"] != lines[-1]["centers"]
    assert not any("centers" in line for line in RunDirectory.of(store, CONVIT).read_metrics())


@pytest.mark.parametrize(("epochs", "expected"), [(300, 300), (600, 300), (2, 20), (0.7, 20), (30, 30)])
def test_places_of_heads_are_logged_each_epoch_and_at_least_twenty_times(epochs, expected):
    training = Training.__new__(Training)
    training.recipe = SHORT.model_copy(update={"epochs": float(epochs), "batch_size": 10})
    training.images = SimpleNamespace(num_train=1000)
    training.num_steps = round(100 * epochs)
    steps = [step for step in range(1, training.num_steps + 1) if training._are_heads_located(step)]
    assert len(steps) == expected
    assert steps[-1] == training.num_steps
    assert max(np.diff([0, *steps])) <= min(np.diff([0, *steps])) + 1


def test_a_student_learns_labels_and_the_teachers_answers_by_halves(store, images):
    run = RunDirectory.of(store, STUDENT)
    teacher = Teacher(run, STUDENT, Resources(), INFO, torch.device("cpu"))
    answers = logits(trained_network(RunDirectory.of(store, CONVIT), CONVIT, 10), images).argmax(-1)
    student = torch.randn(20, 10)
    expected = -student.log_softmax(-1)[torch.arange(20), answers].mean() / 2 + 3.0 / 2
    torch.testing.assert_close(teacher.loss(images, student, torch.tensor(3.0)), expected)
    assert result(store, STUDENT).parent == CONVIT.id


def test_the_logged_loss_of_a_distillation_is_that_of_eq_3(store):
    run = RunDirectory.of(store, STUDENT)
    batch, labels = ImageLoader(STUDENT).train_batch(0)
    own = logits(start_network(run, STUDENT, 10), batch)
    answers = logits(trained_network(RunDirectory.of(store, CONVIT), CONVIT, 10), batch).argmax(-1)
    expected = (torch.nn.functional.cross_entropy(own, target) for target in (labels, answers))
    logged = next(line["loss"] for line in run.read_metrics() if "loss" in line)
    assert logged == pytest.approx(sum(expected).item() / 2, rel=1e-4)


def test_a_run_whose_parent_is_missing_neither_trains_nor_fails(tmp_path):
    directory = RunDirectory.of(tmp_path, MAPS)
    directory.create(MAPS)
    assert run(directory.path, Resources()) == Exit.BLOCKED
    assert find_run_status(directory, directory.read_experiment()).state == "waiting"


def test_a_run_whose_parent_has_an_unreadable_result_does_not_look_as_if_another_grid_had_it(tmp_path, capsys):
    directory, parent = (RunDirectory.of(tmp_path, one) for one in (MAPS, CONVIT))
    directory.create(MAPS)
    parent.create(CONVIT)
    parent.result_path.write_text("rubbish")
    assert run(directory.path, Resources()) == Exit.BLOCKED
    assert str(parent.result_path) in capsys.readouterr().err


def test_a_run_that_only_measures_counts_the_corrupt_images_of_all_ranks(store):
    class FirstOfTwo(Ranks):
        def union(self, items):
            is_usage = any(len(item) == 3 for item in items)  # of this rank alone
            return items if is_usage else items | {("test", 99)}

    masking = MASKS["content"]
    ranks = FirstOfTwo(0, 1, torch.device("cpu"))
    assert measure(RunDirectory.of(store, masking), masking, Resources(), ranks).num_corrupt_images == 1


def test_operations_of_a_measured_network_are_those_of_the_heads_that_are_left(store):
    maps = PRUNED.then("maps")
    directory = RunDirectory.of(store, maps)
    directory.create(maps)
    found = measure(directory, maps, Resources(), Ranks(0, 1, torch.device("cpu")))
    assert found.num_macs == result(store, PRUNED).num_macs
    assert found.num_parameters == result(store, PRUNED).num_parameters


def test_a_teacher_sees_images_normalized_as_it_was_trained_on(store):
    student = STUDENT.model_copy(update={"normalization": "cordonnier"})
    teacher = Teacher(RunDirectory.of(store, student), student, Resources(), INFO, torch.device("cpu"))
    shown, expected = (ImageLoader(one).test_batch(0, 20).images for one in (student, CONVIT))
    assert not torch.allclose(shown, expected, atol=0.1)
    network = trained_network(RunDirectory.of(store, CONVIT), CONVIT, 10)
    torch.testing.assert_close(logits(teacher._network, shown), logits(network, expected), atol=1e-4, rtol=1e-4)


def test_a_teacher_without_weights_says_which_option_names_them(tmp_path):
    student = experiment("deit_micro").model_copy(
        update={"kind": "distillation", "kind_options": {"teacher": "resnet18"}}
    )
    with pytest.raises(SpecError, match="--teacher-weights FILE"):
        Teacher(RunDirectory.of(tmp_path, student), student, Resources(), INFO, torch.device("cpu"))


def test_a_timm_teachers_weights_come_from_its_file(tmp_path):
    import timm
    from safetensors.torch import save_file

    network = timm.create_model("resnet10t", num_classes=10)
    save_file(network.state_dict(), tmp_path / "teacher.safetensors")
    student = experiment("deit_micro").model_copy(
        update={"kind": "distillation", "kind_options": {"teacher": "resnet10t"}}
    )
    resources = Resources(teacher_weights=str(tmp_path / "teacher.safetensors"))
    teacher = Teacher(RunDirectory.of(tmp_path, student), student, resources, INFO, torch.device("cpu"))
    batch = torch.randn(3, 3, 32, 32)
    assert torch.equal(teacher.labels(batch), logits(network, batch).argmax(-1))


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
@pytest.mark.parametrize(
    "content", ["garbage", "empty", "list", "number", "other weights", "folder", "missing", "fifo"]
)
def test_a_teachers_file_that_holds_no_weights_of_it_is_named(tmp_path, content, suffix):
    path = tmp_path / f"teacher.{suffix}"
    objects = {"list": [1, 2], "number": 3, "other weights": {"fc.weight": torch.zeros(2)}}
    if content in objects:
        torch.save(objects[content], path)
    elif content == "folder":
        path.mkdir()
    elif content == "fifo":
        os.mkfifo(path)
    elif content != "missing":
        path.write_bytes(b"" if content == "empty" else bytes(range(256)))
    student = experiment("deit_micro").model_copy(
        update={"kind": "distillation", "kind_options": {"teacher": "resnet10t"}}
    )
    with pytest.raises(DataError, match=rf"teacher\.{suffix} are no weights of resnet10t for 10 classes: "):
        Teacher(
            RunDirectory.of(tmp_path, student), student, Resources(teacher_weights=str(path)), INFO, torch.device("cpu")
        )


def test_a_measured_loss_that_is_not_finite_is_an_error_and_no_record(store, monkeypatch):
    start = sys.modules["suite.training.measure.untrained"].trained_network

    def overflowing(*arguments):
        network = start(*arguments)
        with torch.no_grad():
            network.head.weight.fill_(float("inf"))
        return network

    monkeypatch.setattr("suite.training.measure.untrained.trained_network", overflowing)
    masking = MASKS["content"]
    with pytest.raises(RunError, match=rf"the test loss is nan.*the network of {CONVIT.id}"):
        measure(RunDirectory.of(store, masking), masking, Resources(), Ranks(0, 1, torch.device("cpu")))


@pytest.mark.parametrize("damage", ["a flipped bit", "cut", "rubbish", "gone"])
def test_a_parent_whose_weights_are_not_those_it_has_left_is_refused(store, damage):
    path = RunDirectory.of(store, GENERALIZED).weights_path
    whole = path.read_bytes()
    damaged = {"a flipped bit": whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:], "cut": whole[:-1], "rubbish": b"no"}
    try:
        path.unlink()
        if damage != "gone":
            path.write_bytes(damaged[damage])
        with pytest.raises(RunError, match=r"cannot take over .*weights\.safetensors: .*Delete .*result\.json"):
            start_network(RunDirectory.of(store, PRUNED), PRUNED, 10)
    finally:
        path.write_bytes(whole)
    start_network(RunDirectory.of(store, PRUNED), PRUNED, 10)


def test_an_experiment_that_depends_on_another_is_named_by_it():
    assert CONVIT.then("maps").configuration_id != experiment("convit_micro", NOTHING).then("maps").configuration_id
    assert MAPS.with_seed(3).parents[0].seed == 3
    assert MAPS.with_seed(3).configuration_id == MAPS.configuration_id
    with pytest.raises(ValueError, match="0 parents"):
        CONVIT.model_copy(update={"kind": "masking"})
    with pytest.raises(ValueError, match="Did you mean 'num_layers'"):
        CONVIT.then("masking", mask="content", num_layer=2)
