"""A folder cut into parts and put together again; parts that are missing or damaged are named."""

import hashlib
import io
import os
import tarfile

import pytest

from launchers.offline.__main__ import main
from launchers.offline.parts import KitError, KitManifest, Part, find_problems, join, split

FILES = {"wheels/a.whl": 70_000, "wheels/b.whl": 5, "cifar10/labels": 0, "cifar10/strip": 130_001}


@pytest.fixture
def kit(tmp_path):
    """Parts of at most 64 kB, and the folder that they were made of."""
    content, kit = tmp_path / "content", tmp_path / "kit"
    for name, size in FILES.items():
        path = content / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    kit.mkdir()
    manifest = KitManifest("3.12", "linux-x86_64", "2.28", ("torch",), ("cifar10",), split(content, kit, 64_000))
    manifest.write(kit)
    return kit, content


def test_parts_are_no_larger_than_asked_for_and_join_to_the_same_files(kit, tmp_path):
    kit, content = kit
    manifest = KitManifest.read(kit)
    assert len(manifest.parts) == 4
    assert all(path.stat().st_size <= 64_000 for path in kit.glob("part-*"))
    join(kit, manifest.parts, tmp_path / "joined")
    assert all((tmp_path / "joined" / name).read_bytes() == (content / name).read_bytes() for name in FILES)


def test_the_same_files_give_the_same_parts(kit, tmp_path):
    again = tmp_path / "again"
    again.mkdir()
    (kit[1] / "wheels/a.whl").touch()
    assert split(kit[1], again, 64_000) == KitManifest.read(kit[0]).parts


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.unlink(), "part-02 is missing"),
        (lambda path: os.truncate(path, 10), "part-02 has 10 bytes, expected 64,000: it was not copied whole"),
        (flip_a_bit, "it is damaged"),
    ],
)
def test_a_part_that_cannot_be_used_is_named_and_nothing_is_unpacked(kit, tmp_path, spoil, said, capsys):
    kit, _ = kit
    spoil(kit / "part-02")
    parts = KitManifest.read(kit).parts
    assert list(find_problems(kit, parts)) == ["part-02"]
    with pytest.raises(KitError, match="bring these again") as error:
        join(kit, parts, tmp_path / "joined")
    assert said in str(error.value)
    assert not (tmp_path / "joined").exists()
    assert main(["check", "--kit", str(kit)]) == 1
    assert "3 of 4 parts are there and whole" in capsys.readouterr().out


def test_a_kit_without_its_manifest_says_what_to_bring(tmp_path, capsys):
    assert main(["check", "--kit", str(tmp_path)]) == 1
    assert "manifest.json is not there: bring it beside the parts" in capsys.readouterr().err


def test_a_file_that_claims_gigabytes_of_nothing_is_refused(tmp_path):
    made, sparse = io.BytesIO(), tarfile.TarInfo("wheels/a.whl")
    sparse.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": "3000000000"}
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(sparse)
    (tmp_path / "part-01").write_bytes(made.getvalue())
    part = Part("part-01", len(made.getvalue()), hashlib.sha256(made.getvalue()).hexdigest())
    with pytest.raises(KitError, match="is sparse, whose size is only claimed"):
        join(tmp_path, [part], tmp_path / "joined")


def test_a_folder_that_only_sounds_like_a_kit_is_not_cleared(tmp_path, capsys):
    (tmp_path / "part-time").write_text("somebody else's")
    (tmp_path / "tmp-notes").mkdir()
    assert main(["pack", "--kit", str(tmp_path)]) == 1
    assert "which is no kit's" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-time", "tmp-notes"]
