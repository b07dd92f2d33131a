"""Where a run stands, decided here alone: plan, pool, jobs, status and leaderboards all ask ``read_run_status``.

    a run's files, and the statuses of the runs that it depends on -> RunStatus(state, reason, waits_for)

SLURM and the local pool only refine what is open here: "pending", "requeued", "in another grid". No torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from suite.base.errors import KeptRecordError, RecordError
from suite.spec.experiment import Experiment
from suite.store.results import PROTOCOL_VERSION, Result, why_void
from suite.store.run_directory import RunDirectory

State = Literal["new", "interrupted", "waiting", "blocked", "running", "failed", "void", "done"]


@dataclass(frozen=True)
class RunStatus:
    """How far a run has come.

    ``state`` is one of

    - ``new``: nothing was done yet; ``interrupted``: begun, goes on from its newest checkpoint. Both can start at once.
    - ``waiting`` for ``waits_for``, the ids of runs that it depends on; ``blocked``: one of these cannot be had.
    - ``running``: a process has locked it.
    - ``failed``: ended by an error, or with a record that cannot be read; only a retry starts it again.
    - ``void``: has a result that no longer holds; only a retry trains it again.
    - ``done``: has a result that holds.

    ``reason`` says why it is not done, or what to know of a result; ``path`` is the file to open next, if any;
    ``result`` is there for ``done`` and ``void``.
    """

    state: State
    reason: str = ""
    waits_for: tuple[str, ...] = ()
    path: Path | None = None
    result: Result | None = None

    @property
    def is_open(self) -> bool:
        """Whether it may still be trained without a retry, now or later."""
        return self.state in ("new", "interrupted", "waiting", "running")


NEW = RunStatus("new")


def name_state(state: str) -> str:
    """The words for a state, wherever people read it."""
    return "not counted" if state == "void" else state


def read_run_status(run: RunDirectory, parents: Mapping[str, RunStatus], *, is_ours: bool = False) -> RunStatus:
    """Judge where a run stands, whose directory need not exist, by its files and the runs that it depends on, by id.

    ``is_ours``: whether this process has locked the run, so that its lock says nothing.
    """
    own = _by_its_files(run, is_ours)
    if own.result is not None:
        return _with_taken_over(own, own.result, parents)
    return with_needed(own, parents)


def find_run_status(run: RunDirectory, experiment: Experiment, *, is_ours: bool = False) -> RunStatus:
    """Judge as ``read_run_status``, and look the runs up that this one depends on."""
    parents = {parent.id: find_run_status(run.of_parent(parent), parent) for parent in experiment.parents}
    return read_run_status(run, parents, is_ours=is_ours)


def after_retry(run: RunDirectory, status: RunStatus, parents: Mapping[str, RunStatus]) -> RunStatus:
    """Judge where a run would stand if ``--retry-failed`` reopened it and its parents. Changes nothing."""
    return status if status.state in ("done", "running") else with_needed(_open(run), parents)


def _with_taken_over(status: RunStatus, result: Result, parents: Mapping[str, RunStatus]) -> RunStatus:
    """Judge a finished run by the one that it took over: void if that is, with a remark if that has no result."""
    taken = result.parent or (next(iter(parents)) if len(parents) == 1 else "")
    if not taken or status.state == "void":
        return status
    parent = parents.get(taken, NEW)
    if parent.state == "void":
        return replace(status, state="void", reason=f"took over {taken}, which is void: {parent.reason}")
    if parent.state == "done":
        return status
    return replace(status, reason=f"took over {taken}, which is {parent.state} in this store")


def with_needed(status: RunStatus, parents: Mapping[str, RunStatus]) -> RunStatus:
    """Judge a run that could start by the runs that it needs first, and say what it needs, down to the run that can be
    looked at: "needs A, which needs B, which failed"."""
    missing = {name: parent for name, parent in parents.items() if parent.state != "done"}
    if status.state not in ("new", "interrupted") or not missing:
        return status
    hopeless = [name for name, parent in missing.items() if parent.state in ("failed", "void", "blocked")]
    name = (hopeless or list(missing))[0]
    parent = missing[name]
    how = parent.reason if parent.state in ("waiting", "blocked") else f"is {parent.state}"
    how = f"failed: {parent.reason}" if parent.state == "failed" else how
    state: State = "blocked" if hopeless else "waiting"
    return replace(status, state=state, reason=f"needs {name}, which {how}", waits_for=tuple(missing))


def reopen(run: RunDirectory, status: RunStatus) -> None:
    """Let the next attempt start: drop the failure, and set a result aside that is void or broken.

    A run that is trained, or has got another result, since ``status`` was read is left alone: another grid has reopened
    it. KeptRecordError for a result that may well be right.
    """
    if status.state not in ("failed", "void"):
        return
    with run.claim() as is_ours:
        if is_ours and _read_unless_broken(run) == status.result:
            run.set_result_aside(".json.void" if status.state == "void" else ".json.corrupt")
            run.failure_path.unlink(missing_ok=True)


def _read_unless_broken(run: RunDirectory) -> Result | None:
    try:
        result = run.read_result()
    except KeptRecordError:
        raise
    except RecordError:
        return None
    if result is not None and result.protocol_version > PROTOCOL_VERSION:
        raise KeptRecordError(f"{run.result_path} is to be kept: {why_void(result.protocol_version)}")
    return result


def _by_its_files(run: RunDirectory, is_ours: bool) -> RunStatus:
    try:
        result = run.read_result()
        failure = None if result is not None else run.read_failure()
    except RecordError as error:
        return RunStatus("failed", str(error), path=run.result_path if run.result_path.exists() else run.failure_path)
    if result is not None:
        if reason := why_void(result.protocol_version):
            return RunStatus("void", reason, path=run.result_path, result=result)
        return RunStatus("done", result=result)
    if not is_ours and run.is_claimed():
        return RunStatus("running")
    if failure is not None and failure.kind == "error":
        return RunStatus("failed", failure.reason, path=Path(failure.log_path))
    found = _open(run)
    return found if failure is None else replace(found, reason=failure.reason, path=Path(failure.log_path))


def _open(run: RunDirectory) -> RunStatus:
    begun = run.attempts_path.exists() or run.metrics_path.exists()
    return RunStatus("interrupted") if begun else NEW
