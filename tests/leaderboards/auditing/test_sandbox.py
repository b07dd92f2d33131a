"""A stranger's program in the sandbox: it writes, reads, calls, forks and takes no more than it may."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import suite
from leaderboards.auditing.sandbox import Limits, absolute, check_sandbox, sandboxed
from suite.base.errors import RunError

ROOT = Path(suite.__file__).parents[1]
LIMITS = Limits(memory_gb=1, num_processes=40, file_gb=0.001)


@pytest.fixture
def attempt(tmp_path, monkeypatch):
    """Runs a program in a sandbox that may write to ``own``, and sees ``code``: gives what it printed as JSON."""
    (tmp_path / "own").mkdir()
    (tmp_path / "code").mkdir()
    (tmp_path / "secret").write_text("of the user")
    monkeypatch.setenv("SECRET_TOKEN", "of the user")
    try:
        check_sandbox()
    except RunError as error:
        pytest.skip(str(error))

    def attempt(program):
        before = "import json, os, socket, time\nroot = " + repr(str(tmp_path)) + "\n"
        command = [str(absolute(sys.executable)), "-c", before + program]
        inside = sandboxed(command, tmp_path / "own", [tmp_path / "code"], {"GIVEN": "1"}, LIMITS)
        ended = subprocess.run(inside, capture_output=True, timeout=60, check=False)
        assert not ended.returncode, ended.stderr
        return json.loads(ended.stdout)

    return attempt


def test_it_writes_to_its_own_folder_and_nowhere_else(attempt, tmp_path):
    places = [f"{tmp_path}/code/x", f"{ROOT}/x", "/usr/x", "/etc/x", "/dev/x", "/x", f"{sys.prefix}/x"]
    program = f"""
written = []
for path in [{str(tmp_path / "own/x")!r}, "/tmp/of its own", "/dev/shm/x", *{places!r}]:
    try:
        open(path, "w").write("x")
        written.append(path)
    except OSError:
        pass
print(json.dumps(written))
"""
    assert attempt(program) == [str(tmp_path / "own/x"), "/tmp/of its own", "/dev/shm/x"]
    assert (tmp_path / "own/x").read_text() == "x"
    assert not Path("/tmp/of its own").exists()
    assert not Path("/dev/shm/x").exists()


def test_it_reads_neither_the_environment_nor_files_of_the_user_nor_other_processes(attempt, tmp_path):
    places = list(map(str, [tmp_path / "secret", "/etc/shadow", "/etc/passwd", ROOT / ".git", ROOT / "README.md"]))
    program = f"""
processes = [name for name in os.listdir("/proc") if name.isdecimal()]
print(json.dumps([sorted(os.environ), [path for path in {places!r} if os.path.exists(path)], len(processes)]))
"""
    names, seen, num_processes = attempt(program)
    assert {*names} - {"LC_CTYPE", "PWD"} == {"GIVEN", "HOME", "LANG", "PATH", "USER"}
    assert seen == []
    assert num_processes <= 2


def test_it_reaches_no_network(attempt):
    program = """
reached = []
for address in (("1.1.1.1", 53), ("127.0.0.1", 22), ("8.8.8.8", 443)):
    try:
        socket.create_connection(address, timeout=3)
        reached.append(address)
    except OSError:
        pass
print(json.dumps([reached, [name for _, name in socket.if_nameindex()]]))
"""
    assert attempt(program) == [[], ["lo"]]


def test_it_forks_to_a_limit_and_all_end_with_it(attempt):
    program = """
count = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        count += 1
except OSError:
    print(json.dumps(count))
"""
    assert attempt(program) < LIMITS.num_processes


def test_it_takes_memory_and_writes_files_to_a_limit(attempt, tmp_path):
    program = f"""
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
refused = []
try:
    bytearray(2 * 10**9)
except MemoryError:
    refused.append("memory")
try:
    open({str(tmp_path / "own/large")!r}, "wb", buffering=0).write(bytes(10**7)) < 10**7 and refused.append("file")
except OSError:
    refused.append("file")
for place in ("/tmp", "/dev/shm"):
    try:
        for name in range(10):
            open(f"{{place}}/{{name}}", "wb").write(bytes(10**6 // 5))
    except OSError:
        refused.append(place)
print(json.dumps(refused))
"""
    assert attempt(program) == ["memory", "file", "/tmp", "/dev/shm"]


def test_without_bubblewrap_the_package_to_install_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        RunError, match="bwrap and prlimit and setpriv, which is not installed here: sudo apt-get install"
    ):
        check_sandbox()
