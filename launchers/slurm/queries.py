"""SLURM's word on our jobs: one ``squeue`` for all that wait or run, one ``sacct`` for all that have ended.

Jobs are recognized by their names, see ``submission_record``. Nothing here starts or ends a job but ``cancel``.

SLURM's programs read options from variables too, such as ``SQUEUE_STATES``, ``SBATCH_WAIT`` or those of a job within
which they are called. These would win over ours, hide jobs, and go on into the jobs that are submitted: so all programs
are called here, without them.
"""

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from launchers.command.site_file import Site
from launchers.slurm.submission_record import task_number
from suite.base.errors import RunError, SpecError

_TIMEOUT_S = 60.0
_OPTIONS = re.compile(r"_?(SLURMD?|SBATCH|SRUN|SALLOC|SQUEUE|SACCT|SCANCEL|SINFO|SCONTROL|SPANK|PMI2?|PMIX)_")
_PLACES = {"SLURM_CONF", "SLURM_JWT", "SLURM_SACK_SOCKET"}  # they say how SLURM is reached
_OF_A_JOB = {"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES"}  # set by SLURM for its GPUs
_RELAY_LOOK_S = 0.05
_clusters: list[str] = []  # those that ``speak_to`` names
_NUM_LOOKS, _LOOK_S = 10, 1.0  # at what sbatch has said too little about: it may come late
_NODES_TIMEOUT_S, _NODES_LOOK_S = 120.0, 2.0
_NUM_CANCELS = 3  # a job that is being requeued may slip through the first
_QUEUE_FORMAT = ("ArrayJobID", "ArrayTaskID", "Name", "StateCompact", "Reason", "NodeList", "RestartCnt")
_WIDTH = 255  # squeue cuts what is longer


@dataclass(frozen=True)
class QueuedJob:
    """A job that waits or runs. ``state`` is SLURM's short one: PD, R, CG, ..."""

    job_id: str  # ARRAY_TASK
    submission: str
    task: int
    state: str
    reason: str
    nodes: str
    num_restarts: int


@dataclass(frozen=True)
class EndedJob:
    """A job that accounting knows. ``state`` is COMPLETED, CANCELLED, TIMEOUT, ..."""

    job_id: str  # ARRAY_TASK
    state: str
    nodes: str


def ask(*command: str, timeout_s: float = _TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run one of SLURM's programs to its end; one that does not answer fails."""
    unwanted = {name for name in os.environ if _OPTIONS.match(name)} - _PLACES
    unwanted |= _OF_A_JOB if "SLURM_JOB_ID" in os.environ else set()
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment["SLURM_BITSTR_LEN"] = "0"  # else squeue cuts long lists of an array's jobs
    if _clusters and command[0] != "sacct":
        environment["SLURM_CLUSTERS"] = _clusters[0]
    relay = os.environ.get("SUITE_SLURM_RELAY")
    if relay and shutil.which(command[0]) is None:
        return _ask_outside(Path(relay), command, timeout_s)
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
            timeout=timeout_s, check=False, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", f"it did not answer: {error}")


def _ask_outside(relay: Path, command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Let ``relay.sh`` run a program that this container lacks."""
    name = str(relay / f"{time.time_ns()}")
    give_up_at = time.monotonic() + timeout_s
    try:
        Path(f"{name}.new").write_bytes(b"".join(os.fsencode(word) + b"\0" for word in command))
        Path(f"{name}.new").rename(f"{name}.ask")
        while not (status := Path(f"{name}.status")).exists():
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"nobody outside of the container read {name}.ask")
            time.sleep(_RELAY_LOOK_S)
        out, err = (Path(f"{name}.{end}").read_text(encoding="utf-8", errors="replace") for end in ("out", "err"))
        return subprocess.CompletedProcess(command, int(status.read_bytes()), out, err)
    except (OSError, ValueError) as error:
        return subprocess.CompletedProcess(command, 1, "", f"it did not answer: {error}")


def speak_to(site: Site) -> None:
    """Ask the cluster that the site names among sbatch's options from now on, or else the login node's own."""
    _clusters[:] = [str(site.sbatch[key]) for key in ("clusters",) if key in site.sbatch]


def call(*command: str) -> str:
    """The output of one of SLURM's programs; a RunError if it fails, or does not answer."""
    done = ask(*command)
    if done.returncode != 0:
        raise RunError(f"{command[0]} failed: {words_of(done)}. The jobs go on; try again.")
    return done.stdout


def words_of(done: subprocess.CompletedProcess[str]) -> str:
    """All that a program said: a site's filter gives its reason on a line before the last."""
    lines = [line.strip() for line in (done.stderr.strip() or done.stdout).splitlines()]
    return "; ".join(line for line in lines if line) or "it said nothing"


def check_there() -> None:
    """Check that SLURM's commands can be called; a SpecError on a machine without SLURM."""
    missing = [name for name in ("sbatch", "squeue", "srun") if shutil.which(name) is None]
    if missing:
        cure = "Run this on a login node, or leave out --cluster to train on this machine."
        raise SpecError(f"--cluster slurm: {', '.join(missing)} not found on PATH. {cure}")


def read_queue(users: Collection[int]) -> list[QueuedJob]:
    """All jobs of these users, by their numbers, that belong to a submission."""
    columns = ",".join(f"{name}:{_WIDTH}" for name in _QUEUE_FORMAT)
    jobs = []
    for line in call("squeue", _of(users), "--all", "--noheader", "--array", "--Format", columns).splitlines():
        fields = [line[start : start + _WIDTH].strip() for start in range(0, len(_QUEUE_FORMAT) * _WIDTH, _WIDTH)]
        array, index, name, state, reason, nodes, restarts = fields
        if index.isdecimal() and (place := task_number(name, int(index))):
            jobs.append(QueuedJob(f"{array}_{index}", *place, state, reason, nodes, int(restarts or 0)))
    return jobs


def _of(users: Collection[int]) -> str:
    return f"--user={','.join(map(str, sorted(users)))}"


def read_ended(submissions: Iterable[str], since: str, users: Collection[int]) -> dict[tuple[str, int], EndedJob]:
    """SLURM's last word on each (submission, task) that accounting knows; {} where the cluster keeps none.

    ``since`` is a date, YYYY-MM-DD.
    """
    wanted = set(submissions)
    try:
        where = [f"--clusters={name}" for name in _clusters]
        text = call("sacct", *where, _of(users), "--allocations", "--noheader", "--parsable2", f"--starttime={since}",
                    "--format=JobID,State,NodeList,JobName")  # fmt: skip
    except RunError:
        return {}
    states = {}
    for job_id, state, nodes, name in _rows(text, 4):
        _, _, index = job_id.partition("_")
        if index.isdecimal() and (place := task_number(name, int(index))) and place[0] in wanted:
            states[place] = EndedJob(job_id, state.split(" ")[0], "" if "None" in nodes else nodes)
    return states


def cancel(submissions: Collection[str], others: Collection[str], users: Collection[int]) -> int:
    """End all jobs of submissions, and those of other names; returns how many of the first there were.

    Raises:
        RunError: some of them are still in the queue.
    """
    found: set[str] = set()
    for _ in range(_NUM_CANCELS):
        waiting = [job for job in read_queue(users) if job.submission in submissions and job.state != "CG"]
        found |= {job.job_id for job in waiting}
        job_ids = {job.job_id.partition("_")[0] for job in waiting} | find_by_name(others, users)
        if not job_ids:
            return len(found)
        refusal = scancel(sorted(job_ids))
    raise RunError(f"{len(waiting)} jobs are still in the queue: {refusal or 'scancel ended none of them'}")


def scancel(job_ids: Sequence[str]) -> str:
    """Returns what scancel found wrong: that a job has just ended, or belongs to another user."""
    done = ask("scancel", *job_ids) if job_ids else None
    return f"scancel failed: {words_of(done)}" if done and done.returncode else ""


def look_up(name: str) -> list[str]:
    """The numbers of this user's jobs of a name, ended ones too, the oldest first; [] if none comes for a while."""
    for look in range(_NUM_LOOKS):
        time.sleep(_LOOK_S if look else 0)
        if found := find_by_name([name], [os.getuid()], "--states=all"):
            return sorted(found, key=int)
    return []


def find_by_name(names: Collection[str], users: Collection[int], *options: str) -> set[str]:
    """Look up the jobs of these names that have not ended, and those whose states ``options`` add."""
    text = call("squeue", _of(users), "--all", "--noheader", "--format=%F|%t|%j", *options)
    return {job_id for job_id, state, name in _rows(text, 3) if name in names and (options or state != "CG")}


def _rows(text: str, num_columns: int) -> Iterator[list[str]]:
    """The lines of a table; what a site's own script prints beside it is passed over."""
    rows = (line.split("|", num_columns - 1) for line in text.splitlines())
    return (row for row in rows if len(row) == num_columns)


def hides_jobs() -> bool:
    """Whether this cluster shows users no jobs but their own."""
    return "jobs" in _setting("PrivateData").split(",")


def max_array_size() -> int:
    """How many jobs one array may have on this cluster."""
    return int(_setting("MaxArraySize") or 1001)  # SLURM's default


def _setting(name: str) -> str:
    """Read a setting of the cluster; "" if it is not set."""
    found = re.search(rf"^{name}[ \t]*=[ \t]*(\S*)", call("scontrol", "show", "config"), re.MULTILINE)
    return found[1] if found else ""


def list_gres() -> str:
    """List what each partition offers, such as ``gpu gpu:h100:4``; "" where SLURM does not say."""
    return ", ".join(dict.fromkeys(ask("sinfo", "--noheader", "--format=%R %G").stdout.splitlines()))


def wait_for_nodes() -> bool:
    """Wait for nodes that a controller which has just started does not know yet; returns whether there were any."""
    give_up_at, has_waited = time.monotonic() + _NODES_TIMEOUT_S, False
    with contextlib.suppress(RunError):
        while "unk" in call("sinfo", "--noheader", "--format=%t") and time.monotonic() < give_up_at:
            has_waited = True
            time.sleep(_NODES_LOOK_S)
    return has_waited


def exclude(job_id: str, nodes: Sequence[str]) -> None:
    """Keep a job that waits off these nodes, and no others."""
    call("scontrol", "update", f"JobId={job_id}", f"ExcNodeList={','.join(nodes)}")


def exclude_from_all(submission: str, node: str) -> None:
    """Keep all jobs of a submission that wait off one more node."""
    text = call("squeue", "--me", "--all", "--noheader", "--states=PD", "--format=%i|%x|%j")
    for job_id, excluded, name in _rows(text, 3):
        known = [] if excluded in ("", "(null)") else [excluded]
        if (place := task_number(name, 0)) and place[0] == submission and node not in _hosts(known):
            exclude(re.sub(r"%\d+", "", job_id), [*known, node])


def leaves_nodes(excluded: Sequence[str]) -> bool:
    """Whether the partition of this job has any node beside these."""
    partition = os.environ.get("SLURM_JOB_PARTITION")
    with contextlib.suppress(RunError):
        which = ["--partition", partition] if partition else []
        nodes = set(call("sinfo", "--noheader", "--Node", "--format=%N", *which).split())
        return not nodes or bool(nodes - _hosts(excluded))
    return True


def _hosts(nodes: Sequence[str]) -> set[str]:
    """Spell lists such as node[1-3] out."""
    return set(call("scontrol", "show", "hostnames", ",".join(nodes)).split()) if nodes else set()
