"""WebDataset shards that were made elsewhere, and all that can be wrong with them."""

from __future__ import annotations

import io
import shutil
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suite.errors import DataError, SpecError

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
        members = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
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
