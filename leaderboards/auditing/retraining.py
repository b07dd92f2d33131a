"""A sample of packed runs -> trained again, in a store of their own, and compared with what their records say.

Each is trained by the code of the commit that its result names, where this checkout's history has it; else by today's.
It starts from nothing: records hold no weights, so the runs that it depends on are trained before it.
"""

import io
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

import imagesets
import suite
from leaderboards.auditing.comparison import compare
from leaderboards.auditing.record_checks import read_environment
from leaderboards.auditing.sandbox import Limits, absolute, sandboxed
from leaderboards.schemas.verification import Odds, Outcome, Recomputed
from suite.base.commit import PINNED, commit
from suite.base.errors import RecordError
from suite.base.files import open_to_append, read_tail, write_atomically
from suite.spec.experiment import Experiment, with_ancestors
from suite.spec.resources import WAITING_THREADS, Resources
from suite.store.results import Result
from suite.store.run_directory import RunDirectory

TODAY = "today"
_ROOT = Path(__file__).parents[2]
_TAIL_BYTES = 2000
_MOST_A_CORE = 8  # threads that packed records may ask for
_FIRST_WITH_THREADS = 4  # format of results, which have a number of threads wherever a CPU computed


def find_odds(num_drawn: int, num_runs: int) -> tuple[Odds, ...]:
    """Work out how probably a sample holds an altered run, where one, a tenth or half of the runs are altered."""
    altered = dict.fromkeys((1, math.ceil(num_runs / 10), math.ceil(num_runs / 2)))
    missed = {count: math.comb(num_runs - count, num_drawn) / math.comb(num_runs, num_drawn) for count in altered}
    return tuple(Odds(num_altered=count, probability=1 - chance) for count, chance in missed.items())


@dataclass
class Retraining:
    """Trains runs of unpacked records again, below ``folder``, which nobody else uses.

    ``device`` is that of all runs; None: of each the one that it was trained on.
    """

    records: Path
    folder: Path
    data_dir: Path
    limits: Limits
    is_sandboxed: bool = False
    device: Literal["cpu", "gpu"] | None = None
    _tried: dict[str, tuple[str, str]] = field(default_factory=dict)  # by run, each of which is trained once

    def recompute(self, run: RunDirectory) -> Recomputed:
        """Train a run again, after those that it depends on, and compare it with its records."""
        begun, claimed, experiment, code, problem = time.monotonic(), run.read_result(), run.read_experiment(), "", ""
        assert claimed is not None  # it was checked
        for one in with_ancestors([experiment]):
            if one.id not in self._tried:
                self._tried[one.id] = self._train(one)
            code, problem = self._tried[one.id]
            if problem:
                problem = problem if one.id == experiment.id else f"{one.id}, on which it depends: {problem}"
                break
        there, here, found = read_environment(run), {"device": "", "torch": ""}, None
        outcome: Outcome = "not trained"
        if not problem:
            again = self._directory(experiment)
            found, here = again.read_result(), read_environment(again)
            is_same_code = code == claimed.commit
            is_same_kind = is_same_code and all(there[name] == here[name] != "" for name in ("torch", "processor"))
            try:
                outcome, problem = compare(run, again, is_same_code=is_same_code, is_same_kind=is_same_kind)
            except RecordError as error:  # of what a stranger's program has written
                problem = str(error)
        return Recomputed(
            run=run.id,
            code=code,
            device=(there["device"], here["device"]),
            torch=(there["torch"], here["torch"]),
            top1_percent=(claimed.top1_percent, found.top1_percent if found else None),
            outcome=outcome,
            reason=problem,
            seconds=round(time.monotonic() - begun, 1),
        )

    def _directory(self, experiment: Experiment) -> RunDirectory:
        return RunDirectory.of(self.folder / "runs", experiment)

    def _train(self, experiment: Experiment) -> tuple[str, str]:
        """Train one run; returns the code's commit or "today", and why it has no result or ""."""
        run, record = self._directory(experiment), RunDirectory.of(self.records, experiment)
        claimed = record.read_result() if record.path.is_dir() else None
        if claimed and claimed.num_ranks * max(1, claimed.threads_per_rank) > _MOST_A_CORE * (os.cpu_count() or 1):
            asked = f"{claimed.num_ranks} ranks of {claimed.threads_per_rank} threads"
            return "", f"it had {asked}, more than {_MOST_A_CORE} for each core of this machine"
        code, name = copy_code(claimed.commit if claimed else "", self.folder / "code")
        run.create(experiment)
        if claimed:  # as older code can read it
            write_atomically(run.experiment_path, record.experiment_path.read_bytes())
        log_path = run.path.with_name(f"log-{run.path.name}.txt")  # outside of what the run can write
        try:
            with open_to_append(log_path) as log:
                self._execute(run, experiment, self._resources(claimed), code, log)
        except subprocess.TimeoutExpired:
            return name, f"it was ended after {self.limits.minutes:g} minutes"
        if any(path.is_symlink() for path in run.path.iterdir()):  # where all lies that is read
            return name, "it made links in its folder, which lead to what is none of its own"
        try:
            if run.read_result() is not None:
                read_environment(run)
                return name, ""
            failure = run.read_failure()
        except (RecordError, ValueError) as error:
            return name, str(error)
        said = read_tail(log_path, _TAIL_BYTES).decode(errors="replace").strip().splitlines() or ["it printed nothing"]
        return name, failure.reason if failure else f"it ended without a result: {said[-1]}"

    def _execute(
        self, run: RunDirectory, experiment: Experiment, resources: Resources, code: Path, log: BinaryIO
    ) -> None:
        """Start the run by the code in a folder, and wait for its end; TimeoutExpired after its minutes."""
        command = [str(absolute(sys.executable)), "-m", "suite.execute", str(run.path)]
        command += ["--resources", resources.model_dump_json(exclude_defaults=True)]
        inherited = dict(os.environ)
        variables = dict([WAITING_THREADS]) | {"OMP_NUM_THREADS": str(resources.threads_per_rank)}
        if self.is_sandboxed:
            variables |= {"PYTHONPATH": str(code), "SUITE_CACHE_DIR": "/tmp/cache"}
            parents = [run.of_parent(parent).path for parent in with_ancestors(experiment.parents)]
            command = sandboxed(command, run.path, [code, self.data_dir, *parents], variables, self.limits)
            inherited = {"PATH": os.environ["PATH"]}  # all else can be read in /proc/1/environ of the sandbox
        subprocess.run(
            command,
            cwd=code,
            env=inherited | variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=60 * self.limits.minutes,
            check=False,
        )

    def _resources(self, claimed: Result | None) -> Resources:
        """Give a run what it had, as its rounding depends on it; the runs without records get one thread."""
        given = Resources(data_dir=str(self.data_dir), device=self.device or "cpu")
        if claimed is None:
            return given
        is_gpus = claimed.format_version >= _FIRST_WITH_THREADS and not claimed.threads_per_rank
        return given.model_copy(
            device=self.device or ("gpu" if is_gpus else "cpu"),
            num_ranks=claimed.num_ranks,
            threads_per_rank=claimed.threads_per_rank or 1,
            micro_batch_size=claimed.micro_batch_size or None,
            compiled=claimed.compiled,
            num_evaluations=claimed.num_evaluations or 1,
            loader=claimed.loader,
        )


def copy_code(wanted: str, folder: Path) -> tuple[Path, str]:
    """Copy what a run imports, as it was at a commit of the project's own history, else as it is today.

    That is the history of ``origin/main``, or of HEAD where there is none: commits of a pull request are a stranger's
    code, also where they are checked out. Returns the copy's folder, and the commit or "today".
    """

    def git(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["git", f"--git-dir={_ROOT / '.git'}", *words], capture_output=True, check=False)

    is_ours = False
    if re.fullmatch("[0-9a-f]{40}", wanted) and (_ROOT / ".git").exists():
        has_origin = not git("rev-parse", "--verify", "--quiet", "origin/main").returncode
        is_ours = not git("merge-base", "--is-ancestor", wanted, "origin/main" if has_origin else "HEAD").returncode
    name = wanted if is_ours else TODAY
    copy = folder / name
    if copy.is_dir():
        return copy, name
    if is_ours:
        packed = git("archive", wanted, "suite", "datasets/imagesets").stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(copy, filter="data")
        (copy / "datasets/imagesets").rename(copy / "imagesets")
    else:
        for package in (suite, imagesets):
            place = copy / package.__name__
            shutil.copytree(package.__path__[0], place, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / PINNED).write_text(wanted if is_ours else commit(), encoding="utf-8")
    return copy, name
