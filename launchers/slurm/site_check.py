"""``grid.py --site-check``: one short job, or this allocation, tells what a run would find; this host compares."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import filelock
from rich import box
from rich.console import Console
from rich.table import Table

from launchers.command.options import GridOptions
from launchers.slurm import queries as slurm
from launchers.slurm.code_snapshot import Snapshot
from launchers.slurm.lost_starts import read_tail
from launchers.slurm.node_check import Finding
from launchers.slurm.sbatch import make_script, submit_script
from launchers.slurm.site_job import SiteJob
from launchers.slurm.submission_record import submissions_folder
from suite.base.exit_codes import Exit
from suite.base.files import naming_disk_errors, read_file, write_atomically
from suite.spec.resources import Resources

_TIME_MIN, _AT_WORK_S = 5, 180.0
_NO_REPORT = "the log says why: Python, a package or a module of setup is missing there, or --runs is not shared"


def check_site(options: GridOptions, console: Console) -> Exit:
    """Report store, locks, clock, libraries, GPUs and network of the nodes, each no with its cure.

    Raises:
        SpecError: there is no SLURM here; RunError: it refuses the job.
    """
    site, store = options.site, options.runs.absolute()
    if not (is_inside := "SLURM_JOB_ID" in os.environ):
        slurm.check_there()
    slurm.speak_to(site)
    num_gpus = 0 if options.device == "cpu" else site.node_gpus or int(options.device == "gpu")
    folder = submissions_folder(store) / f"site-check-{time.time_ns() // 1000:x}"
    code = Snapshot(store)
    code.write()
    data_dir = str(options.data_dir.absolute()) if options.data_dir else None
    threads = site.cpus_per_task or 1
    resources = Resources(device="gpu" if num_gpus else "cpu", threads_per_rank=threads, data_dir=data_dir)
    job = SiteJob(site, store, str(code.folder), resources)
    parameters = job.parameters(1) | {"job_name": folder.name, "time": _TIME_MIN, "setup": job.setup()}
    command = job.command("launchers.slurm.node_check", [str(folder), str(num_gpus), data_dir or ""])
    script = make_script(command, folder, parameters)
    with naming_disk_errors(folder):
        folder.mkdir(parents=True)
    with filelock.FileLock(folder / "lock"), contextlib.ExitStack() as stack:
        if is_inside:
            process = stack.enter_context(subprocess.Popen(["bash", "-c", script]))
            found = _wait(folder, site.nodes, lambda: process.poll() is None)
        else:
            job_id = submit_script(script, folder, folder.name)
            stack.callback(slurm.scancel, [job_id])
            console.print(f"submitted job {job_id}: waiting for it")
            found = _wait(folder, site.nodes, lambda: bool(slurm.find_by_name([folder.name], [os.getuid()])))
    return _report(folder, found, site.nodes, console)


def _wait(folder: Path, num_nodes: int, goes_on: Callable[[], bool]) -> dict[str, list[Finding]]:
    """Wait until every node has reported, or none can any more; returns the findings by node."""
    give_up_at = float("inf")
    while True:
        is_over = not goes_on()
        write_atomically(folder / "clock", str(time.time()).encode())
        if give_up_at == float("inf") and any(folder.glob("seen-*")):
            give_up_at = time.monotonic() + _AT_WORK_S
        reports = {path.stem.removeprefix("found-"): path for path in sorted(folder.glob("found-*.json"))}
        if len(reports) == num_nodes or is_over or time.monotonic() > give_up_at:
            return {node: [(a, b, c) for a, b, c in json.loads(read_file(path))] for node, path in reports.items()}
        time.sleep(1.0)


def _report(folder: Path, found: dict[str, list[Finding]], num_nodes: int, console: Console) -> Exit:
    nodes_of: dict[Finding, list[str]] = {}
    for node, findings in found.items():
        for finding in findings:
            nodes_of.setdefault(finding, []).append(node)
    if len(found) < num_nodes:
        said = "; ".join(line for log in sorted(folder.glob("*_log.out"))[:1] for line in read_tail(log)[-3:])
        nodes_of["report", f"{num_nodes - len(found)} nodes sent none: {said or 'no log'}", _NO_REPORT] = ["?"]
    table = Table("", "nodes", "found", "cure", box=box.SIMPLE_HEAD)
    for (what, words, cure), nodes in nodes_of.items():
        table.add_row(what, ", ".join(nodes), words, f"no: {cure}" if cure else "ok")
    console.print(table)
    num_bad = sum(bool(cure) for _, _, cure in nodes_of)
    console.print(f"{num_bad} to cure; the log is in {folder}" if num_bad else "all is well", soft_wrap=True)
    return Exit.FAILED if num_bad else Exit.DONE
