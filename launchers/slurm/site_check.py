"""``grid.py --site-check``: one short job, or this allocation, tells what a run would find; this host compares."""

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
from launchers.slurm.node_check import Expected, Finding, read_findings
from launchers.slurm.sbatch import BatchScript
from launchers.slurm.site_job import SiteJob
from launchers.slurm.submission_record import submissions_folder
from suite.base.exit_codes import Exit
from suite.base.files import naming_disk_errors, write_atomically
from suite.spec.resources import Resources

_TIME_MIN, _AT_WORK_S = 5, 180.0
_NO_REPORT = "the log says why: Python, the package or a module of setup is missing there, or the container lacks it"


def check_site(options: GridOptions, console: Console) -> Exit:
    """Report Python, torch, GPUs, network, locks, store, space and clock, each no with its cure.

    Raises:
        SpecError: there is no SLURM here, or it would refuse the job.
    """
    site, store = options.site, options.runs.absolute()
    slurm.speak_to(str(site.sbatch.get("clusters", "")))
    num_gpus = 0 if options.device == "cpu" else site.node_gpus or int(options.device == "gpu")
    folder = submissions_folder(store) / f"site-check-{time.time_ns() // 1000:x}"
    code = Snapshot(store)
    code.write()
    resources = Resources(device="gpu" if num_gpus else "cpu", threads_per_rank=site.cpus_per_task or 1)
    job = SiteJob(site, store, str(code.folder), resources)
    parameters = job.parameters(1) | {"job_name": folder.name, "time": _TIME_MIN, "setup": job.setup()}
    with naming_disk_errors(folder):
        folder.mkdir(parents=True)
    expected = Expected(
        num_gpus=num_gpus, nodes=site.nodes, store=str(store), data_dir=site.data_dir and str(site.data_dir.absolute())
    )
    write_atomically(folder / "expected.json", expected.model_dump_json().encode())
    script, command = BatchScript(folder, parameters), job.command("launchers.slurm.node_check", [str(folder)])
    with filelock.FileLock(folder / "lock"):
        _keep_clock(folder)
        if "SLURM_JOB_ID" in os.environ:
            console.print("trying this allocation")
            with subprocess.Popen(["bash", "-c", script.script(command)]) as process:
                found = _wait(folder, site.nodes, lambda: process.poll() is None)
        else:
            slurm.check_there()
            job_id = script.submit(command)
            console.print(f"submitted job {job_id}: waiting for it")
            try:
                found = _wait(folder, site.nodes, lambda: bool(slurm.find_by_name([folder.name], [os.getuid()])))
            finally:
                slurm.scancel([job_id])
    return _report(folder, found, site.nodes, console)


def _keep_clock(folder: Path) -> None:
    write_atomically(folder / "clock", str(time.time()).encode())


def _wait(folder: Path, num_nodes: int, goes_on: Callable[[], bool]) -> dict[str, list[Finding]]:
    """Wait until every node has reported, or none can any more; returns the findings by node."""
    give_up_at = float("inf")
    while True:
        is_over = not goes_on()
        _keep_clock(folder)
        if give_up_at == float("inf") and any(folder.glob("seen-*")):
            give_up_at = time.monotonic() + _AT_WORK_S
        paths = {path.stem.split("-", 2)[2]: path for path in sorted(folder.glob("found-*.json"))}
        found = {node: lines for node, path in paths.items() if (lines := read_findings(path)) is not None}
        if len(found) == num_nodes or is_over or time.monotonic() > give_up_at:
            return found
        time.sleep(1.0)


def _report(folder: Path, found: dict[str, list[Finding]], num_nodes: int, console: Console) -> Exit:
    nodes_of: dict[Finding, list[str]] = {}
    for node, findings in found.items():
        for finding in findings:
            nodes_of.setdefault(finding, []).append(node)
    if len(found) < num_nodes:
        logs = sorted(folder.glob("*_log.out"))
        said = "; ".join(read_tail(logs[-1])[-3:]) if logs else "there is no log: --runs may not be shared"
        silent = f"{num_nodes - len(found)} of {num_nodes} nodes sent none: {said}"
        nodes_of[Finding(what="report", found=silent, cure=_NO_REPORT)] = ["?"]
    table = Table("", "nodes", "found", "cure", box=box.SIMPLE_HEAD)
    for finding, nodes in nodes_of.items():
        table.add_row(finding.what, ", ".join(nodes), finding.found, f"no: {finding.cure}" if finding.cure else "ok")
    console.print(table)
    num_bad = sum(bool(finding.cure) for finding in nodes_of)
    console.print(f"{num_bad} to cure; the log is in {folder}" if num_bad else "all is well", soft_wrap=True)
    return Exit.FAILED if num_bad else Exit.DONE
