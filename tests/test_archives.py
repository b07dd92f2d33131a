"""Tars that are damaged, or made to mislead: every reader of tars refuses them, and none reads them otherwise."""

import gzip
import io
import lzma
import tarfile

import pytest

from imagesets.fetch.convert import read_members
from leaderboards.packed_records import unpacked
from suite.base.archives import StrictHeader, list_tar_members, unpack_files
from suite.base.errors import DataError, RecordError

NAMES = [f"experiments/x-{number}/seed-0/result.json" for number in range(3)]
CONTENT = b"{}" * 400  # two blocks


def tar_of(names, change=lambda member: CONTENT, **options):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", **options) as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            content = change(member)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def sparse(member):
    """A member of one block that claims three gigabytes of holes."""
    claims = {"major": "1", "minor": "0", "name": member.name, "realsize": "3000000000"}
    member.pax_headers = {f"GNU.sparse.{key}": value for key, value in claims.items()}
    return b"0\n".ljust(512, b"\0")


def with_size(field):
    """The second member's size, with the sum that its header then has to have."""
    data = bytearray(tar_of(NAMES))
    data[1536 + 124 : 1536 + 136] = field
    data[1536 + 148 : 1536 + 156] = b" " * 8
    data[1536 + 148 : 1536 + 156] = b"%06o\0 " % sum(data[1536:2048])
    return bytes(data)


WHOLE = tar_of(NAMES)
DAMAGED = {
    "two in one file": (WHOLE + WHOLE, "goes on after its end mark"),
    "a header of zeros": (WHOLE[:1536] + bytes(512) + WHOLE[2048:], "goes on after its end mark"),
    "a member of zeros": (WHOLE[:1536] + bytes(1536) + WHOLE[3072:], "goes on after its end mark"),
    "bytes behind": (WHOLE + b"x", "goes on after its end mark"),
    "zeros without end": (WHOLE + bytes(2_000_000), "goes on after its end mark"),
    "a flipped bit in a header": (WHOLE[:1540] + b"\1" + WHOLE[1541:], "cut short or broken.*bad checksum"),
    "cut between members": (WHOLE[:3072], "cut short or broken"),
    "cut in a header": (WHOLE[:1700], "cut short or broken"),
    "cut in a member": (WHOLE[:2500], "unexpected end of data"),
    "a sparse member": (tar_of(NAMES, sparse, format=tarfile.PAX_FORMAT), "is sparse"),
    "a size below zero": (with_size(b"\xff" * 11 + b"\0"), r"claims -[\d,]+ bytes"),
}


def read_shard(data, folder):
    (folder / "train-0.tar").write_bytes(data)
    return len(list(list_tar_members(folder / "train-0.tar")))


def read_compressed(data, folder):
    (folder / "devkit.tar.gz").write_bytes(gzip.compress(data))
    return len(read_members(folder / "devkit.tar.gz", NAMES))


def read_kit(data, folder):
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|", tarinfo=StrictHeader) as tar:
        unpack_files(tar, folder)
    return len(list(folder.rglob("*.json")))


def read_records(data, folder):
    (folder / "records.tar.xz").write_bytes(lzma.compress(data))
    with unpacked(folder / "records.tar.xz") as store:
        return len(list(store.rglob("*.json")))


READERS = [read_shard, read_compressed, read_kit, read_records]


@pytest.mark.parametrize("read", READERS)
def test_a_whole_tar_is_read(read, tmp_path):
    assert read(WHOLE, tmp_path) == 3


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_tar_is_refused(damage, read, tmp_path):
    data, said = DAMAGED[damage]
    with pytest.raises((DataError, RecordError, tarfile.TarError), match=said):
        read(data, tmp_path)


def test_a_sparse_file_is_unpacked_by_nobody_however_the_archive_was_opened(tmp_path):
    data = DAMAGED["a sparse member"][0]
    with tarfile.open(fileobj=io.BytesIO(data)) as tar, pytest.raises(ValueError, match="no plain file"):
        unpack_files(tar, tmp_path)
    assert not list(tmp_path.rglob("*.json"))


def test_a_tar_in_a_tar_ends_where_its_member_does(tmp_path):
    path, cut = tmp_path / "train.tar", WHOLE[:3072]
    path.write_bytes(tar_of(["a.tar", "b.tar"], lambda member: WHOLE if member.name == "a.tar" else cut))
    first, second = list_tar_members(path)
    inner = list(list_tar_members(path, first))
    assert [member.name for member in inner] == NAMES
    assert all(path.read_bytes()[m.offset : m.offset + m.length] == CONTENT for m in inner)
    with pytest.raises(DataError, match=r"train\.tar: b\.tar .*cut short"):
        list(list_tar_members(path, second))


def test_a_compressed_member_larger_than_any_of_its_kind_is_not_taken_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("imagesets.fetch.convert._MAX_MEMBER_BYTES", 700)
    with pytest.raises(DataError, match="has 800 bytes, expected at most 700"):
        read_compressed(WHOLE, tmp_path)


@pytest.mark.parametrize(
    ("names", "said"),
    [(["a.jpg", "./a.jpg"], "is there twice"), (["a\x1b.jpg"], "a member is called"), ([""], "called ''")],
)
def test_names_that_nobody_would_write_are_refused(names, said, tmp_path):
    with pytest.raises(DataError, match=said):
        read_shard(tar_of(names), tmp_path)
