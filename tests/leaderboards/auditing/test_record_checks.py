"""Each altered number of packed records is caught by its name, without training; so is a pack that is none."""

import io
import json
import shutil
import tarfile
import zipfile

import numpy as np
import pytest

from leaderboards.auditing.comparison import compare
from leaderboards.auditing.record_checks import PARTS, check_records, read_environment
from leaderboards.auditing.retraining import find_odds
from leaderboards.published_boards import PUBLISHED
from leaderboards.verify import main
from suite.base.files import sha256_of
from suite.store.predictions import NOT_COUNTED, Predictions, write_predictions
from suite.store.results import PROTOCOL_VERSION, RESULT_FORMAT
from suite.store.run_directory import RunDirectory
from suite.store.run_store import list_runs
from tests.leaderboards.auditing.conftest import EXPERIMENT, alter, write_right


def problems_of(store):
    return {check.part: check.problems for check in check_records(store) if check.problems}


def test_records_as_training_leaves_them_are_sound_in_every_part(store):
    checks = check_records(store)
    assert [check.part for check in checks] == list(PARTS)
    assert {check.part: check.num_checked for check in checks if check.num_checked != 2} == {
        "maps": 0,
        "plan": 3,
        "tuning": 0,
    }
    assert problems_of(store) == {}


def replace_predictions(run):
    alter(run.result_path, **write_right(run, 5000), best_top1_percent=50.0, top5_percent=60.0)


def unpack_to_gigabytes(run):
    with zipfile.ZipFile(run.predictions_path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("predicted.npy", bytes(1 << 27))


def leave_out(run):
    """Wrong answers as if their images could not be decoded."""
    predicted = np.full(10_000, NOT_COUNTED, np.int16)
    predicted[:4000] = 0
    digest = write_predictions(run, Predictions(predicted, np.zeros(10_000, np.int16)))
    alter(run.result_path, top1_percent=100.0, best_top1_percent=100.0, top5_percent=100.0, predictions_sha256=digest)
    run.metrics_path.unlink()
    run.append_metrics({"step": 1, "top1_percent": 100.0, "test_loss": 1.0})


ALTERED = {
    "result": [
        (
            lambda run: run.result_path.write_bytes(run.result_path.read_bytes().replace(b"40.0", b"41.0")),
            "another SHA",
        ),
        (lambda run: alter(run.result_path, format_version=RESULT_FORMAT + 1), "newer version of the suite"),
        (lambda run: alter(run.result_path, num_steps=7), "num_steps is 7, expected"),
    ],
    "protocol": [
        (lambda run: alter(run.result_path, protocol_version=PROTOCOL_VERSION + 1), "made under protocol"),
        (lambda run: alter(run.result_path, protocol_version=1), "made under protocol 1"),
    ],
    "identity": [
        (lambda run: alter(run.experiment_path, train_fraction=0.5), "experiment.json is that of deit_micro-"),
        (lambda run: alter(run.experiment_path, model="../../x"), "its model is called '../../x'"),
        (
            lambda run: alter(run.result_path, parent="deit_micro-0/seed-0"),
            "took over deit_micro-0/seed-0, which is none",
        ),
    ],
    "environment": [
        (lambda run: alter(run.result_path, commit="1" * 40), "environment.json has commit 0000"),
        (lambda run: run.environment_path.unlink(), "environment.json is missing"),
    ],
    "log": [
        (replace_predictions, "logged are top1_percent 40, result.json has 50; best_top1_percent 40"),
        (lambda run: alter(run.result_path, test_loss=0.5), "logged are test_loss 1, result.json has 0.5"),
        (lambda run: alter(run.result_path, mean_gate=0.5), "logged are mean_gate nothing, result.json has 0.5"),
        (
            lambda run: run.append_metrics({"step": 1, "nonlocality": [[1.0, 2.0], [3.0]]}),
            "logged are mean_nonlocality 2, result.json has nothing",
        ),
    ],
    "predictions": [
        (lambda run: alter(run.result_path, top1_percent=39.0), "40.00 % of them are right, result.json has 39.00"),
        (lambda run: write_right(run, 4001), "its SHA-256 is not the one in result.json"),
        (lambda run: alter(run.result_path, **write_right(run, 40, 100)), "100 predictions, expected 10000"),
        (lambda run: alter(run.result_path, predictions_sha256=""), "result.json names no predictions"),
        (leave_out, "6000 images without one, result.json has 0 that cannot be decoded"),
    ],
    "maps": [
        (lambda run: run.maps_path.write_bytes(b"no maps"), "maps.safetensors cannot be read"),
        (lambda run: (record_maps(run, "grid", 1.0), alter(run.result_path, maps_sha256="")), "another SHA-256"),
    ],
    "plan": [(lambda run: alter(run.result_path, plan_sha256="5" * 64), "plan_sha256 is 5555555555555555...")],
}


@pytest.mark.parametrize(("part", "change", "words"), [(part, *of) for part, cases in ALTERED.items() for of in cases])
def test_an_altered_record_is_caught_by_its_name(part, change, words, store, run):
    change(run)
    found = problems_of(store)[part]
    assert len(found) == 1
    assert found[0].startswith(run.id)
    assert words in found[0]


def test_predictions_that_unpack_to_gigabytes_are_refused_before_they_are_unpacked(store, run):
    unpack_to_gigabytes(run)
    alter(run.result_path, predictions_sha256=sha256_of(run.predictions_path))
    assert "unpacks to more than predictions can be" in problems_of(store)["predictions"][0]


def test_a_folder_that_bears_anothers_id_is_caught(store, run):
    run.path.rename(run.path.with_name("seed-10"))
    assert "its folder is" in problems_of(store)["result"][0]


def test_a_plan_that_was_changed_is_caught_with_its_runs(store):
    path = next((store / "plans").iterdir())
    as_it_was = path.read_bytes()
    path.write_bytes(as_it_was.replace(b'"suite"', b'"suite" ', 1))
    assert "another SHA-256" in problems_of(store)["plan"][0]
    path.write_bytes(as_it_was)
    alter(path, frozen_at="2000-01-01T00:00:00+00:00")
    assert len(problems_of(store)["plan"]) == 2  # runs, which bear the digest of the plan as it was
    path.unlink()
    assert len(problems_of(store)["plan"]) == 2  # also where no plan has their configuration


def test_a_tuning_that_cannot_be_read_is_named(store):
    (store / "tuned").mkdir()
    (store / "tuned/sample_efficiency-laptop+tune2.json").write_text('{"settings": 3}')
    assert "sample_efficiency-laptop+tune2.json" in problems_of(store)["tuning"][0]


def test_a_model_that_cannot_be_built_is_named(store, finish_in):
    unknown = EXPERIMENT.model_copy(update={"model": "deit_micra"})
    finish_in(store, unknown, 40.0)
    finish_in(store, EXPERIMENT.model_copy(update={"model_options": {"widht": 3}}), 40.0)
    found = " ".join(problems_of(store)["model"])
    assert "Did you mean 'deit_micro'?" in found
    assert "unknown option of deit_micro 'widht'" in found


def test_a_custom_model_whose_source_was_changed_is_named(store):
    (store / "challengers").mkdir()
    source = {"kind": "file", "name": "Mine", "version": f"sha256:{'0' * 64}", "code": "class Mine: pass"}
    (store / "challengers/mine.json").write_text(json.dumps({"name": "mine", "words": "m.py:Mine", "source": source}))
    assert "the code of model Mine was changed" in problems_of(store)["model"][0]


def test_verify_ends_with_one_where_a_published_number_was_altered(tmp_path, capsys):
    published = PUBLISHED / "convit_psa/laptop.records.tar.xz"
    assert main([str(published), "--report", str(tmp_path / "report.json")]) == 0
    assert json.loads((tmp_path / "report.json").read_text())["is_sound"]
    with tarfile.open(published) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    run = next(RunDirectory(path) for path in sorted((tmp_path / "unpacked/experiments").glob("*/seed-*")))
    alter(run.result_path, top1_percent=run.read_result().top1_percent - 1)
    with tarfile.open(tmp_path / "altered.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "unpacked/experiments", "experiments")
    capsys.readouterr()
    assert main([str(tmp_path / "altered.tar.xz"), "--sample", "1", "--report", str(tmp_path / "report.json")]) == 1
    said = capsys.readouterr().out
    assert f"log: {run.id}: logged are" in said
    assert "No run is trained again before that is mended." in said
    assert not json.loads((tmp_path / "report.json").read_text())["is_sound"]


def test_a_pack_that_unpacks_to_gigabytes_is_refused_by_name(tmp_path, capsys):
    with tarfile.open(tmp_path / "bomb.tar.xz", "w:xz") as archive:
        member = tarfile.TarInfo("experiments/a/seed-0/metrics.jsonl")
        member.size = 1 << 27
        archive.addfile(member, io.BytesIO(bytes(member.size)))
    assert main([str(tmp_path / "bomb.tar.xz"), "--sample", "1"]) == 1
    assert "it unpacks to more than records can be" in capsys.readouterr().out


def test_a_file_that_holds_no_records_is_misuse(store, capsys):
    assert main([str(store)]) == 2
    assert "is no file of records" in capsys.readouterr().err


def test_of_a_thousand_runs_three_hold_one_altered_run_with_three_chances_in_a_thousand():
    odds = {one.num_altered: one.probability for one in find_odds(3, 1000)}
    assert list(odds) == [1, 100, 500]
    assert odds[1] == pytest.approx(3 / 1000)
    rng, altered = np.random.default_rng(0), 100
    drawn = [min(rng.choice(1000, 3, replace=False)) < altered for _ in range(20_000)]
    assert odds[altered] == pytest.approx(np.mean(drawn), abs=0.01)


@pytest.fixture
def again(run, tmp_path):
    """The run in the records, and a copy of it as if it had been trained again."""
    fields = {"mean_nonlocality": 2.0, "mean_gate": 0.5, "num_macs": 5000, "num_linear_macs": 4000}
    alter(run.result_path, weights_sha256="a" * 64, num_pruned_heads=[2, 1], **fields)
    run.append_metrics({"step": 1, "loss": 2.0, "nonlocality": [[1.0, 3.0]], "gates": [[0.4, 0.6]]})
    run.append_metrics({"step": 1, "centers": [[[1.0, 0.0]]], "precisions": [[[2.0, 0.0, 2.0]]]})
    copy = tmp_path / "again" / run.id
    shutil.copytree(run.path, copy)
    return run, RunDirectory(copy)


def test_a_run_that_stands_for_two_seeds_is_caught(store, run):
    for one in list_runs(store):
        alter(one.result_path, weights_sha256="a" * 64)
    assert problems_of(store) == {"identity": (f"{run.id[:-1]}9: its weights are those of {run.id}",)}


def test_equal_weights_of_two_cpus_have_one_accuracy(again):
    for one in again:
        alter(one.result_path, threads_per_rank=4)
    alter(again[1].result_path, best_top1_percent=40.2, **write_right(again[1], 4020))
    outcome, reason = compare(*again, is_same_code=True, is_same_kind=False)
    assert (outcome, reason) == ("differs", "equal weights have 40.2 % and not 40 %")


def test_bits_have_to_be_equal_on_the_same_kind_of_machine_and_numbers_within_the_tolerance_elsewhere(again):
    honest = again[1].result_path.read_bytes()

    def outcome(*, is_same_kind=True, **fields):
        again[1].result_path.write_bytes(honest)
        alter(again[1].result_path, **fields)
        return compare(*again, is_same_code=is_same_kind, is_same_kind=is_same_kind)[0]

    other, top5 = {"weights_sha256": "b" * 64}, again[0].read_result().top5_percent
    assert outcome() == "equal bits"
    assert outcome(**other) == "differs"
    assert outcome(**other, is_same_kind=False) == outcome(**other, device="another") == "equal numbers"
    assert outcome(**other, device="another", top5_percent=top5 + 0.4) == "within tolerance"
    assert outcome(**other, device="another", top5_percent=top5 + 0.6) == "differs"
    assert outcome(**other, device="another", test_loss=1.1) == "differs"


def test_a_run_that_went_on_elsewhere_is_of_no_one_kind_of_machine(run):
    kinds = []
    for also_on in ([], ["another (AVX2, 25, 1), torch 2.0, ranks: 1"]):
        alter(run.environment_path, processor="AVX512, 25, 17", also_on=also_on)
        kinds.append(read_environment(run)["processor"])
    assert kinds == ["AVX512, 25, 17", ""]


HOW_IT_WAS_TRAINED = {
    *("images_per_s", "train_s", "staging_s", "device_hours", "energy_kwh", "peak_memory_gb", "mfu_percent"),
    *("inference_images_per_s", "lineage_train_s", "num_attempts", "num_requeues", "num_unusable_checkpoints"),
    *("num_nodes", "num_ranks", "threads_per_rank", "micro_batch_size", "num_evaluations", "num_corrupt_images"),
}
FIXED = {"num_train_images", "num_test_images", "num_steps", "images_seen", "format_version", "protocol_version"}


def test_whatever_number_of_a_result_is_altered_a_run_that_is_trained_again_differs(again):
    honest = again[0].read_result().model_dump()
    numbers = {name for name, value in honest.items() if type(value) in (int, float, tuple)}
    for name in sorted(numbers - HOW_IT_WAS_TRAINED - FIXED):
        before, value = again[0].result_path.read_bytes(), honest[name]
        higher = [*value[:-1], 7] if isinstance(value, tuple) else value + (1 if value >= 1 else 0.1)
        above = {"best_top1_percent": 60.0, "top5_percent": 90.0} if name == "top1_percent" else {}  # else no result
        alter(again[0].result_path, **above | {name: higher})
        outcome, reason = compare(*again, is_same_code=True, is_same_kind=False)
        assert outcome == "differs", name
        assert f"{name} is " in reason
        again[0].result_path.write_bytes(before)
    assert compare(*again, is_same_code=True, is_same_kind=True) == ("equal bits", "")


@pytest.mark.parametrize(
    "line",
    [
        {"loss": 3.0},
        {"nonlocality": [[0.5, 3.5]]},
        {"gates": [[0.5, 0.5]]},
        {"centers": [[[0.0, 0.0]]]},
        {"precisions": [[[2.0, 1.0, 2.0]]]},
    ],
)
def test_a_logged_quantity_that_was_altered_or_added_is_found_in_a_run_that_is_trained_again(again, line):
    again[0].append_metrics({"step": 1, **line})
    assert compare(*again, is_same_code=True, is_same_kind=False)[0] == "differs"
    again[1].append_metrics({"step": 1, **line})
    assert compare(*again, is_same_code=True, is_same_kind=False)[0] == "equal bits"
    again[0].append_metrics({"step": 2, **line})
    assert compare(*again, is_same_code=True, is_same_kind=False)[0] == "differs"
    assert compare(*again, is_same_code=False, is_same_kind=False)[0] == "equal bits"


def record_maps(run, first, center):
    """Record maps as older versions did, whose files began with one entry or another."""
    about = dict.fromkeys((first, "layers", "grid"), "[]")
    header = {"__metadata__": about, "after/00/centers": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + np.array([[center, 0.0]], dtype="<f4").tobytes()
    run.maps_path.write_bytes(content)
    alter(run.result_path, maps_sha256=sha256_of(run.maps_path))


def test_maps_are_compared_by_what_they_hold_and_not_by_the_order_of_their_files(again):
    for run, first in zip(again, ("grid", "layers"), strict=True):
        record_maps(run, first, 1.0)
    assert again[0].maps_path.read_bytes() != again[1].maps_path.read_bytes()
    assert compare(*again, is_same_code=True, is_same_kind=True) == ("equal bits", "")
    record_maps(again[0], "grid", 1.01)
    assert compare(*again, is_same_code=True, is_same_kind=False) == ("within tolerance", "")
    record_maps(again[0], "grid", 1.2)
    found = compare(*again, is_same_code=True, is_same_kind=False)
    assert found == ("differs", "map after/00/centers is 1.2, 0, trained again 1, 0")


def test_a_gpu_and_a_cpu_look_at_other_images_and_their_nonlocality_is_not_compared(again):
    alter(again[0].result_path, mean_nonlocality=2.5, threads_per_rank=0, device="a GPU")
    alter(again[1].result_path, threads_per_rank=1)
    assert compare(*again, is_same_code=True, is_same_kind=True)[0] == "equal bits"
