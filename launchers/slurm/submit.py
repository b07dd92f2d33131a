"""From a plan to SLURM's queue, through submitit: an array for all runs that are missing, a job for the leaderboard.

Runs that need others are in arrays of their own, which SLURM holds back until the arrays of those have ended
(``afterany``, which outlasts requeues). The only module that submits. What the jobs run is in ``job``, what becomes of
them is read by ``grid_status``.
"""

import itertools
import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchers.command.options import GridOptions
from launchers.command.site_file import Site
from launchers.core.plan import PlannedRun
from launchers.slurm import queries as slurm
from launchers.slurm.code_snapshot import Snapshot
from launchers.slurm.job import STEP_END_S
from launchers.slurm.lost_starts import WARNING_S
from launchers.slurm.sbatch import UnknownError, make_script, submit_script
from launchers.slurm.site_job import SiteJob
from launchers.slurm.submission_record import Submission, submissions_folder, write_submission
from suite.base.arguments import spell_seeds
from suite.base.errors import RunError, SpecError
from suite.plugins.find_plugin import list_plugins
from suite.spec.experiment import Experiment
from suite.spec.suite import Suite

_NO_STORE = re.compile(r"[\x00-\x1f%\\:\ud800-\udfff]")
_END = Path(__file__).with_name("job_end.sh")


class Submitter:
    """One submission on its way into the queue.

    Args:
        runs: missing runs in the order in which they should be trained, parents first.
        queued: SLURM's array of each run that is in its queue already; it is waited for by those that need it.
        max_arrays: number of arrays, at most; None means all.
    """

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        suite: Suite,
        options: GridOptions,
        queued: Mapping[str, str] | None = None,
        max_arrays: int | None = None,
    ) -> None:
        site, store, seeds, profile = options.site, options.runs, options.seeds, options.profile_name
        groups = _in_groups([run.job.experiment for run in runs])
        tasks = [group[i : i + site.runs_per_job] for group in groups for i in range(0, len(group), site.runs_per_job)]
        self._code = Snapshot(store)
        self.submission = Submission(
            name=f"{suite.name}-{profile}-{time.time_ns() // 1000:x}",  # accounting remembers the names of years
            suite=suite.name,
            suite_source=_locate(options.suite or ""),
            profile=profile,
            first_seed=seeds.start,
            num_seeds=len(seeds),
            time_min=site.time_min,
            resources=runs[0].job.resources,
            requeue=site.requeue,
            chain=1 if site.max_arrays else site.chain,
            tasks=tuple(tuple(task) for task in tasks),
            code=str(self._code.folder),
            ids=tuple(tuple(experiment.id for experiment in task) for task in tasks),
        )
        self.job_ids: list[str] = []
        self._array_of = dict(queued or {})
        self._tasks_per_group = [-(-len(group) // site.runs_per_job) for group in groups]
        self._largest_array = max(self._tasks_per_group)
        if found := _NO_STORE.search(str(store.absolute())):
            raise SpecError(
                f"--runs {str(store)!r}: for {found[0]!r} in the path, jobs could not write logs or import code there. "
                "Expected no %, backslash, colon, line break, nor bytes that are no UTF-8"
            )
        self._store, self._site, self._max_arrays = store.absolute(), site, max_arrays
        self._folder = submissions_folder(self._store) / self.submission.name
        self._job = SiteJob(site, self._store, self.submission.code, self.submission.resources)

    @property
    def submitted(self) -> list[str]:
        """The ids of the runs of these arrays."""
        return [name for tasks in self.arrays() for task in tasks for name in self.submission.ids[task]]

    def script(self, tasks: range | None = None) -> str:
        """The batch script of an array, by default the first one."""
        tasks = tasks or self.arrays()[0]
        return self._make_script(tasks, 1, self._dependency(tasks))

    def describe_order(self) -> str:
        """How many jobs each array has."""
        sizes = [str(len(tasks)) for tasks in self.arrays()]
        first = "; the script is the first one's, the others wait for those that they need" if len(sizes) > 1 else ""
        chained = f", {self.submission.chain} times in a row" if self.submission.chain > 1 else ""
        return f"Arrays of {', '.join(sizes)} jobs{chained}{first}."

    def test(self) -> None:
        """Ask SLURM whether it would take such jobs; arrays are cut where they are too large for the cluster.

        Raises:
            SpecError: SLURM would not, with its reason.
        """
        if (reason := self._refusal()) and slurm.wait_for_nodes():
            reason = self._refusal()
        if "array" in reason and slurm.max_array_size() < self._largest_array:
            self._largest_array = slurm.max_array_size()
            reason = self._refusal()
        if reason and self._site.node_gpus and re.search("gres|node configuration|TRES", reason):
            reason += f". GPUs of this cluster, by sinfo: {slurm.list_gres() or 'none'}"
        if "ccount" in reason:
            reason += ". Name yours by --account: `sacctmgr show associations user=$USER` lists them"
        if reason:
            unused = ", ".join(sorted(name for name in os.environ if name.startswith("SBATCH_")))
            hint = f" {unused} of your environment do not count: give options" if unused else ""
            raise SpecError(f"SLURM would refuse these jobs: {reason}. Nothing was submitted.{hint}")

    def _refusal(self) -> str:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".sh") as file:
            file.write(self.script(max(self.arrays(), key=len)))
            file.flush()
            done = slurm.ask("sbatch", "--test-only", file.name)
        return "" if done.returncode == 0 else slurm.words_of(done)

    def submit(self) -> str:
        """Write down what is submitted, and submit it; after it, a job that builds the leaderboard.

        Returns why that job was refused, if it was: the runs are trained all the same.

        Raises:
            RunError: sbatch fails, or the disk is full.
        """
        self._code.write()
        write_submission(self._store, self.submission)
        try:
            for tasks in self.arrays():
                needed = self._dependency(tasks)
                for link in range(1, self.submission.chain + 1):
                    name, script = self.submission.array_name(tasks.start, link), self._make_script(tasks, link, needed)
                    self.job_ids.append(job_id := submit_script(script, self._folder, name))
                    needed = f"afterany:{job_id}"
                self._array_of |= {e.id: job_id for task in tasks for e in self.submission.tasks[task]}
        except (RunError, OSError) as error:
            if isinstance(error, UnknownError):
                left = "whether SLURM took the jobs is not known: the same command looks for them first"
            elif self.job_ids:
                left = f"{', '.join(self.job_ids)} are in the queue; the same command submits what is missing"
            else:
                shutil.rmtree(self._folder, ignore_errors=True)  # without it no job could start, should one come late
                left = "nothing was submitted"
            raise RunError(f"sbatch failed: {error}; {left}.") from error
        try:
            self._submit_leaderboard()
        except (RunError, OSError) as error:
            return str(error).strip()
        return ""

    def arrays(self) -> list[range]:
        """The tasks of each array, in the order in which they are submitted: as few as this and the cluster allow."""
        ends = itertools.accumulate(self._tasks_per_group)
        groups = [range(end - number, end) for end, number in zip(ends, self._tasks_per_group, strict=True)]
        most = self._largest_array
        return [group[i : i + most] for group in groups for i in range(0, len(group), most)][: self._max_arrays]

    def _dependency(self, tasks: range) -> str | None:
        """Of the arrays that these tasks need; where jobs at once are limited, arrays come one after the other."""
        parents = [parent for task in tasks for e in self.submission.tasks[task] for parent in e.parents]
        needed = {self._array_of[parent.id] for parent in parents if parent.id in self._array_of}
        if self._site.concurrency and self.job_ids:
            needed.add(self.job_ids[-1])
        return f"afterany:{':'.join(sorted(needed))}" if needed else None

    def _submit_leaderboard(self) -> None:
        submission, site = self.submission, self._site
        parameters = {
            **{name: getattr(site, name) for name in ("partition", "account", "qos")},
            "job_name": submission.leaderboard_name,
            "time": 10,
            "dependency": f"afterany:{':'.join(self.job_ids)}",
            "stderr_to_stdout": True,
            "additional_parameters": {key: site.sbatch[key] for key in ("clusters",) if key in site.sbatch},
            "srun_args": self._job.srun_options,
            "setup": self._job.setup(),
        }
        suite = submission.suite_source or submission.suite
        options = ["--suite", suite, "--profile", submission.profile, "--runs", str(self._store)]
        first = submission.first_seed
        options += ["--seeds", spell_seeds(range(first, first + submission.num_seeds))]
        script = make_script(self._job.command("leaderboards.build", options), self._folder, parameters)
        submit_script(script, self._folder, submission.leaderboard_name)

    def _command(self, module: str, first: int) -> str:
        """Spell the command of ours that a job calls."""
        place = [str(self._store), self.submission.name, str(first)]
        return self._job.command(f"launchers.slurm.{module}", place)

    def _make_script(self, tasks: range, link: int, dependency: str | None) -> str:
        site, asked = self._site, self._job.parameters(self.submission.resources.num_ranks // self._site.nodes)
        parameters: dict[str, Any] = {
            **asked,
            "job_name": self.submission.array_name(tasks.start, link),
            "time": site.time_min,
            "signal_delay_s": min(WARNING_S, 60 * site.time_min // 4),
            "array_parallelism": site.concurrency or len(tasks),
            "dependency": dependency,
            "additional_parameters": {
                "requeue" if site.requeue else "no-requeue": True,
                **asked["additional_parameters"],
            },
            "srun_args": ["--kill-on-bad-exit=1", *asked["srun_args"], *_limit_of_step(site)],
            "setup": [
                *self._job.setup(),
                f'folder={shlex.quote(str(self._folder))} first={tasks.start} judged="$folder/$SLURM_JOB_ID.judged"',
                'echo "start ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME"',
                "trap : TERM  # the shell outlives its step, to put the job back into the queue",
            ],
            "teardown": [
                'status=$?; trap "" TERM; rm -f "$judged"',
                *self._job.ending(self._command("requeue", tasks.start)),
                *_END.read_text(encoding="utf-8").splitlines(),
            ],
        }
        return make_script(self._command("job", tasks.start), self._folder, parameters, num_jobs=len(tasks))


def _locate(suite: str) -> str:
    """Where a job, which starts in another folder, finds a suite that is none of ours; "" for one of ours."""
    place, separator, attribute = suite.rpartition(":")
    if place.endswith(".py"):
        return f"{Path(place).absolute()}:{attribute}"
    return suite if separator or suite in list_plugins("suites") else ""


def _limit_of_step(wanted: Site) -> list[str]:
    """Let SLURM end the processes before their job, whose script then requeues it, even if they are all stopped."""
    if wanted.time_min * 60 < 4 * STEP_END_S:
        return []
    minutes, seconds = divmod(60 * wanted.time_min - STEP_END_S, 60)
    return [f"--time={minutes}:{seconds:02d}"]


def _in_groups(experiments: Sequence[Experiment]) -> list[list[Experiment]]:
    """By level, the number of others that come before a run; within a level those first that others wait for, so that
    these do not wait for the rest."""
    level: dict[str, int] = {}
    for experiment in experiments:  # parents first
        level[experiment.id] = max((level[p.id] + 1 for p in experiment.parents if p.id in level), default=0)
    needed = {parent.id for experiment in experiments for parent in experiment.parents}
    groups: dict[tuple[int, bool], list[Experiment]] = {}
    for experiment in experiments:
        groups.setdefault((level[experiment.id], experiment.id not in needed), []).append(experiment)
    return [groups[key] for key in sorted(groups)]
