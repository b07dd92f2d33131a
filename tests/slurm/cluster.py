"""A real SLURM cluster on one machine: munge, MariaDB, slurmdbd, slurmctld and nodes that can lose their power.

Usage:
  cluster.py up | down | status              start one, end it, show it
  cluster.py power-cut NODE | boot NODE      everything on a node ends at once; the node comes back
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Literal

from daemons import Daemons
from machine import check_machine, choose_mode, free_network, free_ports, lock_folder
from nodes import FlatNodes, NamespaceNodes, Nodes
from packages import ClusterUnavailable, install_packages
from processes import end_processes, find_processes, wait_until
from settings import Mode, Settings, Tracking

DEFAULT_FOLDER = Path("/var/lib/slurm-test-cluster/manual")
_SUBFOLDERS = ("etc", "run", "log", "state", "spool", "dev", "db")
_log = logging.getLogger("slurm-cluster")


class Cluster:
    """A running cluster; leaving its `with` block ends it."""

    def __init__(self, settings: Settings, lock: IO[str] | None = None) -> None:
        self.settings = settings
        self._nodes: Nodes = (NamespaceNodes if settings.mode == "namespaces" else FlatNodes)(settings)
        self._daemons = Daemons(settings)
        self._lock = lock

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        mode: Mode | Literal["auto"] = "auto",
        process_tracking: Tracking | Literal["auto"] = "auto",
        **shape: int,
    ) -> Cluster:
        """Install what is missing, end what an earlier run left in this folder, and start an empty cluster.

        Args:
            folder: Where all of its files go. Its `log` outlives the cluster.
            mode: See Settings; `auto` takes namespaces if this machine allows them.
            process_tracking: See Settings; `auto` takes cgroup if this machine offers it.
            **shape: The fields of Settings that have defaults: num_nodes, gpus, grace_time_s, ...

        Raises:
            ClusterUnavailable: If this machine cannot, or the folder's cluster belongs to a live process.
        """
        folder = folder.resolve()
        check_machine()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.ExitStack() as undo:
            lock = undo.enter_context(lock_folder(folder))
            _end_leftovers(folder)
            shutil.rmtree(folder / "log", ignore_errors=True)
            for name in _SUBFOLDERS:
                (folder / name).mkdir(exist_ok=True)
            if installed := install_packages(folder / "log" / "apt.log"):
                _log.info("installed %s", " ".join(installed))
            mode, freezer = choose_mode(folder, mode, process_tracking)
            settings = Settings(
                folder=folder,
                mode=mode,
                process_tracking="cgroup" if freezer else "linuxproc",
                network=free_network(),
                first_port=free_ports(shape.get("num_nodes", Settings.num_nodes) + 2),
                freezer=freezer and freezer / f"slurm-test{'-'.join(folder.parts)[1:]}",
                **shape,
            )
            cluster = cls(settings, lock)
            undo.callback(cluster.stop)
            try:
                cluster._start_all()
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                raise ClusterUnavailable(cluster._daemons.explain(error)) from error
            undo.pop_all()
        return cluster

    @classmethod
    def attach(cls, folder: Path) -> Cluster:
        """The cluster that some other process started in this folder.

        Raises:
            ClusterUnavailable: If there is none.
        """
        settings = Settings.load(folder.resolve())
        if settings is None or not find_processes(settings.folder):
            raise ClusterUnavailable(f"no cluster is running in {folder}")
        return cls(settings)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def nodes(self) -> list[str]:
        return self.settings.nodes

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which sbatch, squeue and the like speak to this cluster."""
        return self._daemons.environment

    def stop(self) -> None:
        """End every process and remove everything but the logs. Does no harm to a cluster that is down."""
        folder = self.settings.folder
        self._nodes.clean()
        end_processes(lambda: find_processes(folder))
        for entry in folder.iterdir():
            if entry.is_dir() and entry.name != "log":
                shutil.rmtree(entry)
        (folder / "settings.json").unlink(missing_ok=True)  # last: it is how the next run finds the rest
        if self._lock:
            self._lock.close()
        _log.info("stopped")

    def power_cut(self, node: str) -> None:
        """End everything on a node at once, its network first."""
        self._check_node(node)
        self._nodes.power_cut(node)

    def unplug(self, node: str) -> None:
        """Pull a node's cable; what runs there lives on, and ``boot`` plugs it in again."""
        self._check_node(node)
        self._nodes.unplug(node)

    def kill_slurmd(self, node: str) -> None:
        """End a node's slurmd alone; what the jobs run there lives on."""
        self._check_node(node)
        folder = self.settings.folder
        end_processes(lambda: find_processes(folder, f"slurmd-{node}", "slurmd"))
        end_processes(lambda: find_processes(folder, f"slurmd-{node}", "nsenter"))

    def boot(self, *nodes: str) -> None:
        """Bring nodes and their cables back; nothing happens to those that are up. SLURM hears of it a moment later."""
        for node in nodes:
            self._check_node(node)
        self._nodes.power_on(nodes)
        for node in nodes:
            if not find_processes(self.settings.folder, f"slurmd-{node}", "slurmd"):
                (self.settings.folder / "spool" / node).mkdir(exist_ok=True)
                self._daemons.start(f"slurmd-{node}", self._nodes.command_on(node, ["slurmd", "-D", "-N", node]))

    def stop_controller(self) -> None:
        """Let slurmctld save its state and end."""
        self._daemons.stop_controller()

    def start_controller(self) -> None:
        """Start slurmctld, unless it runs, and wait until it answers."""
        self._daemons.start_controller()

    def restart_controller(self) -> None:
        self.stop_controller()
        self.start_controller()

    def configure(self, old: str, new: str) -> None:
        """Change a line of slurm.conf, and let all daemons read it."""
        conf = self.settings.slurm_conf
        conf.write_text(conf.read_text().replace(old, new))
        self.call("scontrol", "reconfigure")

    def run_on(self, node: str, command: Sequence[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
        """Run a command on a node, as ssh would; the options are those of subprocess.run."""
        self._check_node(node)
        return self._daemons.run(self._nodes.command_on(node, command), **options)

    def call(self, *command: str | Path) -> str:
        """Run a command of SLURM on this machine and return what it printed.

        Raises:
            subprocess.CalledProcessError: If it failed; its note is what it said.
        """
        return self._daemons.call(*command)

    def job_state(self, job_id: str) -> str:
        """A job's state as slurmctld knows it, up to ten minutes after its end."""
        return self.call("squeue", "--noheader", "--states=all", f"--jobs={job_id}", "--format=%T")

    def node_states(self) -> dict[str, str]:
        """Such as {"node1": "idle", "node2": "down*"}; a star marks a node that does not answer."""
        lines = self.call("sinfo", "--noheader", "--Node", "--partition=batch", "--format=%N %T").splitlines()
        return dict(line.split() for line in lines)

    def is_idle(self) -> bool:
        """Whether all nodes are up and no job is waiting, running or ending."""
        return set(self.node_states().values()) == {"idle"} and not self.call("squeue", "--noheader")

    def wait_idle(self, timeout_s: float = 300) -> None:
        wait_until(self.is_idle, timeout_s, "an idle cluster")

    def reset(self, timeout_s: float = 300) -> None:
        """Cancel all jobs, bring back all that is down, and wait until the cluster is idle.

        The controller asks a node that it holds for lost only every 20 pings (100 s here); one whose slurmd starts says
        so itself.
        """
        self.start_controller()
        for node, state in self.node_states().items():
            if state.endswith("*"):
                self.kill_slurmd(node)
        self.boot(*self.nodes)
        if jobs := self.call("squeue", "--noheader", "--format=%A").split():
            self._daemons.run(["scancel", *sorted(set(jobs))])  # fails if one has just ended
        if drained := [node for node, state in self.node_states().items() if state.startswith("drain")]:
            self.call("scontrol", "update", f"nodename={','.join(drained)}", "state=resume")
        self.wait_idle(timeout_s)

    def _start_all(self) -> None:
        s = self.settings
        s.save()  # first: whatever happens now, the next run can clean up
        s.write_files()
        _log.info("starting in %s: %s, proctrack/%s", s.folder, s.mode, s.process_tracking)
        self._nodes.prepare()
        self._nodes.power_on(self.nodes)
        _log.info("nodes have power")
        self._daemons.start_munge()
        self._daemons.start_accounting()
        self.start_controller()
        _log.info("slurmctld is up")
        self.boot(*self.nodes)
        self.wait_idle()
        _log.info("all nodes are idle")

    def _check_node(self, node: str) -> None:
        if node not in self.nodes:
            raise ValueError(f"no node is called {node!r}; there are {', '.join(self.nodes)}")


def _end_leftovers(folder: Path) -> None:
    if settings := Settings.load(folder):
        Cluster(settings).stop()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["up", "down", "status", "power-cut", "boot"])
    parser.add_argument("node", nargs="?", help="for power-cut and boot")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="default: %(default)s")
    parser.add_argument("--mode", choices=["auto", "namespaces", "flat"], default="auto", help="for up")
    parser.add_argument("--process-tracking", choices=["auto", "cgroup", "linuxproc"], default="auto", help="for up")
    chosen = parser.parse_args(arguments)
    if (chosen.node is not None) != (chosen.action in ("power-cut", "boot")):
        parser.error("power-cut and boot take a node, the others none")
    logging.basicConfig(format="%(relativeCreated)6d ms  %(message)s", level=logging.INFO)
    try:
        _act(chosen)
    except (ClusterUnavailable, ValueError, TimeoutError, subprocess.CalledProcessError) as error:
        print("\n".join([f"cluster.py: {error}", *getattr(error, "__notes__", [])]), file=sys.stderr)
        return 1
    return 0


def _act(chosen: argparse.Namespace) -> None:
    check_machine()
    folder = chosen.folder.resolve()
    if chosen.action == "down":
        if Settings.load(folder):
            with lock_folder(folder):
                _end_leftovers(folder)
        return
    if chosen.action == "up":
        settings = Settings.load(folder)
        if settings is None or not find_processes(folder, "slurmctld"):
            Cluster.start(folder, mode=chosen.mode, process_tracking=chosen.process_tracking)
    cluster = Cluster.attach(folder)
    if chosen.action == "power-cut":
        cluster.power_cut(chosen.node)
    elif chosen.action == "boot":
        cluster.boot(chosen.node)
    else:
        print(f"export SLURM_CONF={cluster.settings.slurm_conf}")
        print(cluster.call("sinfo"), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
