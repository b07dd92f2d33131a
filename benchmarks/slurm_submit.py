"""How long it takes to submit 1,000 runs, beside one bare ``sbatch --array`` of as many jobs. Needs a SLURM cluster.

    eval "$(python tests/slurm/cluster.py up)"; python benchmarks/slurm_submit.py [--runs 1000] [--rounds 9]

All jobs are held back by a start date, and cancelled at the end. "array and leaderboard" writes the submission down and
submits its array and the job that builds the leaderboard, a second sbatch; "everything" is what grid.py does: it looks
every run up, asks ``sbatch --test-only``, and submits both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from timing import describe_machine, load, report, time_in_turn

from launchers.command.options import GridOptions
from launchers.command.site_file import Site
from launchers.core.plan import PlannedRun, make_plan
from launchers.slurm import queries as slurm
from launchers.slurm.submission_record import Submission
from launchers.slurm.submit import Submitter
from suite.papers import get_suite
from suite.spec.resources import Resources

SUITE = get_suite("sample_efficiency")
_LATER = "now+1days"
_PLAIN = "benchmark_of_sbatch"


def submit_plainly(num_jobs: int, folder: Path) -> None:
    command = ["sbatch", f"--job-name={_PLAIN}", f"--array=0-{num_jobs - 1}", f"--begin={_LATER}"]
    subprocess.run([*command, f"--output={folder}/%A_%a.out", "--wrap=true"], check=True, capture_output=True)


def plan_runs(num_runs: int, store: Path) -> list[PlannedRun]:
    experiments = SUITE.profile("laptop").experiments(range(-(-num_runs // 10)))[:num_runs]
    return make_plan(experiments, store, Resources())


def submit(plan: list[PlannedRun], store: Path, *, test: bool = False) -> Submission:
    """Submit a plan as the grid does; returns the submission. ``test`` asks SLURM first if it would take it."""
    options = GridOptions(suite=SUITE.name, runs=store, site=Site(sbatch={"begin": _LATER}))
    submitter = Submitter(plan, SUITE, options)
    if test:
        submitter.test()
    submitter.submit()
    return submitter.submission


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.runs > slurm.max_array_size():
        parser.error(f"this cluster's arrays have at most {slurm.max_array_size()} jobs")
    print(f"{describe_machine()}; {load()}")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)

        plan = plan_runs(options.runs, store)
        submissions: list[Submission] = []
        ways = {
            "bare sbatch --array": lambda: submit_plainly(options.runs, store),
            "array and leaderboard": lambda: submissions.append(submit(plan, store)),
            "everything": lambda: submissions.append(submit(plan_runs(options.runs, store), store, test=True)),
        }
        try:
            seconds = time_in_turn(ways, options.rounds)
        finally:
            leaderboards = {submission.leaderboard_name for submission in submissions}
            slurm.cancel([submission.name for submission in submissions], {_PLAIN, *leaderboards}, {os.getuid()})
    report(seconds, "bare sbatch --array", f"submitting {options.runs:,} runs")


if __name__ == "__main__":
    main()
