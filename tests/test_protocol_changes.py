"""Which results of protocol 1 no longer hold: those that a change concerns which no identity shows, and no others."""

import pytest

from suite.papers.cmhsa import recipes as cmhsa
from suite.papers.convit import recipes as convit
from suite.papers.cordonnier import recipes as cordonnier
from suite.papers.structured_init import recipes as structured
from suite.store.protocol_changes import PROTOCOL_VERSION, void_metrics, why_void
from suite.store.results import Result
from suite.store.run_directory import RunDirectory
from suite.store.run_status import stand_alone

CPU, GPU = "AMD EPYC 7B13", "NVIDIA H200"
FROZEN = convit.laptop("convit", "S+", train_gpsa=False)
MASKED = convit.laptop("convit", "Ti").then("masking", mask="content", num_layers=1)
PSA = convit.gpu("convit", "B", attention="summed")
SEPARABLE = cordonnier.LAPTOP.network("sa_quadratic")


def in_bf16(experiment):
    return experiment.model_copy(update={"recipe": experiment.recipe.model_copy(update={"precision": "bf16"})})


def result(experiment, version=1, device=CPU, num_ranks=1, **fields):
    num_steps = experiment.num_steps(320)
    return Result(
        experiment=experiment, top1_percent=50, top5_percent=80, test_loss=1, best_top1_percent=50, num_parameters=1,
        num_train_images=320, num_test_images=64, num_steps=num_steps,
        images_seen=num_steps * experiment.recipe.batch_size, train_s=1, images_per_s=1920,
        device=device, num_ranks=num_ranks, num_attempts=1, commit="0" * 40, finished_at="2000-01-01",
        protocol_version=version, **fields,
    )  # fmt: skip


VOID = {
    "position bias is decayed": (result(cmhsa.LAPTOP.one_phase("attention")[0]), "CMHSA's position bias"),
    "norm was trained": (result(FROZEN), "the norm before frozen"),
    "gate was rounded": (result(convit.gpu("convit", "S"), device=GPU), "no longer rounded to bf16"),
    "two ranks, batch norm": (result(cordonnier.LAPTOP.resnet(), num_ranks=2), "batch norm"),
    "convmixer on two ranks": (result(structured.laptop_convmixer(3, 256, "box"), num_ranks=2), "batch norm"),
    "fp32 on a GPU": (result(cordonnier.PAPER_SCALE.resnet(), device=GPU), "fp32 on a GPU"),
    "maps": (result(convit.probed_laptop("deit", "Ti").then("maps")), "spread over the classes"),
    "of no protocol": (result(MASKED, version=0), "older than the first"),
    "of a later protocol": (result(MASKED, version=PROTOCOL_VERSION + 1), "update it"),
}
HOLDS = {
    "a convolution phase has no position bias": result(cmhsa.LAPTOP.one_phase("convolution", 3)[0]),
    "trained GPSA": result(convit.laptop("convit", "S+", train_gates=False)),
    "fp32 blends as it did": result(convit.laptop("convit", "S")),
    "no gate, bf16": result(PSA, device=GPU),
    "no GPSA layer, bf16": result(convit.gpu("convit", "S+", num_gpsa_layers=0), device=GPU),
    "DeiT, bf16": result(convit.gpu("deit", "S"), device=GPU),
    "separable maps in bf16 have another identity": result(in_bf16(SEPARABLE)),
    "one rank, batch norm": result(cordonnier.LAPTOP.resnet()),
    "two ranks, no batch norm": result(convit.laptop("deit", "S"), num_ranks=2),
    "masking on a CPU": result(MASKED),
}


@pytest.mark.parametrize("what", VOID)
def test_a_result_that_a_change_concerns_is_void_and_says_why(what):
    made, reason = VOID[what]
    assert reason in why_void(made)


@pytest.mark.parametrize("what", VOID)
def test_the_same_result_of_this_protocol_holds(what):
    made, _ = VOID[what]
    now = made.model_copy(update={"protocol_version": PROTOCOL_VERSION})
    assert why_void(now) == ""
    assert void_metrics(now) == {}


@pytest.mark.parametrize("what", HOLDS)
def test_a_result_that_no_change_concerns_holds_but_for_its_nonlocality(what):
    assert why_void(HOLDS[what]) == ""
    expected = {"mean_nonlocality", "nonlocality"} | ({"best_top1_percent"} if HOLDS[what].device == GPU else set())
    assert set(void_metrics(HOLDS[what])) == expected


def test_a_run_says_which_void_run_it_took_over_and_why_that_is_void(tmp_path):
    parent = cmhsa.LAPTOP.one_phase("attention")[0]
    child = parent.then("masking", mask="content")
    for experiment, fields in ((parent, {}), (child, {"parent": parent.id, "version": PROTOCOL_VERSION})):
        run = RunDirectory.of(tmp_path, experiment)
        run.create(experiment)
        run.write_result(result(experiment, **fields))
    found = stand_alone(RunDirectory.of(tmp_path, child), child)
    assert found.state == "void"
    assert found.reason.startswith(f"took over {parent.id}, which is void: made under protocol 1")
    RunDirectory.of(tmp_path, parent).result_path.unlink()
    found = stand_alone(RunDirectory.of(tmp_path, child), child)
    assert (found.state, found.reason) == ("done", f"took over {parent.id}, which is new in this store")
