"""Exported networks are timm's own, or this suite's, logit for logit."""

import json
from pathlib import Path

import pytest
import timm
import torch

from suite.base.errors import RecordError, RunError, SpecError
from suite.export.folder import export, load_folder
from suite.export.timm_layout import find_layout
from suite.models.registry import build_model
from suite.store.run_directory import RunDirectory
from suite.training.checkpoint import save_weights
from suite.training.start import start_network

NETWORKS = {  # name, options, timm's class
    "deit": ("deit_micro", {}, timm.models.vision_transformer.VisionTransformer),
    "deit of other patches": ("deit_micro", {"patch_size": 4, "depth": 2}, timm.models.VisionTransformer),
    "convit": ("convit_micro", {}, timm.models.convit.ConVit),
    "convit without positional layers": ("convit_micro", {"num_gpsa_layers": 0}, timm.models.convit.ConVit),
    "vit, sinusoidal, average": ("vit_t", {"depth": 2, "patch_size": 4}, timm.models.VisionTransformer),
    "vit, learned, class token": (
        "vit_t", {"depth": 2, "patch_size": 4, "position": "learned", "pooling": "class_token"},
        timm.models.VisionTransformer,
    ),
    "vit, learned, average": (
        "vit_t", {"depth": 2, "patch_size": 4, "position": "learned"}, timm.models.VisionTransformer
    ),
}  # fmt: skip
OWN = {
    "convit, summed": ("convit_micro", {"attention": "summed"}),
    "convit, all positional": ("convit_micro", {"num_gpsa_layers": 3}),
    "convmixer": ("convmixer", {"dim": 8, "depth": 2}),
    "quadratic attention": ("sa_quadratic", {"dim": 16, "hidden_dim": 16, "depth": 2, "patch_size": 8}),
    "resnet": ("resnet18_cifar", {"width": 4}),
    "cmhsa": ("cmhsa_micro", {}),
}


def logits(network):
    images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        return network(images)


@pytest.mark.parametrize("name", NETWORKS)
def test_timm_gives_the_logits_of_an_exported_run(name, make_run, tmp_path):
    model, options, timms_class = NETWORKS[name]
    run, network = make_run(tmp_path / "runs", model, options)
    assert export(run, tmp_path / "out")
    loaded = timm.create_model(f"local-dir:{tmp_path / 'out'}", pretrained=True).eval()
    assert type(loaded) is timms_class
    torch.testing.assert_close(logits(loaded), logits(network), rtol=1e-4, atol=1e-5)
    assert logits(network).std() > 0.01
    torch.testing.assert_close(logits(load_folder(tmp_path / "out")), logits(loaded), rtol=0, atol=0)


@pytest.mark.parametrize("name", OWN)
def test_a_network_that_timm_lacks_is_loaded_by_the_suite_from_the_same_folder(name, make_run, tmp_path):
    run, network = make_run(tmp_path / "runs", *OWN[name])
    assert not export(run, tmp_path / "out")
    torch.testing.assert_close(logits(load_folder(tmp_path / "out")), logits(network), rtol=0, atol=0)


def test_a_convmixer_is_timms_where_timm_has_its_sizes():
    with torch.device("meta"):
        ours = build_model("convmixer", image_size=224, dim=1536, depth=20, kernel_size=9, patch_size=7)
        layout = find_layout(ours)
        theirs = timm.create_model(layout.architecture)
    assert {name: t.shape for name, t in theirs.state_dict().items()} == {n: t.shape for n, t in layout.weights.items()}
    assert str(theirs.blocks) == str(ours.blocks)


def test_what_timm_is_told_of_the_images_is_what_the_run_was_tested_with(make_run, tmp_path):
    run, _ = make_run(tmp_path / "runs", "deit_micro", {}, normalization="half")
    export(run, tmp_path / "out")
    told = timm.create_model(f"local-dir:{tmp_path / 'out'}", pretrained=True).pretrained_cfg
    assert told["input_size"] == (3, 32, 32)
    assert (told["mean"], told["std"], told["crop_pct"]) == ([0.5] * 3, [0.5] * 3, 1.0)
    assert told["label_names"][0] == "airplane"


def test_a_run_without_a_result_that_holds_or_weights_of_its_own_is_refused(make_run, tmp_path):
    run, _ = make_run(tmp_path, "convit_micro", {})
    experiment = run.read_experiment()
    run.result_path.rename(tmp_path / "result.json")
    with pytest.raises(RunError, match="expected a finished run"):
        export(run, tmp_path / "out")
    void, _ = make_run(tmp_path, "convit_micro", {}, seed=1, result={"protocol_version": 0})
    with pytest.raises(RunError, match="is void: made under protocol 0"):
        export(void, tmp_path / "out")
    with pytest.raises(RunError, match="is no run"):
        export(RunDirectory(tmp_path / "nowhere"), tmp_path / "out")
    masked = experiment.then("masking", mask="content")
    result = json.loads((tmp_path / "result.json").read_text()) | {
        "experiment": masked.model_dump(mode="json"),
        "num_steps": 0,
        "images_seen": 0,
    }
    of_masked = RunDirectory.of(tmp_path, masked)
    of_masked.create(masked)
    del result["sha256"]  # the seal of what was written
    of_masked.result_path.write_text(json.dumps(result))
    with pytest.raises(SpecError, match=f"take {experiment.id}"):
        export(of_masked, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"convolutional_prior": None}, "not exported by this suite"),
        ({"convolutional_prior": {"version": 99}}, "update the suite"),
        ({"num_classes": 11}, "Export the run again"),
    ],
)
def test_a_folder_that_is_not_ours_newer_or_changed_is_refused(make_run, tmp_path, change, message):
    run, _ = make_run(tmp_path / "runs", "resnet18_cifar", {"width": 4})
    export(run, tmp_path / "out")
    path = Path(tmp_path / "out/config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RecordError, match=message):
        load_folder(tmp_path / "out")


def test_a_pruned_network_is_exported_with_the_heads_that_it_has_left(make_run, tmp_path):
    sizes = {"dim": 16, "hidden_dim": 16, "depth": 2, "patch_size": 8, "num_heads": 4, "spread_std": 0.6}
    parent, _ = make_run(tmp_path, "sa_quadratic_generalized", sizes)
    experiment = parent.read_experiment().then("pruning", max_condition_number=3.0)
    run = RunDirectory.of(tmp_path, experiment)
    run.create(experiment)
    network = start_network(run, experiment, 10).eval()
    save_weights(network.state_dict(), run.weights_path)
    result = json.loads(parent.result_path.read_text()) | {"experiment": experiment.model_dump(mode="json")}
    del result["sha256"]  # the seal of what was written
    run.result_path.write_text(json.dumps(result))
    assert network.heads_per_layer != "4,4"
    assert not export(run, tmp_path / "out")
    torch.testing.assert_close(logits(load_folder(tmp_path / "out")), logits(network), rtol=0, atol=0)
