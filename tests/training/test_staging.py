"""Images on a node's own disk: copied once, checked, the same numbers from there; given up where there is no room."""

import errno
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import namedtuple

import numpy as np
import pytest
import torch
from PIL import Image

from imagesets.fetch import ensure
from imagesets.fetch.storage import open_arrays
from imagesets.loader import ImageLoader
from imagesets.manifest import MANIFEST, read_manifest
from imagesets.prepare.__main__ import main as prepare
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.attempts import record_start
from suite.store.heartbeat import read_beat
from suite.store.run_directory import RunDirectory
from suite.training.distributed import Ranks
from suite.training.staging import copies
from suite.training.staging.copies import ImageSet, Watch
from suite.training.staging.stage import stage_images

RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 0.5, "batch_size": 16, "warmup_epochs": 0.0})
EXPERIMENT = Experiment(model="deit_micro", dataset="photos", image_size=32, recipe=RECIPE)
ALONE = Ranks(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A small image folder, "photos", in several formats; in place as shards."""
    out = tmp_path_factory.mktemp("data")
    arrays = open_arrays(ensure("cifar10_sample"))
    for split, folder in (("train", "train"), ("test", "val")):
        with tarfile.open(out / f"{folder}-0.tar", "w") as tar:
            for number, label in enumerate(arrays[f"{split}_labels"][:40].tolist()):
                file = io.BytesIO()
                Image.fromarray(np.array(arrays[f"{split}_images"][number])).save(file, "png")
                path = out / "originals" / folder / f"class{label}" / f"{number:03}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.getvalue())
                for name, data in ((f"{number:03}.png", file.getvalue()), (f"{number:03}.cls", str(label).encode())):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    for storage_format in ("folder", "webdataset", "memory"):
        options = ["--source", str(out / "originals"), "--format", storage_format, "--out", str(out)]
        assert prepare(["--dataset", "photos", *options]) == 0
    shards = out / "shards"
    shards.mkdir()
    for path in out.glob("*-0.tar"):
        path.rename(shards / path.name)
    assert prepare(["--dataset", "photos", "--source", str(shards), "--in-place", "--out", str(out)]) == 0
    return out


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.of(tmp_path / "runs", EXPERIMENT)
    run.create(EXPERIMENT)
    record_start(run, 1)
    return run


def stage(run, data_dir, where, storage_format="webdataset", stop=False):
    resources = Resources(data_dir=str(data_dir), loader=storage_format, stage=str(where))
    return stage_images(run, "photos", resources, ALONE, stop)


@pytest.mark.parametrize("storage_format", ["folder", "webdataset", "memory", "in_place"])
def test_the_copies_give_the_same_numbers_also_without_the_set(data_dir, tmp_path, run, storage_format):
    expected = ImageLoader(EXPERIMENT, Resources(data_dir=str(data_dir), loader=storage_format)).train_batch(0)
    copied = tmp_path / "data"
    shutil.copytree(data_dir, copied, symlinks=True)
    staged = stage(run, data_dir, tmp_path / "node", storage_format)
    assert staged.data_dir.startswith(str(tmp_path / "node" / "staged-"))
    manifest = read_manifest(tmp_path / staged.data_dir / "photos" / storage_format)
    assert (manifest.root, manifest.shards_url) == (None, None)  # nothing leads back
    assert torch.equal(ImageLoader(EXPERIMENT, staged).train_batch(0).images, expected.images)
    attempt = json.loads(run.attempts_path.read_text().splitlines()[-1])
    assert attempt["staging_s"] > 0
    assert read_beat(run).phase == "start"


def test_a_zip_of_both_splits_is_copied_once(data_dir, tmp_path, run):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for path in sorted((data_dir / "originals").rglob("*.png")):
            archive.write(path, path.relative_to(data_dir / "originals"))
    out = tmp_path / "out"
    source = str(tmp_path / "photos.zip")
    assert prepare(["--dataset", "photos", "--source", source, "--in-place", "--out", str(out)]) == 0
    image_set = ImageSet(out / "photos/in_place", read_manifest(out / "photos/in_place"))
    assert [copy.name for copy in image_set.copies()].count("photos.zip") == 1
    assert stage(run, out, tmp_path / "node", "in_place").data_dir.startswith(str(tmp_path / "node"))


def test_a_set_of_one_file_that_was_fetched_is_copied_too(tmp_path):
    (tmp_path / "cifar10.safetensors").write_bytes(b"images")
    fetched = ImageSet(tmp_path / "cifar10.safetensors")
    for damage in (lambda path: None, lambda path: path.write_bytes(b"imagez"), lambda path: path.write_bytes(b"im")):
        fetched.copy_to(tmp_path / "node", Watch())
        assert (tmp_path / "node" / "cifar10.safetensors").read_bytes() == b"images"
        damage(tmp_path / "node" / "cifar10.safetensors")


def test_a_second_run_of_the_node_copies_nothing_but_what_was_removed_since(data_dir, tmp_path, run, monkeypatch):
    staged = stage(run, data_dir, tmp_path / "node")
    copied = []
    monkeypatch.setattr(
        copies, "_copy", lambda copy, *_, copy_one=copies._copy: copied.append(copy) or copy_one(copy, *_)
    )
    assert stage(run, data_dir, tmp_path / "node") == staged
    assert copied == []
    [shard] = (tmp_path / "node").rglob("train-*.tar")
    shard.unlink()
    assert stage(run, data_dir, tmp_path / "node") == staged
    assert shard.exists()


@pytest.mark.parametrize("why", ["small disk", "full disk", "a file is there", "no variable"])
def test_without_room_or_permission_the_run_reads_where_the_set_is(data_dir, tmp_path, run, monkeypatch, capfd, why):
    where = tmp_path / "node"
    if why == "small disk":
        usage = namedtuple("usage", "free")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1000))
    elif why == "full disk":
        monkeypatch.setattr(copies, "_copy", lambda *_: raise_error(OSError(errno.ENOSPC, "No space left on device")))
    elif why == "a file is there":
        where.write_bytes(b"")
    else:
        monkeypatch.delenv("SLURM_TMPDIR", raising=False)
        where = "slurm"
    expected = {"small disk": "GB are free", "full disk": "No space left", "no variable": "not set on this node"}
    staged = stage(run, data_dir, where)
    [told] = capfd.readouterr().err.splitlines()
    assert re.fullmatch(
        f"warning: images are not staged in .*{expected.get(why, 'exists')}.* read where they are", told
    )
    assert staged.data_dir == str(data_dir)
    assert not list(tmp_path.glob("node/staged-*/*"))


def raise_error(error):
    raise error


def test_a_source_that_has_changed_is_not_copied(data_dir, tmp_path, run, capfd):
    copied = tmp_path / "data"
    shutil.copytree(data_dir, copied, symlinks=True)
    shard = next((copied / "photos" / "webdataset").glob("train-*.tar"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    assert stage(run, copied, tmp_path / "node").data_dir == str(copied)
    assert re.search(r"not staged.*is not what the manifest says", capfd.readouterr().err)
    assert not list(tmp_path.glob("node/staged-*/*"))


def test_slurm_names_the_node_s_own_folder(data_dir, tmp_path, run, monkeypatch):
    monkeypatch.setenv("SLURM_TMPDIR", str(tmp_path / "job"))
    assert stage(run, data_dir, "slurm").data_dir.startswith(f"{tmp_path}/job/staged-")


def test_a_run_that_is_asked_to_stop_stops_copying(data_dir, tmp_path, run, monkeypatch):
    monkeypatch.setattr(copies.remote, "read_pieces", lambda _: iter(lambda: time.sleep(0.01) or b"", None))  # no end
    assert stage(run, data_dir, tmp_path / "node", stop=True) is None
    assert not list(tmp_path.rglob(f"staged-*/**/{MANIFEST}"))


COPIER = """
import sys
from pathlib import Path
from suite.base.far import remote
from imagesets.prepared import find_prepared
from suite.training.staging import copies

read_pieces = remote.read_pieces
def slowly(path):
    for piece in read_pieces(path):
        yield piece
        print(path, flush=True)
        sys.stdin.read(1) if sys.argv[3] == "killed" else None
remote.read_pieces = slowly
copies.ImageSet(*find_prepared("photos", "webdataset", Path(sys.argv[1]))).copy_to(Path(sys.argv[2]), copies.Watch())
print("done", flush=True)
"""


def copier(data_dir, target, how):
    command = [sys.executable, "-c", COPIER, str(data_dir), str(target), how]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_copy_that_was_killed_is_not_read_and_the_next_run_completes_it(data_dir, tmp_path, run):
    target = tmp_path / "node" / "staged-x"
    with copier(data_dir, target, "killed") as process:
        process.stdout.readline()  # in the middle of a file
        process.kill()
    assert not (target / "photos" / "webdataset" / MANIFEST).exists()
    with copier(data_dir, target, "at once") as process:
        assert process.communicate(timeout=60)[0].endswith("done\n")
    found, expected = (root / "photos" / "webdataset" for root in (target, data_dir))
    assert {path.name: path.read_bytes() for path in found.glob("*.tar")} == {
        path.name: path.read_bytes() for path in expected.glob("*.tar")
    }


def test_of_several_processes_on_a_node_one_copies(data_dir, tmp_path):
    processes = [copier(data_dir, tmp_path / "node" / "staged-x", "at once") for _ in range(3)]
    said = [process.communicate(timeout=60)[0].splitlines() for process in processes]
    assert all(lines[-1] == "done" for lines in said)
    assert sorted(len(lines) > 1 for lines in said) == [False, False, True]


def test_a_trained_run_tells_its_staging_apart_and_keeps_its_id(start, data_dir, tmp_path):
    runs = {}
    for where in (None, str(tmp_path / "node")):
        run = runs[where] = RunDirectory.of(tmp_path / f"runs-{where is None}", EXPERIMENT)
        run.create(EXPERIMENT)
        (process,) = start(run, Resources(loader="webdataset", data_dir=str(data_dir), stage=where))
        process.join()
        assert process.exitcode == 0, run.log_path.read_text()
    at_home, staged = runs.values()
    assert staged.path.name == at_home.path.name
    assert staged.weights_path.read_bytes() == at_home.weights_path.read_bytes()
    assert at_home.read_result().staging_s == 0 < staged.read_result().staging_s
    assert "images are read in" in staged.log_path.read_text()


def test_two_ranks_of_a_node_stage_once_and_both_read_there(execute, data_dir, tmp_path):
    run = RunDirectory.of(tmp_path / "runs", EXPERIMENT)
    run.create(EXPERIMENT)
    resources = Resources(loader="webdataset", data_dir=str(data_dir), stage=str(tmp_path / "node"), num_ranks=2)
    assert execute(run, resources) == [0, 0]
    assert len(list((tmp_path / "node").rglob(MANIFEST))) == 1
    assert run.read_result().staging_s > 0
