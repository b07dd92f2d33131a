"""Model cards and result tables, as the tools read them that they are for."""

import csv
from pathlib import Path

import pytest
import timm
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from suite.export.__main__ import main
from suite.export.folder import export
from suite.papers import get_suite

MICRO = get_suite("sample_efficiency").profile("smoke").experiments()[0]


def test_the_hubs_own_parser_finds_the_runs_numbers_in_its_card(make_run, tmp_path):
    run, _ = make_run(tmp_path / "runs", "deit_micro", {})
    export(run, tmp_path / "out")
    card = ModelCard.load(tmp_path / "out/README.md")
    found = {result.metric_name: result for result in card.data.eval_results}
    assert {name: result.metric_value for name, result in found.items()} == {
        "top-1 accuracy, %": 41.25, "top-5 accuracy, %": 89.5
    }  # fmt: skip
    assert card.data.model_name == run.read_experiment().id
    assert found["top-1 accuracy, %"].dataset_type == "cifar10_sample"
    assert card.data.library_name == "timm"


def test_the_hub_lists_a_run_beside_its_own_images_by_name_revision_and_date(make_run, tmp_path):
    run, _ = make_run(tmp_path / "runs", "deit_micro", {}, dataset="cifar10", train_fraction=300 / 50_000)
    export(run, tmp_path / "out")
    (entry,) = parse_eval_result_entries(yaml.safe_load((tmp_path / "out/.eval_results/cifar10.yaml").read_text()))
    assert (entry.dataset_id, entry.value, entry.task_id) == ("uoft-cs/cifar10", 41.25, "default")
    assert entry.date == "2026-01-01T00:00:00+00:00"
    assert "on 200 test images after training on 300, seed 0" in entry.notes
    (first, _) = ModelCard.load(tmp_path / "out/README.md").data.eval_results
    assert (first.dataset_type, first.dataset_revision) == (entry.dataset_id, entry.dataset_revision)


@pytest.mark.parametrize(
    "fields", [{}, {"dataset": "cifar10", "train_fraction": 0.006, "shuffle": "patches", "shuffle_patch_size": 4}]
)
def test_a_run_on_images_that_the_hub_has_not_leaves_it_no_score(make_run, tmp_path, fields):
    run, _ = make_run(tmp_path / "runs", "deit_micro", {}, **fields)
    export(run, tmp_path / "out")
    assert not (tmp_path / "out/.eval_results").exists()


def test_a_card_names_suite_scale_seed_protocol_commit_and_data(make_run, tmp_path):
    fields = {name: getattr(MICRO, name) for name in ("dataset", "image_size", "recipe", "train_fraction")}
    run, _ = make_run(tmp_path / "runs", MICRO.model, dict(MICRO.model_options), **fields)
    assert run.read_experiment().id == MICRO.id
    export(run, tmp_path / "out")
    text = ModelCard.load(tmp_path / "out/README.md").text
    for told in ("sample_efficiency (ConViT", "profile smoke", "| seed | 0 |", "| commit | v0.2.0 |", "300 images"):
        assert told in text
    assert '"learning_rate"' in text


def test_a_card_says_that_its_network_was_shown_shuffled_images(make_run, tmp_path):
    run, _ = make_run(tmp_path / "runs", "deit_micro", {}, shuffle="patches", shuffle_patch_size=4)
    export(run, tmp_path / "out")
    assert ", shuffled: patches of 4x4 pixels |" in (tmp_path / "out/README.md").read_text()


def test_a_card_shows_the_call_that_loads_its_folder(make_run, tmp_path):
    for model, options in (("deit_micro", {}), ("resnet18_cifar", {"width": 4})):
        run, _ = make_run(tmp_path / "runs", model, options)
        export(run, tmp_path / model)
        text = (tmp_path / model / "README.md").read_text()
        code = text.split("```python\n")[1].split("```")[0].replace("DIR", str(tmp_path / model))
        names = {}
        exec(code, names)
        assert names["model"].training is False


def test_the_results_have_timms_columns_and_numbers(make_run, tmp_path):
    store = tmp_path / "runs"
    make_run(store, "deit_micro", {})
    best, _ = make_run(store, "convit_micro", {}, result={"top1_percent": 50.0})
    unfinished, _ = make_run(store, "deit_micro", {}, seed=1)
    unfinished.result_path.unlink()
    assert main(["--runs", str(store), "--results-csv", str(tmp_path / "results.csv")]) == 0
    first, second = csv.DictReader((tmp_path / "results.csv").read_text().splitlines())
    assert (first["model"], first["top1"], first["top1_err"]) == (best.read_experiment().id, "50.000", "50.000")
    assert (second["param_count"], second["img_size"], second["crop_pct"]) == ("0.11", "32", "1")
    steps = best.read_experiment().num_steps(300)
    assert (second["train_samples_per_sec"], second["train_step_time"]) == ("1280.00", f"{3000 / steps:.3f}")
    assert second["infer_gmacs"] == ""


def test_a_run_on_images_that_do_not_lie_here_stands_in_the_results(make_run, tmp_path):
    make_run(tmp_path / "runs", "deit_micro", {})
    make_run(tmp_path / "runs", "convit_micro", {}, dataset="flowers", result={"top1_percent": 50.0})
    assert main(["--runs", str(tmp_path / "runs"), "--results-csv", str(tmp_path / "results.csv")]) == 0
    first, second = csv.DictReader((tmp_path / "results.csv").read_text().splitlines())
    assert (first["top1"], first["crop_pct"], second["crop_pct"]) == ("50.000", "", "1")


def test_the_command_exports_by_id_and_by_folder(make_run, tmp_path, capsys):
    run, _ = make_run(tmp_path / "runs", "deit_micro", {})
    name = run.read_experiment().id
    assert main([name, "--runs", str(tmp_path / "runs"), "--to", str(tmp_path / "a")]) == 0
    assert f'timm.create_model("local-dir:{tmp_path / "a"}", pretrained=True)' in capsys.readouterr().out
    assert main([str(run.path), "--to", str(tmp_path / "b")]) == 0
    assert (tmp_path / "a/model.safetensors").read_bytes() == (tmp_path / "b/model.safetensors").read_bytes()
    assert timm.create_model(f"local-dir:{tmp_path / 'b'}", pretrained=True)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["x/seed-0", "--to", "out"], 1, "x/seed-0 is no run"),
        (["--runs", "nowhere", "--results-csv", "r.csv"], 2, "there is no run store nowhere"),
        (["x/seed-0"], 2, "expected RUN with --to DIR"),
        ([], 2, "expected RUN with --to DIR, --results-csv FILE or --bibtex FILE"),
    ],
)
def test_misuse_says_what_was_expected(arguments, status, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        found = main(arguments)
    except SystemExit as ended:
        found = ended.code
    assert found == status
    assert message in capsys.readouterr().err
    assert list(Path(tmp_path).iterdir()) == []
