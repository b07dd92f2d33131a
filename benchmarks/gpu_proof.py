"""Show on a GPU what only a GPU can show, stage by stage; started again, it goes on with what is missing.

    python benchmarks/gpu_proof.py [--minutes 9] [--stage NAME …] [--device cpu] [--work DIR] [--bundle FILE]
    python benchmarks/gpu_proof.py --list

Stages, most valuable first, stand in ``gpu_stages.py``. Each leaves ``<work>/<stage>/result.json``, its log and the
JSON files of its measurements; ``<bundle>``, written anew after each stage, holds all of them, the records of all runs
and the leaderboards, without weights and checkpoints. Unpacked into ``<work>`` on another machine, it counts there.
``--device cpu`` rehearses every stage in a small form.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import filelock
from gpu_stages import STAGES, Stage

from imagesets.fetch import ensure
from suite.base.errors import DataError
from suite.base.files import write_atomically
from suite.execute import die_with_parent

StageState = Literal["missing", "done", "stopped", "failed", "left out"]
_GRACE_S = 40.0  # that a stopped grid has for its checkpoints
_CPU_PATIENCE = 3  # a rehearsal may take so many times as long, on a CPU that others use as well
_LEAST_S = 60.0  # of training after which stopping is worth while
_BUNDLED = (".json", ".jsonl", ".txt", ".csv", ".md", ".svg", ".png", ".gz")
_NOT_BUNDLED = ("checkpoint", "whole", "killed")


@dataclass(frozen=True)
class Outcome:
    """The state of a stage so far."""

    state: StageState = "missing"
    num_tries: int = 0
    seconds: float = 0.0  # of all tries
    reason: str = ""


class Proof:
    """The stages' outcomes in a folder, on one device."""

    def __init__(self, work: Path, device: str, stages: Sequence[Stage] = STAGES) -> None:
        self.work, self.device, self.stages = work.absolute(), device, stages

    def outcome(self, stage: Stage) -> Outcome:
        try:
            return Outcome(**json.loads(self._path(stage).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):  # none yet, or cut off
            return Outcome()

    def next_stage(self, left_s: float, tried: set[str]) -> Stage | None:
        """Choose a stage that is missing, fits into the time and was tried least; of equals the most valuable one.

        What failed is tried again at the next start.
        """

        def may_start(stage: Stage) -> bool:
            state = self.outcome(stage).state
            again = stage.name not in tried or state == "stopped"
            enough = _LEAST_S + _GRACE_S if stage.goes_on else self._longest_s(stage)
            return state != "done" and again and left_s >= enough

        return min(filter(may_start, self.stages), key=lambda stage: self.outcome(stage).num_tries, default=None)

    def run(self, stage: Stage, left_s: float) -> Outcome:
        """Carry a stage out, as long as it may, and record what became of it."""
        before, started = self.outcome(stage), time.monotonic()
        folder = self._path(stage).parent
        folder.mkdir(parents=True, exist_ok=True)
        state, reason = self._carry_out(stage, folder, left_s)
        seconds = before.seconds + time.monotonic() - started
        outcome = Outcome(state, before.num_tries + 1, round(seconds, 1), reason)
        write_atomically(self._path(stage), json.dumps(asdict(outcome), indent=1).encode())
        return outcome

    def _carry_out(self, stage: Stage, folder: Path, left_s: float) -> tuple[StageState, str]:
        if self.device == "gpu" and (lacking := _find_lacking(stage)):
            return "left out", lacking
        limit_s = min(self._longest_s(stage), left_s) - _GRACE_S * stage.goes_on
        command = stage.command if self.device == "gpu" else stage.rehearsal
        code = self._start(command, folder, limit_s)
        if stage.afterwards:
            self._start(stage.afterwards, folder, 60)
        if code is None:
            return ("stopped" if stage.goes_on else "failed"), f"stopped after {limit_s:.0f} s"
        return ("done", "") if code == 0 else ("failed", f"exit status {code}; see {folder / 'log.txt'}")

    def _start(self, command: Sequence[str], folder: Path, limit_s: float) -> int | None:
        """The exit status; None for what was stopped at the limit. What it starts ends with this process, killed or
        not."""
        profile = "gpu" if self.device == "gpu" else "smoke"
        names = {"device": self.device, "out": str(folder), "runs": str(self.work / "runs"), "profile": profile}
        with (folder / "log.txt").open("ab") as log:
            filled = [word.format(**names) for word in command]
            process = subprocess.Popen(
                filled, stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent, env=_environment()
            )
            try:
                return process.wait(limit_s)
            except subprocess.TimeoutExpired:
                _stop(process)
                return None

    def _longest_s(self, stage: Stage) -> float:
        return 60 * stage.minutes * (1 if self.device == "gpu" else _CPU_PATIENCE)

    def _path(self, stage: Stage) -> Path:
        return self.work / stage.name / "result.json"

    def summary(self) -> str:
        lines = []
        for stage in self.stages:
            found = self.outcome(stage)
            lines.append(f"{found.state:9s} {found.seconds:6.0f} s  {stage.name:20s} {found.reason or stage.shows}")
        return "\n".join(lines)

    def write_bundle(self, path: Path) -> None:
        """All that is small, in one file that appears at once."""
        partial = path.with_name(f".{path.name}.partial")
        with tarfile.open(partial, "w:gz") as bundle:
            for file in sorted(self.work.rglob("*")):
                place = file.relative_to(self.work)
                if file.suffix in _BUNDLED and file.is_file() and not set(place.parts) & set(_NOT_BUNDLED):
                    bundle.add(file, place)
        partial.replace(path)


def _find_lacking(stage: Stage) -> str:
    """Why the images that a stage needs cannot be had, in a line; "" if they are there."""
    for name in stage.images:
        try:
            ensure(name)
        except DataError as error:
            return str(error).splitlines()[0]
    return ""


def _environment() -> dict[str, str]:
    root = Path(__file__).resolve().parents[1]
    here = f"{root}{os.pathsep}{root / 'datasets'}"
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": f"{here}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)  # a grid writes its checkpoints
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def work_through(proof: Proof, minutes: float, bundle: Path) -> bool:
    """Stages one after the other, as long as the time lasts; whether all that was tried has gone well."""
    ends, tried = time.monotonic() + 60 * minutes, set[str]()
    while (stage := proof.next_stage(ends - time.monotonic(), tried)) is not None:
        print(f"{stage.name}: {stage.shows}", flush=True)
        tried.add(stage.name)
        outcome = proof.run(stage, ends - time.monotonic())
        print(f"  {outcome.state} after {outcome.seconds:.0f} s {outcome.reason}", flush=True)
        proof.write_bundle(bundle)
    return all(proof.outcome(stage).state != "failed" for stage in proof.stages if stage.name in tried)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 1 where a stage has failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu", help="cpu: a rehearsal in a small form")
    parser.add_argument("--minutes", type=float, default=9.0, help="when to stop starting stages (default 9)")
    parser.add_argument(
        "--stage",
        nargs="+",
        choices=[s.name for s in STAGES],
        metavar="NAME",
        help="these alone, also if they are done",
    )
    parser.add_argument("--list", action="store_true", help="show all stages and where they stand; start nothing")
    parser.add_argument("--work", type=Path, help="folder of stages and runs (default: runs/gpu-proof-<device>)")
    parser.add_argument("--bundle", type=Path, help="what to take home (default: <work>.tar.gz)")
    options = parser.parse_args(arguments)
    work = options.work or Path("runs") / f"gpu-proof-{options.device}"
    proof = Proof(work, options.device, [s for s in STAGES if not options.stage or s.name in options.stage])
    if options.list:
        print(proof.summary())
        return 0
    work.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(work / "lock", timeout=5):
        if options.stage:
            for name in options.stage:
                (work / name / "result.json").unlink(missing_ok=True)
        well = work_through(proof, options.minutes, options.bundle or work.with_name(f"{work.name}.tar.gz"))
    print(proof.summary())
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
