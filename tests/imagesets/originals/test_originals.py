"""The forms in which image sets are distributed, in small: ILSVRC's tars, SVHN's .mat files, folders, parts of sets."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from PIL import Image

from imagesets import catalog
from imagesets.__main__ import main as fetch
from suite.base.errors import DataError, SpecError

Run = Callable[..., Any]
DEVKIT_IDS = {"n01484850": 1, "n01440764": 2, "n01443537": 3}  # not the sorted order


def make_tar(path: Path, members: Mapping[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def tar_bytes(tmp_path: Path, members: Mapping[str, bytes]) -> bytes:
    return make_tar(tmp_path / "inner.tar", members).read_bytes()


def make_devkit(path: Path, classes_of_val: list[str]) -> Path:
    kinds = [("ILSVRC2012_ID", "u2"), ("WNID", "O"), ("words", "O"), ("num_children", "u2")]
    rows = [(number, wnid, "words", 0) for wnid, number in DEVKIT_IDS.items()]
    synsets = np.array([*rows, (4, "n00001740", "a synset above them", 3)], kinds)
    meta = io.BytesIO()
    scipy.io.savemat(meta, {"synsets": synsets})
    truth = "".join(f"{DEVKIT_IDS[name]}\n" for name in classes_of_val).encode()
    folder = "ILSVRC2012_devkit_t12/data"
    members = {f"{folder}/meta.mat": meta.getvalue(), f"{folder}/ILSVRC2012_validation_ground_truth.txt": truth}
    return make_tar(path / "ILSVRC2012_devkit_t12.tar.gz", members, "w:gz")


@pytest.fixture
def small_imagenet(monkeypatch: pytest.MonkeyPatch) -> None:
    """ImageNet with 3 classes and ImageNet-100 with 2."""
    for name, num_classes in (("imagenet", 3), ("imagenet100", 2)):
        small = dataclasses.replace(
            catalog.CATALOG[name], num_classes=num_classes, num_train=18, num_test=6, classes_sha256=()
        )
        monkeypatch.setitem(catalog.CATALOG, name, small)


@pytest.fixture
def tars(folder: Path, tmp_path: Path, small_imagenet: None) -> Path:
    """The folder's images as ILSVRC distributes its own, in no particular order."""
    path = tmp_path / "ilsvrc"
    path.mkdir()
    inner = {
        f"{one.name}.tar": tar_bytes(tmp_path, {file.name: file.read_bytes() for file in one.iterdir()})
        for one in sorted((folder / "train").iterdir(), reverse=True)
    }
    make_tar(path / "ILSVRC2012_img_train.tar", inner)
    val = sorted((folder / "val").rglob("*.JPEG"), key=lambda file: file.name)
    make_tar(path / "ILSVRC2012_img_val.tar", {file.name: file.read_bytes() for file in val})
    make_devkit(path, [file.parent.name for file in val])
    return path


def assert_same(one: Any, other: Any) -> None:
    for split in ("train", "test"):
        assert one.labels(split) == other.labels(split)
        assert one.encoded(split) == other.encoded(split)
    assert one.manifest.classes == other.manifest.classes


def test_ilsvrc_tars_give_what_the_folder_gives(tars: Path, run: Run, stored: Any, tmp_path: Path) -> None:
    from_tars = stored(run(dataset="imagenet", source=tars))
    assert_same(from_tars, stored(run(dataset="imagenet", out=tmp_path / "other")))
    assert from_tars.labels("test") == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("known_from", ["devkit", "extracted devkit", "kaggle"])
def test_a_flat_val_folder_gets_its_classes_from(
    known_from: str, folder: Path, tars: Path, run: Run, stored: Any, tmp_path: Path
) -> None:
    expected = stored(run(dataset="imagenet", source=folder, out=tmp_path / "other"))
    root = tmp_path / "kaggle" / "ILSVRC" / "Data" / "CLS-LOC"
    shutil.copytree(folder / "train", root / "train")
    (root / "val").mkdir()
    (root / "test").mkdir()
    for file in (folder / "val").rglob("*.JPEG"):
        shutil.copy(file, root / "val")
    with pytest.raises(DataError, match=r"nothing says their classes. Put ILSVRC2012_devkit_t12\.tar\.gz"):
        run(dataset="imagenet", source=tmp_path / "kaggle")
    if known_from == "kaggle":
        rows = [f"{file.stem},{file.parent.name} 1 2 3 4" for file in (folder / "val").rglob("*.JPEG")]
        table = "\n".join(["ImageId,PredictionString", *rows])
        (tmp_path / "kaggle" / "LOC_val_solution.csv").write_text(table)
    else:
        devkit = Path(shutil.copy(tars / "ILSVRC2012_devkit_t12.tar.gz", tmp_path / "kaggle"))
        if known_from == "extracted devkit":
            with tarfile.open(devkit) as tar:
                tar.extractall(tmp_path / "kaggle", filter="data")
            devkit.unlink()
    assert_same(stored(run(dataset="imagenet", source=tmp_path / "kaggle")), expected)


@pytest.mark.parametrize("form", ["tars", "folder", "shards"])
def test_imagenet100_is_the_first_classes(
    form: str, tars: Path, folder: Path, run: Run, stored: Any, tmp_path: Path
) -> None:
    source = {"tars": tars, "folder": folder}.get(form)
    if source is None:
        source = run(dataset="imagenet", out=tmp_path / "other").folder
    part = stored(run(dataset="imagenet100", source=source))
    assert part.manifest.classes == ("n01440764", "n01443537")
    assert part.labels("train") == [0] * 6 + [1] * 6
    assert part.labels("test") == [0, 0, 1, 1]
    files = sorted((folder / "train").rglob("*.JPEG"))
    assert part.encoded("train") == [file.read_bytes() for file in files[:12]]


def test_a_truncated_tar_is_named(tars: Path, run: Run) -> None:
    train = tars / "ILSVRC2012_img_train.tar"
    train.write_bytes(train.read_bytes()[:-12_000])
    with pytest.raises(DataError, match=r"ILSVRC2012_img_train\.tar"):
        run(dataset="imagenet", source=tars)


def test_a_member_whose_name_climbs_out_is_refused(tars: Path, run: Run, tmp_path: Path) -> None:
    evil = tar_bytes(tmp_path, {"../../evil.JPEG": b"x"})
    make_tar(tars / "ILSVRC2012_img_train.tar", {f"{name}.tar": evil for name in DEVKIT_IDS})
    with pytest.raises(DataError, match=r"n01440764\.tar: the name of member '\.\./\.\./evil\.JPEG' leads out"):
        run(dataset="imagenet", source=tars)


def test_another_number_of_classes_or_images_is_told(
    folder: Path, run: Run, small_imagenet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    next((folder / "train" / "n01440764").iterdir()).unlink()
    run(dataset="imagenet")
    assert "found 17 train images, ImageNet-1k (ILSVRC 2012) has 18" in capsys.readouterr().err
    for split in ("train", "val"):
        shutil.rmtree(folder / split / "n01440764")
    with pytest.raises(DataError, match="has 2 classes, expected 3 for imagenet"):
        run("memory", dataset="imagenet")


def test_an_empty_class_is_named(folder: Path, run: Run) -> None:
    (folder / "train" / "n00000001").mkdir()
    with pytest.raises(DataError, match="'n00000001' is only in"):
        run()
    (folder / "val" / "n00000001").mkdir()
    with pytest.raises(DataError, match="class 'n00000001' has no images"):
        run()


@pytest.mark.parametrize("target", ["..", "train/n01440764", "."])
def test_a_link_that_would_multiply_images_is_refused(target: str, folder: Path, run: Run) -> None:
    inner = folder / "train" / "n01440764" / "inner"
    inner.mkdir()
    (inner / "again").symlink_to(folder / target if target.startswith("train") else target)
    with pytest.raises(DataError, match=r"inner/again leads to .*n01440764.*, whose images would be there twice"):
        run(source=folder)


def test_a_link_to_images_that_are_elsewhere_is_followed(folder: Path, run: Run, stored: Any, tmp_path: Path) -> None:
    shutil.move(folder / "train" / "n01440764", tmp_path / "elsewhere")
    (folder / "train" / "n01440764").symlink_to(tmp_path / "elsewhere")
    assert stored(run(source=folder)).labels("train") == sorted([0, 1, 2] * 6)


def test_a_folder_that_cannot_be_read_is_named(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, scandir = folder / "train" / "n01440764" / "closed", os.scandir
    closed.mkdir()

    def refuse(path: Any) -> Any:  # as the system does, but not to root
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match=r"closed cannot be read: Permission denied"):
        run(source=folder)


@pytest.mark.parametrize("storage_format", ["webdataset", "folder"])
def test_a_fifo_among_the_images_is_named_and_not_waited_for(storage_format: str, folder: Path, run: Run) -> None:
    os.mkfifo(folder / "train" / "n01440764" / "z.jpg")
    with pytest.raises(DataError, match=r"z\.jpg cannot be read: it is no regular file"):
        run(storage_format, source=folder)


def test_a_folder_without_images_to_test_on_is_refused(folder: Path, run: Run) -> None:
    shutil.rmtree(folder / "val")
    with pytest.raises(DataError, match="none of val, validation"):
        run()


def test_a_source_that_is_nothing_known_is_told_what_was_expected(tmp_path: Path, run: Run) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"found nothing; expected train/ and val/.* or ILSVRC2012_img_train\.tar"):
        run(dataset="imagenet", source=tmp_path / "empty")
    with pytest.raises(DataError, match="nowhere is not there"):
        run(source=tmp_path / "nowhere")


@pytest.mark.parametrize("source", ["pipe:cat secret", "ftp://example.org/train-{000..100}.tar"])
def test_a_command_or_an_address_of_another_kind_as_source_is_refused(source: str, run: Run) -> None:
    with pytest.raises(DataError, match=r"is refused: expected a folder, or s3://.* never a command"):
        run(source=source)


def test_a_name_that_cannot_be_is_misuse(run: Run) -> None:
    with pytest.raises(SpecError, match="letters, digits, _ and -"):
        run(dataset="../pets")
    with pytest.raises(SpecError, match=r"Did you mean 'cifar10'.* of your own need --source DIR"):
        run(dataset="cifar1O", source=None)
    with pytest.raises(SpecError, match=r"imagenet cannot be fetched.*--source DIR"):
        run(dataset="imagenet", source=None)


def make_svhn(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray[Any, Any]]:
    """SVHN's two files with 12 and 11 images; their checksums replace the catalog's."""
    rng, arrays, md5s = np.random.default_rng(0), {}, {}
    path.mkdir()
    for split, count in (("train", 12), ("test", 11)):
        images = rng.integers(0, 256, (count, 32, 32, 3), np.uint8)
        labels = np.arange(count) % 10
        arrays |= {f"{split}_images": images, f"{split}_labels": labels}
        file = path / f"{split}_32x32.mat"
        distributed = np.where(labels == 0, 10, labels).astype(np.uint8)[:, None]
        scipy.io.savemat(file, {"X": images.transpose(1, 2, 3, 0), "y": distributed}, do_compression=True)
        md5s[split] = {file.name: hashlib.md5(file.read_bytes()).hexdigest()}
    info = catalog.CATALOG["svhn"]
    assert info.mat_files is not None
    files = dataclasses.replace(
        info.mat_files, url="http://127.0.0.1:1", train_md5=md5s["train"], test_md5=md5s["test"]
    )
    small = dataclasses.replace(info, num_train=12, num_test=11, mat_files=files)
    monkeypatch.setitem(catalog.CATALOG, "svhn", small)
    return arrays


def test_svhn_is_read_from_its_mat_files(
    tmp_path: Path, run: Run, stored: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = make_svhn(tmp_path / "svhn", monkeypatch)
    prepared = stored(run(dataset="svhn", source=tmp_path / "svhn"))
    for split in ("train", "test"):
        np.testing.assert_array_equal(np.stack(prepared.decoded(split)), arrays[f"{split}_images"])
        assert prepared.labels(split) == arrays[f"{split}_labels"].tolist()
    assert not list((tmp_path / "svhn").glob("*.safetensors"))
    assert fetch(["svhn", "--data-dir", str(tmp_path / "fetched"), "--source", str(tmp_path / "svhn")]) == 0


def test_svhn_that_is_not_the_original_is_refused(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    make_svhn(tmp_path / "svhn", monkeypatch)
    (tmp_path / "svhn" / "test_32x32.mat").write_bytes(b"<html>moved</html>")
    with pytest.raises(DataError, match=r"test_32x32\.mat has MD5 .*, expected"):
        run(dataset="svhn", source=tmp_path / "svhn")


def test_cmyk_jpegs_and_grey_pngs_keep_their_bytes(folder: Path, run: Run, stored: Any) -> None:
    Image.new("CMYK", (20, 20)).save(folder / "train" / "n01440764" / "a.JPEG")
    Image.new("L", (20, 20)).save(folder / "train" / "n01440764" / "b.png")
    prepared = stored(run())
    assert prepared.encoded("train")[0] == (folder / "train" / "n01440764" / "a.JPEG").read_bytes()
    assert prepared.encoded("train")[1].startswith(b"\x89PNG")


def rename_classes(folder: Path, names: dict[str, str]) -> None:
    for split in ("train", "val"):
        for old, new in names.items():
            (folder / split / old).rename(folder / split / new)


def test_class_folders_that_are_numbers_are_sorted_as_numbers_as_the_labels_of_shards_are(
    folder: Path, run: Run, stored: Any, small_imagenet: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rename_classes(folder, dict(zip(sorted(DEVKIT_IDS), ("10", "9", "100"), strict=True)))
    assert run().manifest.classes == ("9", "10", "100")
    assert "the class folders are numbers, and sorted as such: 9, 10, 100" in capsys.readouterr().err
    part = stored(run("folder", dataset="imagenet100", source=folder))
    assert part.manifest.classes == ("9", "10")
    assert [Path(name).parts[1] for name in part.names("train")] == ["9"] * 6 + ["10"] * 6
    capsys.readouterr()
    rename_classes(folder, {"9": "nine"})
    assert run("folder").manifest.classes == ("10", "100", "nine")
    assert "numbers" not in capsys.readouterr().err


def test_what_no_class_folder_has_as_an_image_is_counted_and_named(
    folder: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run()
    assert "passed over" not in capsys.readouterr().err
    added = [f"train/n01440764/a.{kind}" for kind in ("avif", "heic", "jfif", "jp2", "jpe", "txt")] + [
        "train/n01440764/none"
    ]
    added += ["train/stray.jpg", "val/ILSVRC2012_val_00000007.JPEG"]
    for name in (*added, "train/n01440764/.DS_Store", "train/.hidden.jpg"):
        (folder / name).write_bytes(b"x")
    for split in ("train", "val"):
        (folder / split / "n01443538").symlink_to("/nowhere")
    assert run("folder").manifest.num_images == {"train": 18, "test": 6}
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "passed over" in line]
    assert "passed over 11 in" in said
    assert "train/n01443538 (a link to nothing), train/stray.jpg, val/ILSVRC2012_val_00000007.JPEG, " in said
    assert "val/n01443538 (a link to nothing), " in said
    assert said.endswith("train/n01440764/a.jpe, train/n01440764/a.txt and 1 more")


@pytest.mark.parametrize("forms", [("caf\xe9", "cafe\u0301"), ("cafe\u0301", "caf\xe9")])
def test_a_class_s_name_may_be_composed_or_decomposed(forms: tuple[str, str], folder: Path, run: Run) -> None:
    for split, form in zip(("train", "val"), forms, strict=True):
        (folder / split / "n01440764").rename(folder / split / form)
    prepared = run("folder", max_side=20)
    assert prepared.manifest.classes == ("caf\xe9", "n01443537", "n01484850")
    assert len(list((prepared.folder / "train" / "caf\xe9").iterdir())) == 6
    shutil.copytree(folder / "train" / forms[0], folder / "train" / forms[1])
    with pytest.raises(DataError, match="in composed and in decomposed Unicode"):
        run()


def test_a_class_folder_whose_name_does_not_show_is_refused(folder: Path, run: Run) -> None:
    (folder / "train" / "n01440764").rename(folder / "train" / "a\x1b[2Jb")
    with pytest.raises(DataError, match=r"a class is called 'a\\x1b\[2Jb'"):
        run()


def test_kaggle_s_table_may_have_a_mark_before_it_and_no_empty_field(
    tars: Path, run: Run, stored: Any, tmp_path: Path
) -> None:
    expected = stored(run(dataset="imagenet", source=tars))
    truth = {image.stem: image.parent.name for image in (tmp_path / "photos/val").rglob("*.JPEG")}
    (tars / "ILSVRC2012_devkit_t12.tar.gz").unlink()
    rows = [f"{stem},{wnid} 1 2 3 4" for stem, wnid in truth.items()]
    table = tars / "LOC_val_solution.csv"
    table.write_text("\n".join(["ImageId,PredictionString", *rows]), encoding="utf-8-sig")
    assert_same(stored(run(dataset="imagenet", source=tars, out=tmp_path / "again")), expected)
    for row in ("ILSVRC2012_val_00000003,", "ILSVRC2012_val_00000003", ",n01440764 1 2 3 4"):
        table.write_text("\n".join(["ImageId,PredictionString", rows[0], row]))
        with pytest.raises(DataError, match=r"LOC_val_solution\.csv: line 3 has an empty field"):
            run(dataset="imagenet", source=tars, out=tmp_path / "third")


def test_folders_come_before_a_train_tar_that_was_left_beside_them(
    folder: Path, tars: Path, run: Run, stored: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (folder / "ILSVRC2012_img_train.tar").write_bytes(b"half of it")
    run(dataset="imagenet")
    assert f"--source {folder}/ILSVRC2012_img_train.tar takes the tars" in capsys.readouterr().err
    with pytest.raises(DataError, match="cannot be read as an uncompressed tar"):
        run(dataset="imagenet", source=folder / "ILSVRC2012_img_train.tar")
    (tars / "train").mkdir()  # of which nothing was unpacked yet
    from_tars = stored(run(dataset="imagenet", source=tars, out=tmp_path / "other"))
    assert from_tars.labels("test") == [0, 0, 1, 1, 2, 2]


def test_an_archive_beside_the_named_folder_is_not_taken_in_its_place(
    folder: Path, tmp_path: Path, run: Run, stored: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = make_svhn(tmp_path / "svhn", monkeypatch)
    shutil.move(folder, tmp_path / "svhn" / "mine")
    with pytest.raises(DataError, match="svhn/mine has 3 classes, expected 10"):
        run(dataset="svhn", source=tmp_path / "svhn" / "mine")
    named = stored(run(dataset="svhn", source=tmp_path / "svhn" / "test_32x32.mat"))
    assert named.labels("test") == arrays["test_labels"].tolist()


def test_a_source_whose_path_no_manifest_can_hold_is_refused_first(folder: Path, run: Run, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.rename(path)
    with pytest.raises(DataError, match=r"caf\\udce9' has bytes that are not UTF-8"):
        run(source=path)
    assert not (tmp_path / "data").exists()
    (tmp_path / "link").symlink_to(path)
    assert run(source=tmp_path / "link").manifest.source == str(tmp_path / "link")
