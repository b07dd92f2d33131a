"""The nodes of a test cluster, in namespaces of their own or, where those are forbidden, side by side on 127.0.0.1."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from processes import (
    child_of,
    descendants,
    end_processes,
    find_job_processes,
    find_processes,
    start_process,
    system_environment,
    wait_until,
)
from settings import Settings

UNSHARE = ("unshare", "--net", "--uts", "--ipc", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
_HOSTS = Path("/etc/hosts")


class Nodes(Protocol):
    """The services that a cluster asks of its nodes."""

    def prepare(self) -> None:
        """Set up what all nodes share."""

    def power_on(self, names: Iterable[str]) -> None:
        """Make the nodes exist, without a slurmd, and plug their cables in; nothing else happens to those that do."""

    def power_cut(self, name: str) -> None:
        """End everything on a node at once, without a word to anybody."""

    def unplug(self, name: str) -> None:
        """Pull a node's cable; all on it lives on."""

    def command_on(self, name: str, command: Sequence[str | Path]) -> list[str | Path]:
        """The command that runs this command on a node."""

    def clean(self) -> None:
        """Remove all nodes and what prepare() set up, also after a run that was killed halfway."""


class NamespaceNodes:
    """Each node has its own network device, address, hostname, processes, shared memory and /etc/hosts.

    The nodes' cables end in a bridge, which has a network namespace of its own: there a firewall on the machine
    (Docker's drops what crosses a bridge) does not see the traffic, and all of it vanishes with one process.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def prepare(self) -> None:
        s = self.settings
        if s.freezer:
            mount_freezer(s.freezer.parent)
            s.freezer.mkdir()
        start_process(s.folder, "switch", ["unshare", "--net", "sleep", "infinity"], system_environment())
        wait_until(lambda: bool(find_processes(s.folder, "switch", "sleep")), 10, "the switch")
        switch = self._switch()
        _ip(switch, "link add bridge type bridge", "link set bridge up")
        _ip(None, f"link add {s.host_link} type veth peer name host netns {switch}")
        _ip(None, f"address add {s.host_address}/24 dev {s.host_link}", f"link set {s.host_link} up")
        _ip(switch, "link set host master bridge up")

    def power_on(self, names: Iterable[str]) -> None:
        names = list(names)
        new = [name for name in names if not find_processes(self.settings.folder, name)]
        for name in new:
            self._start_first_process(name)
        for name in new:
            wait_until((self.settings.folder / "run" / f"{name}.booted").exists, 20, f"{name}'s first process", 0.02)
            first = self._first_process(name)
            _ip(self._switch(), f"link add {name} type veth peer name eth0 netns {first}")
            _ip(self._switch(), f"link set {name} master bridge")
            address = f"address add {self.settings.address_of(name)}/24 dev eth0"
            _ip(first, "link set lo up", address, "link set eth0 up")
        for name in names:
            _ip(self._switch(), f"link set {name} up")  # it may be unplugged

    def unplug(self, name: str) -> None:
        _ip(self._switch(), f"link set {name} down")

    def power_cut(self, name: str) -> None:
        folder = self.settings.folder
        if not find_processes(folder, name):
            return
        _ip(self._switch(), f"link delete {name}")  # first of all: nobody must hear the node's connections close
        self._end(name)
        self._remove_freezer(name)

    def command_on(self, name: str, command: Sequence[str | Path]) -> list[str | Path]:
        namespaces = ["--net", "--uts", "--ipc", "--pid", "--mount", *(["--cgroup"] if self.settings.freezer else [])]
        return ["nsenter", "--target", str(self._first_process(name)), *namespaces, f"--wd={Path.cwd()}", *command]

    def clean(self) -> None:
        for name in self.settings.nodes:
            self._end(name)
        for name in self.settings.nodes:
            self._remove_freezer(name)
        if find_processes(self.settings.folder, "switch", "sleep"):
            with contextlib.suppress(subprocess.CalledProcessError):  # the cable to the machine is not there yet
                _ip(self._switch(), "link delete host")
        end_processes(lambda: find_processes(self.settings.folder, "switch"))
        if freezer := self.settings.freezer:
            if freezer.exists():
                freezer.rmdir()
            if freezer.parent.is_relative_to(self.settings.folder) and freezer.parent.is_mount():
                subprocess.run(["umount", freezer.parent], check=True)

    def _start_first_process(self, name: str) -> None:
        s = self.settings
        (s.folder / "run" / f"{name}.booted").unlink(missing_ok=True)
        program = Path(__file__).with_name("first_process.py")
        command: list[str | Path] = [*UNSHARE, sys.executable, program, name, s.folder, s.process_tracking]
        if s.freezer:  # what the new cgroup namespace calls its root is where the process is when it asks for one
            branch = s.freezer / name
            branch.mkdir(exist_ok=True)
            command.insert(1, "--cgroup")
            command = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', branch / "cgroup.procs", *command]
        start_process(s.folder, name, command, system_environment())

    def _first_process(self, name: str) -> int:
        unshare = find_processes(self.settings.folder, name, "unshare")
        first = child_of(unshare[0]) if unshare else None
        if first is None:
            raise RuntimeError(f"{name} is off")
        return first

    def _switch(self) -> int:
        return find_processes(self.settings.folder, "switch", "sleep")[0]

    def _end(self, name: str) -> None:
        """Kill the node's first process, hence all of its process namespace."""
        self._thaw(name)
        folder = self.settings.folder
        end_processes(lambda: [*find_processes(folder, name), *find_processes(folder, f"slurmd-{name}")])

    def _thaw(self, name: str) -> None:
        """SLURM freezes a step for a moment to signal it; whoever is killed while frozen does not die."""
        if self.settings.freezer:
            for state in (self.settings.freezer / name).rglob("freezer.state"):
                with contextlib.suppress(OSError):  # its step has just ended
                    state.write_text("THAWED")

    def _remove_freezer(self, name: str) -> None:
        if self.settings.freezer:
            branch = self.settings.freezer / name
            wait_until(lambda: _removed(branch), 10, f"the end of the last process in {branch}")


class FlatNodes:
    """Several slurmd on 127.0.0.1, each with its port. A node is its slurmd and its jobs' processes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._hosts_mark = f"# {settings.folder}"

    def prepare(self) -> None:
        lines = [f"127.0.0.1 {name} {self._hosts_mark}\n" for name in self.settings.nodes]
        text = _HOSTS.read_text()
        _HOSTS.write_text(text + ("" if text.endswith("\n") else "\n") + "".join(lines))

    def power_on(self, names: Iterable[str]) -> None:
        pass

    def unplug(self, name: str) -> None:
        raise NotImplementedError("nodes on 127.0.0.1 have no cables")

    def power_cut(self, name: str) -> None:
        end_processes(lambda: self._processes_of(name))

    def command_on(self, name: str, command: Sequence[str | Path]) -> list[str | Path]:
        return list(command)

    def clean(self) -> None:
        for name in self.settings.nodes:
            self.power_cut(name)
        lines = _HOSTS.read_text().splitlines(keepends=True)
        if any(self._hosts_mark in line for line in lines):
            _HOSTS.write_text("".join(line for line in lines if self._hosts_mark not in line))

    def _processes_of(self, name: str) -> list[int]:
        s = self.settings
        return descendants([*find_processes(s.folder, f"slurmd-{name}"), *find_job_processes(s.slurm_conf, name)])


def mount_freezer(place: Path) -> None:
    place.mkdir(exist_ok=True)
    if not place.is_mount():
        subprocess.run(["mount", "-t", "cgroup", "-o", "freezer", "cgroup", place], check=True, capture_output=True)


def _removed(branch: Path) -> bool:
    """Whether this cgroup and those below it are gone, trying to remove them; the kernel takes a moment."""
    for folder, _, _ in os.walk(branch, topdown=False):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return not branch.exists()


def _ip(process: int | None, *commands: str) -> None:
    """Run commands of iproute2, in this process's network namespace if one is given."""
    inside = ["nsenter", "--target", str(process), "--net"] if process else []
    text = "\n".join(commands)
    subprocess.run([*inside, "ip", "-batch", "-"], input=text, text=True, check=True, capture_output=True)
