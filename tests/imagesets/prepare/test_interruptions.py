"""Kills, full disks, corrupt images and changed files: nothing half-written is ever read as data."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from imagesets import manifest
from imagesets.manifest import read_manifest
from imagesets.prepare import __main__ as command
from imagesets.prepare import work
from imagesets.prepare.work import Journal
from suite.base.errors import DataError

Run = Callable[..., Any]

WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "shards": ("webdataset", {"max_side": 30}),
    "rows": ("memory", {"max_side": 30}),
    "betons": ("ffcv", {}),
    "files": ("folder", {"max_side": 30}),
    "in place": ("folder", {}),
}
MOMENTS = [
    (work, "treat_all", 4),
    (Journal, "write", 3),
    (manifest, "write_index", 1),
    (manifest, "write_manifest", 1),
]


def kill_at_call(holder: Any, name: str, count: int) -> None:
    """Let this process die, as by ``kill -9``, when ``holder.name`` is called for the ``count``-th time."""
    real, calls = getattr(holder, name), iter(range(1, count))

    def counting(*args: Any, **options: Any) -> Any:
        if next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)

    setattr(holder, name, counting)


def stop_before_index(monkeypatch: pytest.MonkeyPatch, run: Run, *arguments: Any, **options: Any) -> None:
    """All images are converted, and then somebody presses Ctrl-C."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "write_index", stop)
        with pytest.raises(KeyboardInterrupt):
            run(*arguments, **options)


@pytest.mark.parametrize(("holder", "name", "count"), MOMENTS, ids=[name for _, name, _ in MOMENTS])
@pytest.mark.parametrize("way", WAYS)
def test_a_killed_conversion_goes_on_and_gives_the_same_bytes(
    way: str, holder: Any, name: str, count: int, run: Run, stored: Any, tmp_path: Path
) -> None:
    storage_format, options = WAYS[way]

    def run_and_die() -> None:
        kill_at_call(holder, name, count)
        run(storage_format, **options)

    child = multiprocessing.get_context("fork").Process(target=run_and_die)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    folder = tmp_path / "data" / "pets" / storage_format
    with pytest.raises(DataError, match="is half made: it has no manifest"):
        read_manifest(folder)
    resumed = stored(run(storage_format, **options))
    assert resumed.files() == stored(run(storage_format, out=tmp_path / "undisturbed", **options)).files()
    assert not list(folder.parent.glob(".*.partial"))


def test_a_conversion_that_was_killed_as_it_removed_its_notes_starts_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", stop)
        with pytest.raises(KeyboardInterrupt):
            run()
    made = next((tmp_path / "data/pets").glob("webdataset"))
    files = read_manifest(made).files
    shutil.rmtree(made)
    assert read_manifest(run().folder).files == files


def test_what_is_done_is_not_done_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = work.treat_all

    def failing(places: Any, treatment: Any) -> Any:
        calls.append(len(places))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(places, treatment)

    monkeypatch.setattr(work, "treat_all", failing)
    with pytest.raises(KeyboardInterrupt):
        run()
    run()
    assert sum(calls[4:]) == 24 - 3 * 4


def test_other_settings_start_over(
    run: Run, stored: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stop_before_index(monkeypatch, run, max_side=20)
    prepared = stored(run(max_side=30))
    assert "starting over" in (message := capsys.readouterr().err)
    assert "(max_side)" in message
    assert prepared.files() == stored(run(max_side=30, out=tmp_path / "other")).files()


@pytest.mark.parametrize("storage_format", ["webdataset", "memory", "ffcv", "folder"])
def test_a_half_made_file_that_was_cut_since_is_made_again(
    storage_format: str, run: Run, stored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_before_index(monkeypatch, run, storage_format, max_side=30)
    for path in (tmp_path / "data" / "pets" / f".{storage_format}.partial" / "ready").rglob("*.*"):
        path.write_bytes(path.read_bytes()[: 3000 if storage_format != "folder" else 0])
    prepared = stored(run(storage_format, max_side=30))
    assert prepared.files() == stored(run(storage_format, max_side=30, out=tmp_path / "other")).files()


@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk_is_named_and_the_same_command_goes_on(
    way: str, run: Run, stored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage_format, options = WAYS[way]
    real, calls = os.fsync, iter(range(6))

    def fail_later(descriptor: int) -> None:
        if next(calls, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_later)
        with pytest.raises(DataError, match=rf"cannot write {tmp_path / 'data'}.*No space left.*--out"):
            run(storage_format, **options)
    assert not (tmp_path / "data" / "pets" / storage_format).exists()
    resumed = stored(run(storage_format, **options))
    assert resumed.files() == stored(run(storage_format, out=tmp_path / "undisturbed", **options)).files()


def break_image(folder: Path, name: str, num_bytes: int | None = None) -> Path:
    [path] = folder.rglob(name)
    data = path.read_bytes()
    path.write_bytes(data[: num_bytes or len(data) // 2])
    return path


@pytest.mark.parametrize("way", WAYS)
def test_a_corrupt_image_is_named_or_left_out(way: str, folder: Path, run: Run, stored: Any, tmp_path: Path) -> None:
    storage_format, options = WAYS[way]
    break_image(folder, "n01443537_7.JPEG")
    with pytest.raises(DataError, match=r"train/n01443537/n01443537_7\.JPEG in .* cannot be decoded.*--skip-corrupt"):
        run(storage_format, **options)
    prepared = run(storage_format, skip_corrupt=True, **options)
    assert [name for name, _ in prepared.skipped] == ["train/n01443537/n01443537_7.JPEG"]
    assert prepared.manifest.num_skipped == 1
    assert prepared.manifest.num_images == {"train": 17, "test": 6}
    without = stored(prepared)
    assert without.labels("train") == [0] * 6 + [1] * 5 + [2] * 6
    assert len(without.sizes("train")) == 17
    (folder / "train" / "n01443537" / "n01443537_7.JPEG").unlink()
    clean = stored(run(storage_format, out=tmp_path / "clean", **options))
    if storage_format == "webdataset":  # the shards differ: a portion is a run of the source's images
        assert without.encoded("train") == clean.encoded("train")
    if storage_format == "memory":
        assert without.files() == clean.files()


def test_an_image_that_an_earlier_try_left_out_is_looked_at_again(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = break_image(folder, "n01443537_7.JPEG")
    stop_before_index(monkeypatch, run, skip_corrupt=True)
    with pytest.raises(DataError, match=r"n01443537_7\.JPEG .*cannot be decoded"):
        run()
    for other in (folder / "train").rglob("*_8.JPEG"):
        broken.write_bytes(other.read_bytes())
    assert run().manifest.num_images["train"] == 18


def test_a_class_that_has_only_corrupt_images_is_an_error(folder: Path, run: Run) -> None:
    for path in (folder / "val" / "n01484850").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"all test images of class 'n01484850' in .* are corrupt"):
        run(skip_corrupt=True)


def prepare_here(folder: Path, tmp_path: Path, *more: str) -> int:
    arguments = ["--dataset", "pets", "--out", str(tmp_path / "data"), "--workers", "1", *more]
    return command.main([*arguments, "--source", str(folder)])


@pytest.mark.parametrize("change", ["cut", "changed", "missing"])
@pytest.mark.parametrize("way", WAYS)
def test_files_that_are_not_as_the_manifest_says_are_refused(
    way: str, change: str, folder: Path, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    storage_format, options = WAYS[way]
    prepared = run(storage_format, **options)
    check = ["--dataset", "pets", "--out", str(tmp_path / "data"), "--format", storage_format, "--check"]
    assert command.main(check) == 0
    assert "files that are as the manifest says: " in capsys.readouterr().out
    names = {"shards": "train-000001.tar", "rows": "train.npy", "betons": "train.beton", "files": "0000003.jpg"}
    name = {**names, "in place": "*_3.JPEG"}[way]
    path = max((folder if way == "in place" else prepared.folder).rglob(name))
    data = path.read_bytes()
    if change == "missing":
        path.unlink()
    else:
        path.write_bytes(data[:-1] if change == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    assert command.main(check) == 1
    assert path.name in capsys.readouterr().err
    if change != "changed" and way in ("shards", "rows"):  # seen without reading it all
        with pytest.raises(DataError, match=path.name):
            read_manifest(prepared.folder)


def test_the_command_prints_what_it_made_and_shows_no_traceback(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    break_image(folder, "n01440764_3.JPEG")
    assert prepare_here(folder, tmp_path, "--format", "webdataset") == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: train/n01440764/n01440764_3.JPEG in")
    assert prepare_here(folder, tmp_path, "--format", "webdataset", "--skip-corrupt") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(tmp_path / "data" / "pets" / "webdataset")
    assert lines[1] == "17 train and 6 test images of 3 classes; 1 corrupt ones were left out"
    assert lines[2].startswith("skipped train/n01440764/n01440764_3.JPEG: ")
    assert lines[3].startswith("23 images in ")
    for misuse in (["--quality", "101"], ["--max-side", "0"], ["--dataset", "a/b"]):
        with pytest.raises(SystemExit, match="2"):
            prepare_here(folder, tmp_path, "--format", "webdataset", *misuse)


def test_two_conversions_at_once_make_the_set_once(run: Run, stored: Any) -> None:
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=run) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    assert run().was_there


def test_workers_end_with_a_parent_that_is_killed() -> None:
    program = (
        "import time; from imagesets.prepare.work import map_in_order\n"
        "if __name__ == '__main__': list(map_in_order(time.sleep, [0, 0, 600, 600], 2))"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    children_file = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    deadline = time.monotonic() + 120
    while len(children := [int(pid) for pid in children_file.read_text().split()]) < 3:  # two, and multiprocessing's
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.5)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 120
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.kill(pid, 0)
                time.sleep(0.02)
            pytest.fail("a worker outlived its parent")
