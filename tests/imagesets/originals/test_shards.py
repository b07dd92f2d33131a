"""WebDataset shards that were made elsewhere, and all that can be wrong with them."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suite.base.errors import DataError, SpecError

Run = Callable[..., Any]
Members = list[tuple[str, bytes]]


def write_shard(path: Path, members: Members) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


@pytest.fixture
def shards(tmp_path: Path, photos: list[bytes]) -> Path:
    """Two shards to train on and one to test on, of two classes; with members that are of no interest."""
    folder = tmp_path / "shards"
    for name, numbers in (("train-0.tar", range(4)), ("train-1.tar", range(4, 7)), ("val-0.tar", range(7, 9))):
        members: Members = []
        for number in numbers:
            key = f"some/folder/{number}"
            members += [(f"{key}.json", b"{}"), (f"{key}.jpeg", photos[number]), (f"{key}.cls", b"%d\n" % (number % 2))]
        write_shard(folder / name, members)
    return folder


def replace(shards: Path, name: str, data: bytes) -> None:
    """Give the first shard another member of that name, or one more."""
    path = shards / "train-0.tar"
    with tarfile.open(path) as tar:
        members = {member.name: tar.extractfile(member).read() for member in tar}
    write_shard(path, list((members | {name: data}).items()))


def test_shards_are_copied_in_their_order(shards: Path, photos: list[bytes], run: Run, stored: Any) -> None:
    prepared = stored(run(source=shards))
    assert prepared.encoded("train") == photos[:7]
    assert prepared.labels("train") == [0, 1, 0, 1, 0, 1, 0]
    assert prepared.encoded("test") == photos[7:9]
    assert prepared.manifest.classes == ("0", "1")


def test_shards_that_lie_in_the_target_are_indexed_there(
    shards: Path, photos: list[bytes], run: Run, stored: Any, tmp_path: Path
) -> None:
    target = tmp_path / "data" / "pets" / "webdataset"
    shutil.copytree(shards, target)
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    with pytest.raises(SpecError, match="its images cannot be changed"):
        run(source=target, max_side=10)
    prepared = stored(run(source=target))
    assert prepared.encoded("train") == photos[:7]
    assert prepared.encoded("test") == photos[7:9]
    assert {name: data for name, data in prepared.files().items() if name.endswith(".tar")} == before
    assert run(source=target).was_there


def test_our_own_shards_keep_their_class_names(run: Run, stored: Any, tmp_path: Path) -> None:
    first = stored(run())
    second = stored(run("folder", dataset="again", source=first.folder))
    assert second.manifest.classes == first.manifest.classes
    assert second.encoded("train") == first.encoded("train")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("../../.bashrc", b"x", r"the name of member '\.\./\.\./\.bashrc' leads out"),
        ("/etc/cron.d/x", b"x", r"the name of member '/etc/cron\.d/x' leads out"),
        ("some/folder/0.pyd", b"x", r"some/folder/0\.pyd is a pickle"),
        ("some/folder/0.meta.pkl", b"x", r"some/folder/0\.meta\.pkl is a pickle"),
        ("some/folder/0.cls", b"1000", r"some/folder/0\.cls has label 1000, expected 0\.\.9"),
        ("some/folder/0.cls", b"-1", r"some/folder/0\.cls is b'-1', expected the number"),
        ("some/folder/0.cls", b"1_0", r"some/folder/0\.cls is b'1_0', expected the number"),
        ("some/folder/0.cls", b"1" + 18 * b"0", r"some/folder/0\.cls is b'10+', expected the number"),
        ("some/folder/0.cls", b"0" + 20 * b" " + b"1", r"some/folder/0\.cls is b'0 +', expected the number"),
        ("some/folder/0.cls", b"cat", r"some/folder/0\.cls is b'cat', expected the number"),
        ("some/folder/3.png", b"x", r"sample 'some/folder/3' has 2 images"),
        ("zebra.jpg", b"x", r"sample 'zebra' has no label"),
    ],
)
def test_a_member_that_does_not_belong_is_named(name: str, data: bytes, message: str, shards: Path, run: Run) -> None:
    replace(shards, name, data)
    with pytest.raises(DataError, match=rf"train-0\.tar: {message}"):
        run(dataset="cifar10", source=shards)


@pytest.mark.parametrize("num_bytes", [512, 2000, 5000])
def test_a_truncated_shard_is_named(num_bytes: int, shards: Path, run: Run) -> None:
    path = shards / "train-1.tar"
    with tarfile.open(path) as tar:
        tar.getmembers()
        end = tar.offset
    path.write_bytes(path.read_bytes()[: end - num_bytes])
    with pytest.raises(DataError, match=r"train-1\.tar"):
        run(source=shards)


def test_a_shard_cut_between_two_members_is_named(shards: Path, run: Run) -> None:
    path = shards / "train-1.tar"
    with tarfile.open(path) as tar:
        start = tar.getmembers()[3].offset
    path.write_bytes(path.read_bytes()[:start])
    with pytest.raises(DataError, match=r"train-1\.tar .*: it is cut short or broken: after .* there is no end mark"):
        run(source=shards)


def test_a_link_in_a_shard_is_refused(shards: Path, run: Run) -> None:
    with tarfile.open(shards / "train-0.tar", "a") as tar:
        link = tarfile.TarInfo("some/folder/0.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(DataError, match=r"some/folder/0\.txt is not a plain file"):
        run(source=shards)


def test_a_class_without_images_is_named(shards: Path, run: Run) -> None:
    replace(shards, "some/folder/0.cls", b"3")
    with pytest.raises(DataError, match=r"class 2 has no images in .*'s train shards"):
        run(source=shards)


def test_a_very_large_label_takes_no_more_memory_than_a_small_one(shards: Path, run: Run) -> None:
    replace(shards, "some/folder/0.cls", b"999999999")
    tracemalloc.start()
    with pytest.raises(DataError, match=r"class 2 has no images in .*'s train shards"):
        run(source=shards)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 10_000_000


def test_two_tars_in_one_file_are_named_and_not_read_by_half(shards: Path, run: Run) -> None:
    first, second = shards / "train-0.tar", shards / "train-1.tar"
    first.write_bytes(first.read_bytes() + second.read_bytes())
    second.unlink()
    with pytest.raises(DataError, match=r"train-0\.tar .*goes on after its end mark at byte .*several archives in one"):
        run(source=shards)


def test_what_a_computer_adds_to_folders_is_passed_over(
    shards: Path, photos: list[bytes], run: Run, stored: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shards / "train-0.tar"
    with tarfile.open(path) as tar:
        members = [(member.name, tar.extractfile(member).read()) for member in tar]
    added = [(f"{name.rpartition('/')[0]}/._{name.rpartition('/')[2]}", b"\0\5\x16\7") for name, _ in members]
    pairs = [member for pair in zip(added, members, strict=True) for member in pair]
    write_shard(path, [(".DS_Store", b"x"), ("README", b"x"), *pairs, ("LICENSE.txt", b"x")])
    assert stored(run(source=shards)).encoded("train") == photos[:7]
    said = capsys.readouterr().err
    assert "passed over 2 members that belong to no image: train-0.tar/README, train-0.tar/LICENSE.txt" in said


@pytest.mark.parametrize("manifest", ['["a", "b"]', '{"name": "app"}', '{"classes": 2}', '{"classes": {"a": 0}}'])
def test_a_manifest_of_others_beside_the_shards_is_passed_over(
    manifest: str, shards: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    (shards / "manifest.json").write_text(manifest)
    assert run(source=shards).manifest.classes == ("0", "1")
    assert f"passed over {shards / 'manifest.json'}, which is none of ours" in capsys.readouterr().err


@pytest.mark.parametrize("manifest", ["{", "[" * 100_000])
def test_a_manifest_that_cannot_be_read_is_named(manifest: str, shards: Path, run: Run) -> None:
    (shards / "manifest.json").write_text(manifest)
    with pytest.raises(DataError, match=r"manifest\.json cannot be read"):
        run(source=shards)


@pytest.mark.parametrize(
    "name",
    [
        "../../../OUTSIDE",
        "/tmp/x",
        "a/b",
        "a\\b",
        "..",
        ".",
        "",
        " ",
        "a\nb",
        "\x1b[2J",
        "a\u202eb",
        "\ud800",
        "a" * 256,
    ],
)
def test_a_class_s_name_is_one_that_a_folder_can_have(name: str, shards: Path, run: Run, tmp_path: Path) -> None:
    (shards / "manifest.json").write_text(json.dumps({"classes": [name, "b"]}))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match=r"a class is called .*expected one part of a path"):
        run("folder", source=shards)
    assert sorted(tmp_path.rglob("*")) == before


def test_two_classes_of_one_name_are_refused(shards: Path, run: Run) -> None:
    (shards / "manifest.json").write_text(json.dumps({"classes": ["caf\xe9", "cafe\u0301"]}))
    with pytest.raises(DataError, match="has 2 classes called 'caf\xe9'"):
        run("folder", source=shards)


def test_naming_a_file_reads_what_it_belongs_to_and_nothing_else(shards: Path, run: Run) -> None:
    assert run(source=shards / "val-0.tar").manifest.num_images == {"train": 7, "test": 2}
    (shards / "notes.txt").write_text("no shard")
    with pytest.raises(DataError, match=r"notes\.txt has no image set: found a file"):
        run("folder", source=shards / "notes.txt")
