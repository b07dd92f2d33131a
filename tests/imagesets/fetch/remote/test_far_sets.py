"""Image sets behind an address: prepared and read in place there, with the numbers that they give here."""

import contextlib
import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import obstore
import pyarrow
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from imagesets.fetch import ensure
from imagesets.fetch.storage import open_arrays
from imagesets.loader import ImageLoader
from imagesets.manifest import read_manifest
from imagesets.prepare.__main__ import main as prepare
from imagesets.prepared import find_prepared
from suite.base.errors import DataError
from suite.base.far import remote
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.training.staging.copies import ImageSet, Watch

RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 1.0, "batch_size": 16, "warmup_epochs": 0.0})
EXPERIMENT = Experiment(model="deit_micro", dataset="photos", image_size=32, recipe=RECIPE)


@pytest.fixture(scope="module")
def samples():
    """40 PNGs of each split, with their labels."""
    arrays = open_arrays(ensure("cifar10_sample"))
    found = {}
    for split in ("train", "test"):
        files = [io.BytesIO() for _ in range(40)]
        for file, pixels in zip(files, arrays[f"{split}_images"], strict=False):
            Image.fromarray(np.array(pixels)).save(file, "png")
        labels = arrays[f"{split}_labels"][:40].tolist()
        found[split] = list(zip((file.getvalue() for file in files), labels, strict=True))
    return found


def make_tar(samples, has_folders=False):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for number, (image, label) in enumerate(samples):
            files = {f"{number:03}.png": image, f"{number:03}.cls": str(label).encode()}
            for name, content in ({f"{label}/{number:03}.png": image} if has_folders else files).items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return data.getvalue()


def make_parquet(samples):
    data = io.BytesIO()
    rows = {"image": [{"bytes": image, "path": None} for image, _ in samples], "label": [label for _, label in samples]}
    pyarrow.parquet.write_table(pyarrow.table(rows), data)
    return data.getvalue()


def make_zip(samples):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for split, folder in (("train", "train"), ("test", "val")):
            for number, (image, label) in enumerate(samples[split]):
                archive.writestr(f"{folder}/{label}/{number:03}.png", image)
    return data.getvalue()


def make_files(kind, samples):
    if kind == "zip":
        return {"all.zip": make_zip(samples)}
    if kind == "mds":
        folder = Path(__file__).parents[2] / "originals" / "fixtures" / "mds" / "jpeg"
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}
    if kind == "tar.gz":
        names = {"train": "train_0.tar.gz", "test": "val_0.tar.gz"}
        return {name: gzip.compress(make_tar(samples[split], has_folders=True)) for split, name in names.items()}
    if kind == "parquet":
        names = {"train": "data/train-00000-of-00001.parquet", "test": "data/test-00000-of-00001.parquet"}
        return {name: make_parquet(samples[split]) for split, name in names.items()}
    return {
        **{f"set-train-{k:04}.tar": make_tar(samples["train"][20 * k : 20 * k + 20]) for k in (0, 1)},
        "set-validation-0000.tar": make_tar(samples["test"]),
    }


def prepare_here(tmp_path, files):
    for name, data in files.items():
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    out = str(tmp_path / "near")
    assert prepare(["--dataset", "photos", "--source", str(tmp_path / "here"), "--in-place", "--out", out]) == 0
    return out


def all_images(data_dir, num_ranks=1):
    images = ImageLoader(EXPERIMENT, Resources(data_dir=data_dir))
    batches = [batch for rank in range(num_ranks) for batch in images.train_batches(0, 2, rank, num_ranks)]
    return [*(batch.images for batch in batches), images.test_batch(0, images.num_test).images]


def assert_same(found, expected):
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("kind", "how"),
    [*((kind, how) for kind in ("tar", "parquet", "zip") for how in ("folder", "pattern")), ("mds", "folder")],
)
def test_a_set_in_s3_is_read_in_place(bucket, samples, tmp_path, kind, how):
    files = make_files(kind, samples)
    for name, data in files.items():
        obstore.put(bucket, f"photos/{name}", data)
    source = "s3://photos/photos"
    if how == "pattern":
        source += {"tar": "/set-{train,validation}-*.tar", "parquet": "/data/*.parquet", "zip": "/all.zip"}[kind]
    far = str(tmp_path / "far")
    assert prepare(["--dataset", "photos", "--source", source, "--in-place", "--out", far]) == 0
    manifest = read_manifest(tmp_path / "far" / "photos" / "in_place")
    assert manifest.root.startswith("s3://photos/photos")
    assert "a secret" not in manifest.model_dump_json()
    near = prepare_here(tmp_path, files)
    for num_ranks in (1, 2):
        assert_same(all_images(far, num_ranks), all_images(near, num_ranks))
    assert prepare(["--dataset", "photos", "--source", source, "--in-place", "--out", far]) == 0  # it is there
    assert prepare(["--dataset", "photos", "--in-place", "--check", "--out", far]) == 0


def test_a_beton_and_a_gzip_tar_in_s3_are_read_too(bucket, samples, tmp_path):
    for name, data in make_files("tar.gz", samples).items():
        obstore.put(bucket, f"tars/{name}", data)
    out = ["--out", str(tmp_path / "converted")]
    assert prepare(["--dataset", "photos", "--source", "s3://photos/tars", "--format", "ffcv", *out]) == 0
    for path in (tmp_path / "converted" / "photos" / "ffcv").glob("*.beton"):
        obstore.put(bucket, f"betons/{path.name}", path.read_bytes())
    out = ["--out", str(tmp_path / "far")]
    assert prepare(["--dataset", "photos", "--source", "s3://photos/betons", "--in-place", *out]) == 0
    near = prepare_here(tmp_path, make_files("tar", samples))
    assert_same(all_images(str(tmp_path / "far")), all_images(near))


def test_a_far_set_is_staged_on_a_node_and_read_there_without_its_server(bucket, samples, tmp_path):
    for name, data in make_files("tar", samples).items():
        obstore.put(bucket, f"photos/{name}", data)
    far = str(tmp_path / "far")
    assert prepare(["--dataset", "photos", "--source", "s3://photos/photos", "--in-place", "--out", far]) == 0
    expected = all_images(far)
    ImageSet(*find_prepared("photos", "in_place", tmp_path / "far")).copy_to(tmp_path / "node", Watch())
    for name in make_files("tar", samples):
        obstore.delete(bucket, f"photos/{name}")
    assert_same(all_images(str(tmp_path / "node")), expected)


@pytest.mark.parametrize("how", ["--in-place", "--format=webdataset"])
def test_shards_on_a_web_server_are_read_by_a_pattern_through_faults(server, samples, tmp_path, how):
    files = make_files("tar", samples)
    server.files = {f"/set/{name}": data for name, data in files.items()}
    server.faults = ["503", "cut", "reset", "other range"]
    pattern = f"{server.url}/set/{{set-train-{{0000..0001}},set-validation-0000}}.tar"
    far = str(tmp_path / "far")
    assert prepare(["--dataset", "photos", "--source", pattern, how, "--out", far]) == 0
    server.faults = ["503"]
    assert_same(all_images(far), all_images(prepare_here(tmp_path, files)))


def test_a_server_that_refuses_what_is_absent_has_its_shards_read(server, samples, tmp_path, capsys):
    """So do object stores, to whoever may not list: no manifest of ours, and no file of names, is no error."""
    server.absent = 403
    server.files = {f"/set/{name}": data for name, data in make_files("tar", samples).items()}
    words = ["--dataset", "photos", "--in-place", "--out", str(tmp_path), "--source"]
    assert prepare([*words, f"{server.url}/set/set-{{train-{{0000..0001}},validation-0000}}.tar"]) == 0
    assert prepare([*words, f"{server.url}/set/set-{{train-{{0000..0002}},validation-0000}}.tar"]) == 1
    assert "403" in capsys.readouterr().err


def test_a_shard_that_is_not_there_is_named(server, samples, tmp_path, capsys):
    server.files = {f"/set/{name}": data for name, data in make_files("tar", samples).items()}
    pattern = f"{server.url}/set/{{set-train-{{0000..0002}},set-validation-0000}}.tar"
    assert prepare(["--dataset", "photos", "--source", pattern, "--in-place", "--out", str(tmp_path)]) == 1
    assert "set-train-0002.tar cannot be read" in capsys.readouterr().err


def test_a_shard_that_changed_since_it_was_indexed_is_named(bucket, samples, tmp_path):
    for name, data in make_files("tar", samples).items():
        obstore.put(bucket, f"photos/{name}", data)
    far = str(tmp_path / "far")
    assert prepare(["--dataset", "photos", "--source", "s3://photos/photos", "--in-place", "--out", far]) == 0
    obstore.put(bucket, "photos/set-train-0001.tar", make_tar(samples["train"][:20]))
    remote.find.cache_clear()  # as in another process
    with pytest.raises(DataError, match=r"s3://photos/photos/set-train-0001\.tar"):
        all_images(far)


def test_shards_that_were_converted_may_lie_behind_their_url(server, samples, tmp_path):
    near, far = prepare_here(tmp_path, make_files("tar", samples)), str(tmp_path / "far")
    source = ["--dataset", "photos", "--source", str(tmp_path / "here"), "--format", "webdataset"]
    assert prepare([*source, "--shards-url", f"{server.url}/set/", "--out", far]) == 0
    folder = tmp_path / "far" / "photos" / "webdataset"
    for shard in folder.glob("*.tar"):
        server.files[f"/set/{shard.name}"] = shard.read_bytes()
        shard.unlink()
    assert_same(all_images(far), all_images(near))
    assert not list(folder.glob("*.tar"))
    server.files["/set/train-000000.tar"] = bytes(len(server.files["/set/train-000000.tar"]))
    server.etag = '"2"'
    remote.find.cache_clear()
    with pytest.raises(DataError, match=r"set/train-000000\.tar: .* its bytes have changed since"):
        all_images(far)
    del server.files["/set/train-000000.tar"]
    remote.find.cache_clear()
    with pytest.raises(DataError, match=r"set/train-000000\.tar cannot be read: nothing is there"):
        all_images(far)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3://me:secret@photos/x", "holds a password"),
        ("https://host/x?sig=secret", "holds a password"),
        ("s3://photos/nothing", "s3://photos/nothing is empty, or not there"),
        ("ftp://host/x", "expected a folder, or s3://"),
    ],
)
def test_an_address_that_cannot_be_is_refused(bucket, tmp_path, capsys, address, message):
    with contextlib.suppress(SystemExit):
        assert prepare(["--dataset", "photos", "--source", address, "--in-place", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert "secret" not in said
