"""Image sets in place: the stream of a converted copy, from an index that lies beside the images."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from imagesets.loader import ImageLoader
from imagesets.manifest import describe_file, read_manifest
from imagesets.prepare import __main__ as command
from imagesets.prepare.work import Journal
from imagesets.prepared import find_info
from suite.base.errors import DataError, SpecError
from suite.papers.shared.deit_recipes import DEIT
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources

RECIPE = DEIT.model_copy(update={"batch_size": 8, "mix_group": 4, "epochs": 3.0, "warmup_epochs": 0.0})


def stream(data_dir: Path, num_ranks: int = 1, loader: Any = None, first: int = 0) -> torch.Tensor:
    experiment = Experiment(model="deit_micro", dataset="pets", image_size=32, recipe=RECIPE, seed=7)
    images = ImageLoader(experiment, Resources(data_dir=str(data_dir), loader=loader, num_workers=2))
    shares = [[b.images for b in images.train_batches(first, 6, rank, num_ranks)] for rank in range(num_ranks)]
    tests = [batch.images for batch in images.test_batches(4)]
    return torch.cat([*(torch.stack(parts, 1).flatten(0, 1) for parts in zip(*shares, strict=True)), *tests])


@pytest.fixture
def shards(folder: Path, tmp_path: Path) -> Path:
    """The folder's images in shards of 5, one with a WebP."""
    Image.new("RGB", (40, 30), "red").save(folder / "train" / "n01440764" / "z.webp", lossless=True)
    where = tmp_path / "shards"
    where.mkdir()
    for split in ("train", "val"):
        files = sorted((folder / split).rglob("*.*"))
        for number in range(0, len(files), 5):
            with tarfile.open(where / f"imagenet1k-{split}-{number // 5:04}.tar", "w") as tar:
                for file in files[number : number + 5]:
                    tar.add(file, file.relative_to(folder))
    return where


def prepare(*options: Any) -> int:
    return command.main(["--dataset", "pets", "--workers", "1", "--samples-per-shard", "4", *map(str, options)])


def make_source(form: str, folder: Path, shards: Path, tmp_path: Path) -> Path:
    """The folder's images in another form, made by the tool that makes the real one."""
    if form.startswith("mds"):
        fixture = Path(__file__).parents[1] / "originals" / "fixtures" / form.replace("_", "/")
        return Path(shutil.copytree(fixture, tmp_path / "mds"))
    if form in ("folder", "shards"):
        return folder if form == "folder" else shards
    source = tmp_path / form
    source.mkdir()
    if form == "zip":
        with zipfile.ZipFile(source / "pets.zip", "w") as archive:
            for path in sorted(folder.rglob("*.*")):
                archive.write(path, path.relative_to(folder))
    if form in ("snappy", "plain"):
        for split in ("train", "val"):
            rows = [{"bytes": path.read_bytes()} for path in sorted((folder / split).rglob("*.JPEG"))]
            labels = pa.array(np.arange(len(rows)) * 3 // len(rows))
            options = {"compression": "snappy" if form == "snappy" else "none", "row_group_size": 5}
            table = pa.table({"image": pa.array(rows), "label": labels})
            pq.write_table(table, source / f"{split}-00000-of-00001.parquet", **options)
    if form in ("beton", "pixels"):
        if form == "pixels":
            for path in folder.rglob("*.JPEG"):
                Image.open(path).resize((40, 40)).save(path.with_suffix(".png"))
                path.unlink()
        assert prepare("--source", folder, "--format", "ffcv", "--out", source) == 0
        return source / "pets" / "ffcv"
    return source


@pytest.mark.parametrize(
    "form", ["folder", "shards", "zip", "snappy", "plain", "beton", "pixels", "mds_jpeg", "mds_pil"]
)
def test_a_set_in_place_gives_the_stream_of_its_copy_on_any_number_of_ranks_and_after_a_restart(
    form: str, folder: Path, shards: Path, tmp_path: Path
) -> None:
    source = make_source(form, folder, shards, tmp_path)
    assert prepare("--source", source, "--in-place", "--out", tmp_path / "a") == 0
    assert prepare("--source", source, "--format", "webdataset", "--out", tmp_path / "b") == 0
    expected = stream(tmp_path / "b", loader="webdataset")
    assert torch.equal(stream(tmp_path / "a"), expected)
    assert torch.equal(stream(tmp_path / "a", num_ranks=2), expected)
    assert torch.equal(stream(tmp_path / "a", first=4), expected[4 * 8 :])
    files = {path for path in (source / ".imagesets").rglob("*") if path.is_file()}
    assert sum(path.stat().st_size for path in files) < 20_000
    assert (tmp_path / "a" / "pets" / "in_place").resolve() == source / ".imagesets" / "pets"


def test_a_second_user_finds_the_index_and_a_moved_set_keeps_it(shards: Path, tmp_path: Path, capsys: Any) -> None:
    assert prepare("--source", shards, "--in-place", "--out", tmp_path / "a") == 0
    assert prepare("--source", shards, "--in-place", "--out", tmp_path / "b") == 0
    assert "was there already" in capsys.readouterr().out
    expected = stream(tmp_path / "b")
    shards.rename(tmp_path / "moved")
    (tmp_path / "c" / "pets").mkdir(parents=True)
    (tmp_path / "c" / "pets" / "in_place").symlink_to(tmp_path / "moved" / ".imagesets" / "pets")
    assert torch.equal(stream(tmp_path / "c"), expected)


def test_the_advice_for_changed_shards_helps(shards: Path, tmp_path: Path, capsys: Any) -> None:
    options = ("--source", shards, "--in-place", "--out", tmp_path / "a")
    assert prepare(*options) == 0
    index = shards / ".imagesets" / "pets"
    changed = shards / "imagenet1k-train-0001.tar"
    os.utime(changed, (2e9, 2e9))
    assert prepare(*options) == 1
    assert f"have changed since: {changed}). Delete {index} and run the same command again." in capsys.readouterr().err
    shutil.rmtree(index)
    assert prepare(*options) == 0
    assert len(stream(tmp_path / "a")) == 6 * 8 + 6


def test_shards_that_moved_or_are_named_in_another_way_are_the_same(shards: Path, tmp_path: Path, capsys: Any) -> None:
    where = ("--in-place", "--out", tmp_path / "a")
    assert prepare("--source", shards, *where) == 0
    moved = shards.rename(tmp_path / "moved")
    link = tmp_path / "a" / "pets" / "in_place"
    assert prepare(*where, "--check") == 1
    assert f"{link} is a link to {shards}/.imagesets/pets, which is not there" in capsys.readouterr().err
    with pytest.raises(DataError, match="in_place is a link to"):
        find_info("pets", tmp_path / "a")
    (tmp_path / "linked").symlink_to(moved)
    for source in (moved, tmp_path / "linked", moved / "imagenet1k-{train,val}-*.tar"):
        assert prepare("--source", source, *where) == 0
        assert "was there already" in capsys.readouterr().out
    assert link.resolve() == moved / ".imagesets" / "pets"


def test_the_index_of_a_source_that_cannot_be_written_lies_in_the_data_folder(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    before = sorted(shards.iterdir())
    assert prepare("--source", shards, "--in-place", "--out", tmp_path / "a") == 0
    assert sorted(shards.iterdir()) == before
    assert not (tmp_path / "a" / "pets" / "in_place").is_symlink()
    assert len(stream(tmp_path / "a")) == 6 * 8 + 6


def test_a_container_that_has_changed_is_named(shards: Path, tmp_path: Path, capsys: Any) -> None:
    where = ("--in-place", "--out", tmp_path / "a")
    assert prepare("--source", shards, *where) == 0
    for number in (0, 1):
        path = shards / f"imagenet1k-train-000{number}.tar"
        data = bytearray(path.read_bytes())
        data[600] ^= 1
        path.write_bytes(data)
    assert prepare(*where, "--check") == 1
    told = capsys.readouterr().err
    assert all(f"imagenet1k-train-000{number}.tar has SHA-256" in told for number in (0, 1))
    sizes = [shards / f"imagenet1k-val-000{number}.tar" for number in (0, 1)]
    whole = [file.read_bytes() for file in sizes]
    for file in sizes:
        file.write_bytes(file.read_bytes()[:-512])
    with pytest.raises(DataError, match=r"val-0000\.tar has .* bytes, .*\n.*val-0001\.tar has .* bytes, "):
        read_manifest(tmp_path / "a" / "pets" / "in_place")
    assert prepare(*where, "--check") == 1
    told = capsys.readouterr().err
    assert all(f"imagenet1k-val-000{number}.tar has" in told for number in (0, 1))
    assert "train-0000.tar has SHA-256" in told
    assert "4 of 7 files are not as they were" in told
    for file, data_before in zip(sizes, whole, strict=True):
        file.write_bytes(data_before)
    assert prepare("--source", shards, *where) == 1
    assert "images in --source have changed since" in capsys.readouterr().err
    path.write_bytes(data[:-1])
    with pytest.raises(DataError, match=r"imagenet1k-train-0001\.tar has .* bytes, its manifest says"):
        read_manifest(tmp_path / "a" / "pets" / "in_place")
    path.unlink()
    with pytest.raises(DataError, match=r"imagenet1k-train-0001\.tar is missing"):
        read_manifest(tmp_path / "a" / "pets" / "in_place")


def test_a_killed_index_goes_on_and_is_the_same(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = Journal.write, iter(range(3))

    def dying(*arguments: Any) -> None:
        if next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        real(*arguments)

    options = ("--source", shards, "--in-place", "--out", tmp_path / "a")
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", dying)
        child = multiprocessing.get_context("fork").Process(target=prepare, args=options)
        child.start()
        child.join()
    assert child.exitcode == -signal.SIGKILL
    assert not (tmp_path / "a").exists() or not (tmp_path / "a" / "pets" / "in_place").exists()
    read: list[Path] = []
    monkeypatch.setattr(
        "imagesets.formats.in_place.describe_file", lambda path: read.append(path) or describe_file(path)
    )
    assert prepare(*options) == 0
    assert len(read) == len(set(read)) == 6 - 1  # the first shard's digest was noted
    monkeypatch.undo()
    assert prepare(*options, "--check") == 0


def test_what_would_change_images_is_refused_in_place(shards: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        prepare("--source", shards, "--in-place", "--max-side", 20, "--out", tmp_path)
    with pytest.raises(SystemExit, match="2"):
        prepare("--dataset", "cifar10", "--in-place", "--out", tmp_path)
    assert prepare("--source", shards, "--in-place", "--out", tmp_path / "a") == 0
    with pytest.raises(SpecError, match=r"choose --loader in_place"):
        stream(tmp_path / "a", loader="memory")


def test_formats_with_other_images_are_not_chosen_among(folder: Path, tmp_path: Path) -> None:
    assert prepare("--source", folder, "--in-place", "--out", tmp_path / "a") == 0
    assert prepare("--source", folder, "--format", "memory", "--max-side", 32, "--out", tmp_path / "a") == 0
    with pytest.raises(DataError, match=r"memory and in_place, .* differently\. Name the one to read: --loader"):
        stream(tmp_path / "a")
    assert len(stream(tmp_path / "a", loader="in_place"))
