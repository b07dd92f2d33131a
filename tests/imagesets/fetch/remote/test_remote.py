"""Far files: by ranges, through faults, with a cache; from a web server, S3 and Hugging Face."""

import errno
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import obstore
import pytest
from huggingface_hub import HfFileSystem

from suite.base.errors import DataError, SpecError
from suite.base.far import remote, stores
from suite.base.far.remote_path import path_of

DATA = np.random.default_rng(0).bytes(300_000)


@pytest.fixture
def file(server):
    server.files["/a.tar"] = DATA
    return remote.find(f"{server.url}/a.tar")


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 1), (65_535, 2), (100_000, 150_000), (299_999, 1), (250_000, 99_999)]
)
def test_a_range_is_that_part_of_the_file_also_from_the_cache(file, server, offset, length):
    for _ in range(2):
        assert file.read(offset, length) == DATA[offset : offset + length]
    assert server.asked.total() == 2  # its head, and the blocks that hold the range


def test_a_file_is_read_from_front_to_back_with_seeks(file):
    with file.open() as opened:
        opened.seek(1_000)
        assert opened.read(200_000) == DATA[1_000:201_000]
        opened.seek(-7, os.SEEK_END)
        assert opened.read() == DATA[-7:]


@pytest.mark.parametrize("fault", ["503", "reset", "cut", "slow", "other range"])
def test_a_fault_that_passes_is_gone_over_and_one_that_stays_is_named(file, server, fault):
    server.faults = [fault] * 3
    assert file.read(10, 20) == DATA[10:30]
    server.faults = [fault] * remote.NUM_TRIES
    with pytest.raises(DataError, match=rf"a\.tar cannot be read: .*tried {remote.NUM_TRIES} times"):
        file.read(200_000, 20)


@pytest.mark.parametrize("fault", ["whole", "other range"])
def test_a_server_that_lies_about_ranges_is_refused_with_the_cure(file, server, fault):
    server.faults = [fault] * remote.NUM_TRIES
    with pytest.raises(DataError, match="Its server has to answer range requests"):
        file.read(10, 20)


@pytest.mark.parametrize("change", ["etag", "size"])
def test_a_file_that_changes_is_named_and_not_mixed(file, server, change):
    file.read(0, 10)
    if change == "etag":
        server.etag = '"2"'
    else:
        server.files["/a.tar"] = DATA + b"more"
    with pytest.raises(DataError, match=r"a\.tar has changed while it was read"):
        file.read(200_000, 10)
    remote.find.cache_clear()
    assert remote.find(file.address).read(0, 10) == DATA[:10]  # of the new version, not from the cache
    assert server.asked["bytes=0-65535"] == 2


def test_a_file_that_is_not_there_is_named_at_once(server):
    with pytest.raises(DataError, match=r"nothing\.tar cannot be read: nothing is there \(404\)\. Look at the address"):
        remote.find(f"{server.url}/nothing.tar")


def test_a_page_of_links_is_a_folder(server):
    links = "".join(f'<a href="{name}">{name}</a>' for name in ("../", "train-1.tar", "train-0.tar", "deeper/"))
    server.files["/set/"] = links.encode()
    assert remote.list_folder(f"{server.url}/set") == [
        f"{server.url}/set/{name}" for name in ("deeper/", "train-0.tar", "train-1.tar")
    ]


@pytest.mark.parametrize("address", ["https://me:secret@host/a", "https://host/a?sig=secret", "pipe:cat /etc/passwd"])
def test_an_address_with_a_secret_or_a_command_is_refused_without_showing_it(address):
    with pytest.raises(SpecError) as refused:
        remote.check_address("--source", address)
    assert "secret" not in str(refused.value)


# -- a cache that is bounded, and never trusted


def cache_files():
    return sorted(remote._open_cache().folder.glob("?" * 64))


def test_a_damaged_or_cut_cache_file_is_not_believed(file, server):
    file.read(0, 200_000)
    [path] = cache_files()
    damaged = bytearray(path.read_bytes())
    damaged[70_000] ^= 1
    path.write_bytes(damaged[:150_000])  # the second block is damaged, the third is cut
    assert file.read(0, 200_000) == DATA[:200_000]
    assert server.asked["bytes=65536-262143"] == 1  # the first block was whole
    assert file.read(0, 200_000) == DATA[:200_000]
    assert server.asked.total() == 3


def test_the_cache_keeps_to_its_size_and_drops_what_was_used_longest_ago(server, monkeypatch):
    monkeypatch.setenv("IMAGESETS_CACHE_GB", "0.001")
    for number in range(8):
        server.files[f"/{number}.tar"] = DATA
        assert remote.find(f"{server.url}/{number}.tar").read(0, len(DATA)) == DATA
        if number:
            os.utime(cache_files()[0], (number, number))
    assert sum(path.stat().st_blocks * 512 for path in cache_files()) < 1e6 + 330_000
    asked = server.asked.total()
    assert remote.find(f"{server.url}/7.tar").read(0, len(DATA)) == DATA
    assert server.asked.total() == asked  # the newest is there


def test_without_room_for_a_cache_the_bytes_come_from_the_server_with_a_warning(file, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.warns(UserWarning, match=r"the cache .*\.remote is not used: No space left"):
        assert file.read(10, 100_000) == DATA[10:100_010]
    assert file.read(10, 100_000) == DATA[10:100_010]


READER = """
import sys, os
from suite.base.far import remote, stores
from suite.base.far.remote_path import path_of
file = remote.find(sys.argv[1])
while True:
    for start in range(0, file.size, 50_000):
        file.read(start, 50_000)
    print("read", flush=True)
    for path in remote._open_cache().folder.glob("?" * 64):
        path.unlink(missing_ok=True)
"""


def test_processes_share_the_cache_and_one_that_is_killed_leaves_it_whole(file, tmp_path):
    readers = [subprocess.Popen([sys.executable, "-c", READER, file.address], stdout=subprocess.PIPE) for _ in range(3)]
    for reader in readers:
        assert reader.stdout.readline() == b"read\n"
        reader.kill()
        reader.wait()
        reader.stdout.close()
    for start in range(0, len(DATA), 70_000):
        assert file.read(start, 70_000) == DATA[start : start + 70_000]


def test_threads_read_at_once(file):
    with ThreadPoolExecutor(8) as pool:
        starts = range(0, len(DATA) - 1_000, 7_919)
        assert list(pool.map(lambda start: file.read(start, 1_000), starts)) == [DATA[s : s + 1_000] for s in starts]


# -- S3 as moto serves it, Google's storage, and Hugging Face's hub


@pytest.fixture
def photos(bucket):
    """A bucket with three files."""
    for path, data in {"set/0.tar": DATA, "set/1.tar": b"1", "set/deeper/2.tar": b"2"}.items():
        obstore.put(bucket, path, data)
    return bucket


def test_s3_is_listed_and_read_by_ranges(photos):
    assert remote.list_folder("s3://photos/set/") == [f"s3://photos/set/{k}" for k in ("0.tar", "1.tar", "deeper/")]
    assert remote.find("s3://photos/set/0.tar").read(123_456, 100_000) == DATA[123_456:223_456]
    assert b"".join(remote.read_pieces("s3://photos/set/0.tar")) == DATA


def test_a_file_of_s3_that_changes_is_named(photos):
    file = remote.find("s3://photos/set/0.tar")
    file.read(0, 10)
    obstore.put(photos, "set/0.tar", DATA[::-1])
    with pytest.raises(DataError, match=r"s3://photos/set/0\.tar has changed"):
        file.read(200_000, 10)


def test_what_s3_refuses_is_said_without_the_credentials(photos):
    with pytest.raises(DataError, match=r"s3://photos/nothing cannot be read.*credentials in the environment") as error:
        remote.find("s3://photos/nothing")
    assert "a secret" not in str(error.value)


def test_google_s_storage_is_read_by_ranges(server, monkeypatch):
    monkeypatch.setenv("GOOGLE_BASE_URL", server.url)
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    server.files["/photos/0.tar"] = DATA
    assert remote.find("gs://photos/0.tar").read(10, 20) == DATA[10:30]


def test_hugging_face_s_hub_is_read_by_ranges_of_one_commit(server, monkeypatch):
    entry = {"type": "file", "path": "0.tar", "size": len(DATA), "oid": "1" * 40}
    repository = {"_id": "1", "id": "me/photos", "sha": "c" * 40, "siblings": []}
    server.files["/api/datasets/me/photos"] = json.dumps(repository).encode()
    for revision in ("main", "c" * 40):
        server.files[f"/api/datasets/me/photos/revision/{revision}"] = json.dumps(repository).encode()
        server.files[f"/api/datasets/me/photos/tree/{revision}"] = json.dumps([entry]).encode()
    server.files[f"/datasets/me/photos/resolve/{'c' * 40}/0.tar"] = DATA
    monkeypatch.setattr(stores, "_hugging_face", lambda: HfFileSystem(endpoint=server.url, token=False))
    assert remote.list_folder("hf://datasets/me/photos") == ["hf://datasets/me/photos/0.tar"]
    assert remote.find("hf://datasets/me/photos/0.tar").read(10, 20) == DATA[10:30]


def test_an_address_serves_as_a_path(photos):
    folder = path_of("s3://photos")
    assert [str(path) for path in (*folder.glob("*/*.tar"), folder / "set" / "0.tar")] == [
        *("s3://photos/set/0.tar", "s3://photos/set/1.tar", "s3://photos/set/0.tar")
    ]
    shard = pickle.loads(pickle.dumps(folder / "set" / "0.tar"))
    assert (shard.name, str(shard.parent), shard.stat().st_size) == ("0.tar", "s3://photos/set", len(DATA))
    assert [path.is_dir() for path in (folder, shard.parent, shard, folder / "train")] == [True, True, False, False]
    assert [path.exists() for path in (shard.parent, shard, folder / "set" / "2.tar")] == [True, True, False]
    assert path_of("here") == Path("here")
