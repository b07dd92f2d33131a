"""The same command a second time, and places that a prepared set has to go to."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from imagesets import manifest
from imagesets.manifest import read_manifest
from imagesets.prepare import conversion, work
from suite.base.errors import DataError

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("storage_format", "options"), [("folder", {}), ("folder", {"max_side": 30}), ("webdataset", {})]
)
def test_an_image_that_was_replaced_since_is_noticed_and_the_advice_helps(
    storage_format: str, options: dict[str, Any], folder: Path, run: Run, stored: Any, photos: list[bytes]
) -> None:
    first = run(storage_format, **options)
    assert run(storage_format, **options).was_there
    replaced = folder / "train" / "n01440764" / "n01440764_3.JPEG"
    data = photos[28] + bytes(max(0, replaced.stat().st_size - len(photos[28])))
    replaced.write_bytes(data)
    with pytest.raises(
        DataError, match=rf"images in --source have changed since: .*_3\.JPEG\). Delete {first.folder} and"
    ):
        run(storage_format, **options)
    shutil.rmtree(first.folder)
    again = run(storage_format, **options)
    if not options:
        assert data in stored(again).encoded("train")
    assert run(storage_format, **options).was_there


def test_an_image_that_is_replaced_between_two_halves_of_a_conversion_is_converted_anew(
    folder: Path, run: Run, stored: Any, photos: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "write_index", stop)
        with pytest.raises(KeyboardInterrupt):
            run()
    (folder / "train" / "n01440764" / "n01440764_3.JPEG").write_bytes(photos[28])
    assert photos[28] in stored(run()).encoded("train")


def test_another_order_of_the_classes_is_another_set(run: Run, photos: list[bytes], tmp_path: Path) -> None:
    source = tmp_path / "shards"
    source.mkdir()
    for split in ("train", "val"):
        with tarfile.open(source / f"{split}-0.tar", "w") as tar:
            for number, data in enumerate(photos[:7]):
                for ending, content in (("jpg", data), ("cls", b"%d" % number)):
                    member = tarfile.TarInfo(f"{number}.{ending}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    (source / "classnames.txt").write_text("\n".join("abcdefg"))
    first = run(source=source)
    assert run(source=source).was_there
    (source / "classnames.txt").write_text("\n".join("abcdegf"))
    with pytest.raises(DataError, match=rf"classes f \(now g\), g \(now f\)\). Delete {first.folder} and"):
        run(source=source)


def test_of_shards_that_are_source_and_target_only_the_index_is_to_be_deleted(run: Run) -> None:
    here = run().folder
    assert run(source=here).was_there
    shard = here / "train-000000.tar"
    shard.write_bytes(shard.read_bytes()[: -10 * 512] + bytes(2 * 512))
    with pytest.raises(DataError, match=rf"Delete {here}/manifest\.json, which indexes these shards, and"):
        run(source=here)


def test_what_cannot_be_read_any_more_names_the_set_that_is_to_be_deleted(run: Run) -> None:
    prepared = run()
    next(prepared.folder.glob("train-*.tar")).write_bytes(b"")
    with pytest.raises(DataError, match=rf"train-.* has 0 bytes.*\. Delete {prepared.folder} and prepare it again\."):
        run()


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("linked", ["pets/webdataset", "pets"])
def test_a_set_is_written_through_a_link(is_there: bool, linked: str, run: Run, tmp_path: Path) -> None:
    link, disk = tmp_path / "data" / linked, tmp_path / "disk" / "big"
    link.parent.mkdir(parents=True)
    disk.parent.mkdir()
    if is_there:
        disk.mkdir()
    link.symlink_to(disk)
    prepared = run()
    assert prepared.folder == tmp_path / "data" / "pets" / "webdataset"
    assert link.is_symlink()
    assert next(disk.rglob("train-000000.tar"))
    assert read_manifest(prepared.folder).num_images["train"] == 18
    assert run().was_there


@pytest.mark.parametrize("taken", ["file", "loop", "mount"])
def test_a_place_that_no_set_can_take_is_refused_before_the_work(
    taken: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "data" / "pets" / "webdataset"
    target.parent.mkdir(parents=True)
    if taken == "file":
        target.touch()
    elif taken == "loop":
        target.symlink_to(target)
    else:
        target.mkdir()
        monkeypatch.setattr(Path, "is_mount", lambda path: path == target)
    monkeypatch.setattr(work, "treat_all", lambda *_: pytest.fail("this is the work"))
    with pytest.raises(DataError, match=r"it was not made here\. Move it away or choose --out"):
        run()


def test_a_complete_set_that_nobody_can_write_to_is_there_already(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run()

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(conversion, "lock", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert run().was_there
