"""A file system whose locks do not hold is noticed before anything is trained there."""

import errno
import fcntl
import os

import pytest

from launchers.core import locks
from launchers.grid import main
from suite.base.exit_codes import Exit

COMMAND = ["--suite", "sample_efficiency", "--profile", "smoke", "--only", "train_fraction=0.0375", "--runs"]


def test_a_folder_on_a_disk_of_this_machine_carries_locks_and_keeps_nothing_of_the_trial(tmp_path):
    locks.check_locks(tmp_path)
    assert list(tmp_path.iterdir()) == []


def refuse(*arguments):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.parametrize(
    ("flock", "found"), [(refuse, "without locks: No locks available"), (lambda *_: None, "two processes got one")]
)
def test_a_store_without_locks_is_refused_in_a_line_with_the_cure(monkeypatch, tmp_path, capsys, flock, found):
    monkeypatch.setattr(fcntl, "flock", flock)  # in this process: the other one takes the lock
    assert main([*COMMAND, str(tmp_path)]) == Exit.MISUSE
    (line,) = capsys.readouterr().err.splitlines()
    assert found in line
    assert "a local disk, NFS 4, or Lustre mounted with `flock`" in line
    assert not list(tmp_path.glob("experiments/*"))


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ("server:/home STORE nfs rw,vers=3,nolock,local_lock=all 0 0", "local_lock=all nolock"),
        ("server:/home STORE nfs4 rw,vers=4.2,local_lock=none 0 0", ""),
        ("mds@tcp:/scratch STORE lustre rw,localflock,lazystatfs 0 0", "localflock"),
        ("mds@tcp:/scratch STORE lustre rw,flock,lazystatfs 0 0", ""),
        ("bucket STORE fuse.gcsfuse rw,nosuid 0 0", "FUSE"),
    ],
)
def test_locks_of_one_node_are_named_by_the_mount(monkeypatch, tmp_path, mount, expected):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw,nolock 0 0\n{mount.replace('STORE', str(tmp_path / 'store'))}\n")
    monkeypatch.setattr(locks, "_MOUNTS", mounts)
    assert locks.lock_of_one_node(tmp_path / "store" / "experiments") == expected
