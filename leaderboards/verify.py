"""Check packed records, or an entry, and train a random sample of their runs again.

python leaderboards/verify.py leaderboards/published/sample_efficiency/laptop.records.tar.xz --sample 3
python leaderboards/verify.py entries/NAME --sample 3 --sandbox
"""

import suite.base.ctrl_c  # noqa: F401  # isort: skip  # before what takes a while
import argparse
import contextlib
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from leaderboards.auditing.record_checks import check_records
from leaderboards.auditing.report import print_checks, print_sample
from leaderboards.auditing.retraining import TOLERANCES, Conditions, Retraining, draw, find_odds
from leaderboards.auditing.sandbox import Limits, absolute, check_sandbox
from leaderboards.entries import check_entry, is_entry, records_of
from leaderboards.packed_records import unpacked
from leaderboards.schemas.verification import PASSED, CheckedPart, Verification
from suite.base.arguments import a_path, positive, program
from suite.base.endings import ends_in_message
from suite.base.errors import RecordError, SpecError
from suite.base.exit_codes import Exit
from suite.base.files import default_data_dir, sha256_of, write_atomically
from suite.spec.experiment import with_ancestors
from suite.store.run_directory import RunDirectory
from suite.store.run_store import list_runs


@dataclass(frozen=True)
class Sampling:
    """How many runs are trained again, and how; none where ``number`` is 0."""

    number: int
    seed: int
    conditions: Conditions
    is_trusted: bool = False
    folder: Path | None = None  # that is left with the runs' files; None: nothing is left


def verify(target: Path, sampling: Sampling, console: Console) -> Verification:
    """Check packed records or an entry's folder, and print what was found; no run is trained unless all is sound.

    Raises:
        SpecError: The sample is larger than the pack, or would run a stranger's model without a sandbox.
        RunError: There is no sandbox here, or no place to unpack or train.
    """
    entry = [check_entry(target)] if is_entry(target) else []
    packed = records_of(target) if entry else target
    if not packed.is_file():
        raise SpecError(f"{packed} is no file of records: name one that build.py --pack wrote, or an entry's folder")
    with contextlib.ExitStack() as stack:
        runs: list[RunDirectory] = []
        try:
            store = stack.enter_context(unpacked(packed))
            runs, checks = list(list_runs(store)), (*entry, *check_records(store))
        except RecordError as error:
            checks = (*entry, CheckedPart(part="records", num_checked=1, problems=(str(error),)))
        print_checks(checks, console)
        found = Verification(
            records=str(packed),
            records_sha256=sha256_of(packed),
            entry=target.name if entry else "",
            num_runs=len(runs),
            is_sound=not any(check.problems for check in checks),
            checks=checks,
            tolerances=TOLERANCES,
        )
        if sampling.number and found.is_sound:
            found = _train_sample(found, store, runs, sampling, console)
        elif sampling.number:
            console.print("No run is trained again before that is mended.")
        print_sample(found, console)
    return found


def _train_sample(
    found: Verification, store: Path, runs: Sequence[RunDirectory], sampling: Sampling, console: Console
) -> Verification:
    experiments = with_ancestors(run.read_experiment() for run in runs)
    strangers = {one.model for one in experiments if one.model_source}
    if strangers and not (sampling.conditions.is_sandboxed or sampling.is_trusted):
        raise SpecError(
            f"these records hold programs of others, the models {', '.join(sorted(strangers))}: train them by "
            "--sandbox, or read them and say --trust"
        )
    drawn = draw(runs, min(sampling.number, len(runs)), sampling.seed)
    seconds = sum(result.train_s for run in drawn if (result := run.read_result()))
    size = f"{len(drawn)} of {len(runs)} runs again, which took {seconds / 60:.1f} minutes, and those they start from"
    console.print(f"Training {size}; --seed {sampling.seed} draws the same.", soft_wrap=True)
    with _folder(sampling.folder) as folder:
        if sampling.conditions.is_sandboxed:
            (folder / "tried").mkdir()
            check_sandbox(folder / "tried")
        retraining = Retraining(store, folder, sampling.conditions)
        sample = tuple(map(retraining.recompute, drawn))
    return found.model_copy(
        update={
            "is_sound": all(run.outcome in PASSED for run in sample),
            "sample_seed": sampling.seed,
            "sample": sample,
            "odds": find_odds(len(drawn), len(runs)),
        }
    )


@contextlib.contextmanager
def _folder(chosen: Path | None) -> Iterator[Path]:
    """Make the folder that runs are trained in: empty, so that no run there is taken for one trained again."""
    if chosen is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    chosen.mkdir(parents=True, exist_ok=True)
    if any(chosen.iterdir()):
        raise SpecError(f"--runs {chosen} is not empty: name a new folder, as runs are trained again from nothing")
    yield absolute(chosen)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program("verify", "verify.py"),
        description="Check packed records, or an entry, and train a random sample of their runs again.",
    )
    add = parser.add_argument
    add("target", type=a_path, metavar="PACK", help="a file that build.py --pack wrote, or an entry's folder")
    add("--sample", type=positive, metavar="N", help="train N runs again, drawn at random (default: none)")
    add("--seed", type=positive, metavar="S", help="draw the sample by this seed (default: a random one)")
    add("--report", type=a_path, metavar="FILE", help="write what was found as JSON")
    add("--runs", type=a_path, metavar="DIR", help="train in this new folder, and leave it (default: a temporary one)")
    add("--data-dir", type=a_path, metavar="DIR", help="folder of the images (default: $IMAGESETS_DIR, or the cache's)")
    add("--device", choices=("cpu", "gpu"), help="train on it (default: as each run was trained; in a sandbox cpu)")
    add("--minutes", type=positive, default=60, metavar="N", help="end a run after so many minutes (default: 60)")
    add("--memory-gb", type=positive, default=16, metavar="N", help="memory of a process in the sandbox (default: 16)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--sandbox", action="store_true", help="train by bubblewrap without network and secrets, limited")
    how.add_argument("--trust", action="store_true", help="train custom models without a sandbox: you have read them")
    return parser.parse_args(arguments)


@ends_in_message
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line: 0 if all is sound, 1 if not, 2 if the command line is wrong."""
    args = _parse(arguments)
    conditions = Conditions(
        limits=Limits(minutes=args.minutes, memory_gb=args.memory_gb),
        data_dir=absolute(args.data_dir or default_data_dir()),
        is_sandboxed=args.sandbox,
        device="cpu" if args.sandbox else args.device,
    )
    sampling = Sampling(args.sample or 0, args.seed or secrets.randbelow(10**6) + 1, conditions, args.trust, args.runs)
    console = Console(highlight=False, markup=False)
    found = verify(args.target, sampling, console)
    if args.report:
        write_atomically(args.report, f"{found.model_dump_json(indent=1)}\n".encode())
    console.print("Sound." if found.is_sound else "NOT sound.", style="" if found.is_sound else "bold red")
    return Exit.DONE if found.is_sound else Exit.FAILED


if __name__ == "__main__":
    sys.exit(main())
