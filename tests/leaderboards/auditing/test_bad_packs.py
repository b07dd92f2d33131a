"""Packs and entries that cannot be checked or trained again: each is named before anything of it is run."""

import json
import shutil
import zipfile

import pytest

from leaderboards.auditing.retraining import Retraining
from leaderboards.verify import main
from suite.base.files import sha256_of
from suite.spec.custom_model import ModelSource, hash_source
from suite.store.results import PROTOCOL_VERSION, RESULT_FORMAT
from suite.store.run_directory import RunDirectory
from suite.store.run_store import list_runs
from tests.leaderboards.auditing.conftest import EXPERIMENT, alter, pack_folder, write_right


@pytest.fixture(autouse=True)
def nothing_is_run(monkeypatch):
    monkeypatch.setattr(Retraining, "recompute", lambda *_: pytest.fail("a run was started"))


def audit(path, capsys):
    """Ask for all, and give what was said."""
    assert main([str(path), "--sample", "9999", "--trust"]) in (1, 2)
    return " ".join((said := capsys.readouterr()).out.split() + said.err.split())


def with_source(code, kind="file", name="Mine", version=""):
    def change(store, run):
        source = ModelSource(kind=kind, name=name, version=version or hash_source(code.encode()), code=code)
        experiment = EXPERIMENT.model_copy(update={"model": "mine", "model_source": source})
        strange = RunDirectory.of(store, experiment)
        shutil.copytree(run.path, strange.path)
        strange.experiment_path.write_text(experiment.model_dump_json())
        alter(strange.result_path, experiment=json.loads(experiment.model_dump_json()))

    return change


def unpack_to_gigabytes(store, run):
    with zipfile.ZipFile(run.predictions_path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("predicted.npy", bytes(1 << 27))
    alter(run.result_path, predictions_sha256=sha256_of(run.predictions_path))


def plan_of(store):
    return next((store / "plans").iterdir())


BAD = {
    "a newer result": (
        lambda store, run: alter(run.result_path, format_version=RESULT_FORMAT + 1),
        "newer version of the suite",
    ),
    "a plan of no time": (lambda store, run: alter(plan_of(store), frozen_at="yesterday"), "Invalid isoformat string"),
    "a plan of other looks": (lambda store, run: alter(plan_of(store), looks=[3, 99]), "looks are (3, 99)"),
    "a name in no known letters": (
        lambda store, run: run.path.parent.rename(run.path.parent.with_name("x\udcff")),
        "which is no record",
    ),
    "a newer plan": (lambda store, run: alter(plan_of(store), format_version=2), "plan: sample_efficiency-laptop.json"),
    "another protocol": (
        lambda store, run: alter(run.result_path, protocol_version=PROTOCOL_VERSION + 1),
        "made under protocol",
    ),
    "a model without its name": (with_source("class Other: pass"), "its source defines no Mine"),
    "a model that is no Python": (with_source("class Mine(:\n"), "its source is no Python"),
    "a model that is too deep": (with_source("Mine = " + "-" * 100_000 + "1"), "its source is no Python"),
    "another version of timm": (
        with_source("", "timm", "vit_tiny_patch16_224", "timm==0.0.1"),
        "vit_tiny_patch16_224 is timm==1.",
    ),
    "a plug-in that is not there": (
        with_source("", "entry_point", "theirs", "theirs==2.0"),
        "there is no plug-in 'theirs'",
    ),
    "a plan's digest": (
        lambda store, run: plan_of(store).write_bytes(plan_of(store).read_bytes().replace(b"laptop", b"lapdog", 1)),
        "another SHA-256",
    ),
    "a result's digest": (
        lambda store, run: run.result_path.write_bytes(run.result_path.read_bytes().replace(b"40.0", b"41.0")),
        "another SHA-256",
    ),
    "altered predictions": (lambda store, run: write_right(run, 4001), "its SHA-256 is not the one in result.json"),
    "no predictions": (lambda store, run: run.predictions_path.unlink(), "No such file or directory"),
    "predictions that nobody names": (
        lambda store, run: (
            run.predictions_path.unlink(),
            alter(run.result_path, predictions_sha256="", format_version=6),
        ),
        "result.json names no predictions",
    ),
    "predictions of gigabytes": (unpack_to_gigabytes, "unpacks to more than predictions can be"),
}


@pytest.mark.parametrize(("change", "words"), BAD.values(), ids=BAD)
def test_a_pack_is_named_before_anything_of_it_is_run(change, words, store, run, tmp_path, capsys):
    change(store, run)
    assert words in audit(pack_folder(store, tmp_path / "bad.tar.xz"), capsys)


def test_a_thousand_runs_are_each_checked(store, run, tmp_path, capsys):
    for seed in range(10, 1008):
        other = RunDirectory.of(store, EXPERIMENT.with_seed(seed))
        shutil.copytree(run.path, other.path)
        experiment = json.loads(EXPERIMENT.with_seed(seed).model_dump_json())
        other.experiment_path.write_text(json.dumps(experiment))
        alter(other.result_path, experiment=experiment)
    alter(list(list_runs(store))[-1].result_path, num_steps=7)
    said = audit(pack_folder(store, tmp_path / "many.tar.xz"), capsys)
    assert " 1000 1 " in said
    assert "num_steps is 7, expected" in said
