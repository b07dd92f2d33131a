"""WebDataset shards that were made elsewhere, and all that can be wrong with them."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suite.base.errors import DataError

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


def test_shards_that_lie_in_the_target_are_left_alone_with_the_cure(shards: Path, run: Run, tmp_path: Path) -> None:
    target = tmp_path / "data" / "pets" / "webdataset"
    shutil.copytree(shards, target)
    with pytest.raises(DataError, match=r"was not made here.*--in-place indexes images where they are"):
        run(source=target)
    assert len(list(target.iterdir())) == 3


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
        ("some/folder/0.cls", b"1000", r"some/folder/0\.jpeg has label 1000, expected 0\.\.9"),
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
    with pytest.raises(
        DataError,
        match=r"train-1\.tar .*: it is cut short or broken: after .* there is no end mark .*[^.]\. Bring it again\.",
    ):
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
    with pytest.raises(
        DataError, match=r"class 2 has no images in .*'s train files.* Labels are 0\.\.3; expected each"
    ):
        run(source=shards)


def test_a_very_large_label_takes_no_more_memory_than_a_small_one(shards: Path, run: Run) -> None:
    replace(shards, "some/folder/0.cls", b"999999999")
    tracemalloc.start()
    with pytest.raises(DataError, match=r"class 2 has no images in .*'s train files"):
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


def test_naming_a_file_reads_what_it_belongs_to_and_nothing_else(
    shards: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(source=shards / "val-0.tar").manifest.num_images == {"train": 7, "test": 2}
    assert f"all 3 .tar files in {shards} are read; a pattern" in capsys.readouterr().err
    (shards / "notes.txt").write_text("no shard")
    with pytest.raises(DataError, match=r"notes\.txt has no image set: found a file"):
        run("folder", source=shards / "notes.txt")


# -- names and labels


def write_images(path: Path, photos: list[bytes], numbers: range, label: Callable[[int], Members]) -> None:
    write_shard(path, [member for number in numbers for member in [*label(number), (f"{number}.jpg", photos[number])]])


def by_cls(number: int) -> Members:
    return [(f"{number}.cls", b"%d" % (number % 2))]


def make_shards(folder: Path, photos: list[bytes], train: str, val: str, label: Any = by_cls) -> Path:
    """Three shards to train on and one to test on, whose names have a number at {}."""
    for number in range(3):
        write_images(folder / train.format(number), photos, range(4 * number, 4 * number + 4), label)
    write_images(folder / val.format(0), photos, range(12, 16), label)
    return folder


@pytest.mark.parametrize(
    ("train", "val"),
    [
        ("imagenet1k-train-{:04}.tar", "imagenet1k-validation-{:02}.tar"),
        ("imagenet-train-{:06}.tar", "imagenet-val-{:06}.tar"),
        ("train/{}.tar", "val/{}.tar"),
        ("train/{}.tar", "test/{}.tar"),
        ("train-{:05}-of-00003.tar", "validation-{:05}-of-00001.tar"),
        ("latest_TRAIN_{}.tar", "latest_valid.tar"),
    ],
)
def test_shards_of_any_usual_name_are_found(
    train: str, val: str, photos: list[bytes], run: Run, stored: Any, tmp_path: Path
) -> None:
    prepared = stored(run(source=make_shards(tmp_path / "shards", photos, train, val)))
    assert prepared.encoded("train") == photos[:12]
    assert prepared.encoded("test") == photos[12:16]


@pytest.mark.parametrize("train", ["a-train-{:04}.tar", "train-{:05}-of-00003.tar"])
def test_a_missing_shard_is_named(train: str, photos: list[bytes], run: Run, tmp_path: Path) -> None:
    source = make_shards(tmp_path / "shards", photos, train, "val-{:04}.tar")
    (source / train.format(1)).unlink()
    with pytest.raises(DataError, match=rf"1 of the train files are missing: .*{train.format(1)}"):
        run(source=source)
    if "-of-" in train:
        (source / train.format(0)).unlink()
        with pytest.raises(DataError, match=rf"2 of the train files are missing: .*{train.format(0)}.*--source"):
            run(source=source)


@pytest.mark.parametrize(("train", "val"), [("a-train-{:04}.tar", "a-val-{:04}.tar"), ("train/{}.tar", "val/{}.tar")])
def test_a_missing_last_shard_is_named_by_what_lists_them(
    train: str, val: str, photos: list[bytes], run: Run, tmp_path: Path
) -> None:
    source = make_shards(tmp_path / "shards", photos, train, val)
    numbers = "{0000..0002}" if ":04" in train else "{0..2}"
    names = {"train": [re.sub(r"{.*}", numbers, train)], "val": [val.format(0)], "other": ["b-train-0009.tar"]}
    info = {"splits": {split: {"filenames": found, "num_samples": 4} for split, found in names.items()}}
    (source / "_info.json").write_text(json.dumps(info))
    assert run(source=source).manifest.num_images["train"] == 12
    (source / train.format(2)).unlink()
    with pytest.raises(DataError, match=rf"1 of the train files are missing: .*{train.format(2)}\. Bring them"):
        run(dataset="other", source=source)


def test_missing_last_shards_of_imagenet_are_asked_about(
    photos: list[bytes], run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def label(number: int) -> Members:
        return [(f"{number}.cls", b"%d" % (number % 1000))]

    for split in ("train", "val"):
        path = tmp_path / "shards" / f"imagenet-{split}-000000.tar"
        write_shard(path, [one for n in range(1000) for one in (*label(n), (f"{n}.jpg", photos[n % 30]))])
    run(dataset="imagenet", source=tmp_path / "shards")
    said = capsys.readouterr().err
    assert "found 1,000 train images, ImageNet-1k (ILSVRC 2012) has 1,281,167: are there files behind imagenet-" in said


def test_of_shards_of_two_sorts_a_pattern_chooses(photos: list[bytes], run: Run, stored: Any, tmp_path: Path) -> None:
    source = make_shards(tmp_path / "shards", photos, "a-train-{}.tar", "a-val-{}.tar")
    make_shards(source, photos[10:], "b-train-{}.tar", "b-validation-{}.tar")
    with pytest.raises(DataError, match=r"has train files of 2 sorts: .*a-train-\*\.tar.*--source '.*/PATTERN'"):
        run(source=source)
    assert stored(run(source=source / "a-{train,val}-*.tar")).encoded("train") == photos[:12]
    with pytest.raises(DataError, match=r"has no test files .*pattern in --source has to name those of both"):
        run(dataset="some", source=source / "a-train-*.tar")
    chosen = stored(run(dataset="some", source=source / "a-{train-{1..2},val-0}.tar"))
    assert chosen.encoded("train") == photos[4:12]
    with pytest.raises(DataError, match=r"a-train-3\.tar is not there, which --source .* names"):
        run(source=source / "a-{train-{0..3},val-0}.tar")


def test_one_split_of_two_names_is_refused(photos: list[bytes], run: Run, tmp_path: Path) -> None:
    source = make_shards(tmp_path / "shards", photos, "train-{}.tar", "val-{}.tar")
    shutil.copy(source / "val-0.tar", source / "validation-0.tar")
    with pytest.raises(DataError, match="has test files of 2 sorts"):
        run(source=source)


def by_json(content: str) -> Callable[[int], Members]:
    return lambda number: [(f"{number}.json", content.replace("N", str(number % 2)).encode())]


def test_labels_are_read_from_json(photos: list[bytes], run: Run, stored: Any, tmp_path: Path) -> None:
    source = tmp_path / "shards"
    make_shards(source, photos, "train-{}.tar", "val-{}.tar", by_json('{"label": N, "width": 5, "class_name": "x"}'))
    assert stored(run(source=source)).labels("train") == [0, 1] * 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"label": N, "target": 3}', r"2 numbers that may be the label \(label, target\)\. Say which .*--label-key"),
        ('{"kind": N, "width": 3}', r"0 numbers that may be the label \(kind, width\)\. Say which .*--label-key"),
        ("{", r"0\.json cannot be read"),
    ],
)
def test_a_json_whose_label_is_not_clear_names_the_option(
    content: str, message: str, photos: list[bytes], run: Run, stored: Any, tmp_path: Path
) -> None:
    source = make_shards(tmp_path / "shards", photos, "train-{}.tar", "val-{}.tar", by_json(content))
    with pytest.raises(DataError, match=message):
        run(source=source)
    if content != "{":
        key = "label" if "label" in content else "kind"
        assert stored(run(source=source, label_key=key)).labels("train") == [0, 1] * 6
        with pytest.raises(DataError, match=r"has colour = None, expected .*; --label-key chooses among "):
            run(source=source, label_key="colour", dataset="other")


@pytest.mark.parametrize("name", ["train/{}/{}.jpg", "{}/{}.JPEG", "{}_{}.JPEG", "x_{1}_{0}.jpg"])
@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_labels_are_read_from_folders_and_wordnet_ids(
    name: str, ending: str, photos: list[bytes], run: Run, stored: Any, tmp_path: Path
) -> None:
    ids = ("n01440764", "n01443537")
    for split, numbers in (("train", range(8)), ("val", range(8, 12))):
        members = [(name.format(ids[number % 2], number), photos[number]) for number in numbers]
        write_shard(tmp_path / "shards" / f"{split}_images_0.tar", [("._x.jpg", b"x"), *members])
        if ending == "tar.gz":
            path = tmp_path / "shards" / f"{split}_images_0.tar"
            path.with_suffix(".tar.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    prepared = stored(run(source=tmp_path / "shards", max_side=None))
    assert prepared.manifest.classes == ids
    assert prepared.encoded("train") == photos[:8]
    assert prepared.labels("test") == [0, 1, 0, 1]
    if ending == "tar.gz":
        with pytest.raises(DataError, match=r"train_images_0\.tar\.gz is compressed: .*gunzip.*--format webdataset"):
            run("in_place", source=tmp_path / "shards")
        path = tmp_path / "shards" / "train_images_0.tar.gz"
        path.write_bytes(path.read_bytes()[:-3000])
        with pytest.raises(DataError, match=r"train_images_0\.tar\.gz cannot be read as a gzip tar"):
            run(dataset="cut", source=tmp_path / "shards")


@pytest.mark.parametrize("label", [by_cls, by_json('{"label": N}')])
def test_labels_are_read_from_members_of_gzip_shards_too(
    label: Callable[[int], Members], photos: list[bytes], run: Run, stored: Any, tmp_path: Path
) -> None:
    source = make_shards(tmp_path / "shards", photos, "train-{}.tar", "val-{}.tar", label)
    for path in sorted(source.glob("*.tar")):
        path.with_suffix(".tar.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    prepared = stored(run(source=source))
    assert prepared.encoded("train") == photos[:12]
    assert prepared.labels("train") == [0, 1] * 6


def test_a_file_of_names_names_the_classes(photos: list[bytes], run: Run, tmp_path: Path) -> None:
    source = make_shards(tmp_path / "shards", photos, "train-{}.tar", "val-{}.tar")
    (source / "classnames.txt").write_text("zebra\nant\n")
    assert run(source=source).manifest.classes == ("zebra", "ant")
    (source / "classnames.txt").write_text("zebra\n")
    with pytest.raises(DataError, match=r"1\.jpg has label 1, expected 0\.\.0, as classnames\.txt"):
        run(dataset="other", source=source)
    with pytest.raises(DataError, match=r"classnames\.txt names 1 classes, expected 10"):
        run(dataset="cifar10", source=source)
    (source / "imagenet_classes.txt").write_text("zebra\nant\n")
    with pytest.raises(DataError, match=r"has classnames\.txt, imagenet_classes\.txt\. Leave the one"):
        run(dataset="other", source=source)
