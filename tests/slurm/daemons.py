"""The daemons that run on the machine itself, and how to speak to them: munge, MariaDB, slurmdbd, slurmctld."""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from processes import end_processes, find_processes, mark_of, reap, start_process, system_environment, wait_until
from settings import ACCOUNT, Settings

_log = logging.getLogger("slurm-cluster")


class Daemons:
    """One cluster's daemons, each a process in the foreground."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = settings.folder
        self.environment = {"SLURM_CONF": str(settings.slurm_conf)}

    def run(self, command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with its output captured; the options are those of subprocess.run."""
        environment = system_environment() | self.environment
        usual: dict[str, Any] = {"env": environment, "capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
        return subprocess.run([str(word) for word in command], **{**usual, **options})

    def call(self, *command: str | Path) -> str:
        """Run a command and return what it printed.

        Raises:
            subprocess.CalledProcessError: If it failed; its note is what it said.
        """
        done = self.run(command)
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
            error.add_note(done.stderr.strip())
            raise error
        return done.stdout.strip()

    def start(self, name: str, command: Sequence[str | Path]) -> None:
        mysql = {"MYSQL_UNIX_PORT": f"{self.folder}/run/mysqld.sock"}  # read by the library inside slurmdbd
        start_process(self.folder, name, command, system_environment() | self.environment | mysql)

    def start_munge(self) -> None:
        run = self.folder / "run"
        files = [f"--socket={run}/munge.socket", f"--pid-file={run}/munged.daemon", f"--seed-file={run}/munge.seed"]
        files += [f"--key-file={self.folder}/etc/munge.key", f"--log-file={self.folder}/log/munged.log"]
        self.start("munged", ["munged", "--foreground", "--force", *files])  # its folder is not everybody's
        self._wait_for_answer("munged", ["munge", f"--socket={run}/munge.socket", "--no-input"])

    def start_accounting(self) -> None:
        """Start MariaDB and slurmdbd with an empty database, and give root an account."""
        self._start_database()
        self.start("slurmdbd", ["slurmdbd", "-D"])
        self._wait_for_answer("slurmdbd", ["sacctmgr", "--noheader", "list", "cluster"])
        for words in ("cluster lab", f"account {ACCOUNT}", f"user root account={ACCOUNT}"):
            self.call("sacctmgr", "--immediate", "--quiet", "add", *words.split())
        self.call("sacctmgr", "--immediate", "--quiet", "modify", "user", "root", "set", f"defaultaccount={ACCOUNT}")
        _log.info("slurmdbd is up")

    def start_controller(self) -> None:
        """Start slurmctld, unless it runs, and wait until it answers."""
        if not find_processes(self.folder, "slurmctld"):
            self.start("slurmctld", ["slurmctld", "-D"])
        self._wait_for_answer("slurmctld", ["scontrol", "ping"], answer="is UP")

    def stop_controller(self) -> None:
        """Let slurmctld save its state and end."""
        end_processes(lambda: find_processes(self.folder, "slurmctld"), signal.SIGTERM)

    def explain(self, error: Exception) -> str:
        """The error with each daemon's last words."""
        parts = [f"{error} {getattr(error, 'stderr', None) or ''}".strip()]
        for file in sorted((self.folder / "log").glob("*.out")):
            if tail := file.read_text(errors="replace").splitlines()[-3:]:
                parts.append("\n  ".join([f"{file}:", *tail]))
        return "\n".join(parts)

    def _start_database(self) -> None:
        folder = self.folder
        server = ["--no-defaults", "--user=root", f"--datadir={folder}/db", "--innodb-log-file-size=16M"]
        # marked, because it takes long enough for its caller to be killed meanwhile
        environment = system_environment() | mark_of(folder, "mariadb-install-db")
        done = self.run(["mariadb-install-db", *server, "--skip-test-db"], env=environment)
        (folder / "log" / "mariadb-install-db.out").write_text(done.stdout + done.stderr)
        done.check_returncode()
        place = [f"--socket={folder}/run/mysqld.sock", f"--pid-file={folder}/run/mariadbd.daemon", "--skip-networking"]
        size = ["--innodb-buffer-pool-size=128M", "--innodb-flush-log-at-trx-commit=0", "--performance-schema=OFF"]
        self.start("mariadbd", ["mariadbd", *server, *place, *size, "--innodb-lock-wait-timeout=900"])
        wait_until((folder / "run" / "mysqld.sock").exists, 60, "MariaDB")
        _log.info("MariaDB is up")

    def _wait_for_answer(self, daemon: str, command: Sequence[str], answer: str = "", timeout_s: float = 60) -> None:
        def answers() -> bool:
            reap()
            if not find_processes(self.folder, daemon):
                raise RuntimeError(f"{daemon} has ended")
            done = self.run(command)
            return done.returncode == 0 and answer in done.stdout

        wait_until(answers, timeout_s, daemon)
