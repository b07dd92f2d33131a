"""Check packed records, or an entry, and train a random sample of their runs again.

python leaderboards/verify.py leaderboards/published/sample_efficiency/laptop.records.tar.xz --sample 3
python leaderboards/verify.py entries/NAME --sample 3 --sandbox
"""

import suite.base.ctrl_c  # noqa: F401  # isort: skip  # before what takes a while
import argparse
import contextlib
import random
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from leaderboards.auditing.comparison import TOLERANCES
from leaderboards.auditing.record_checks import PARTS, check_records
from leaderboards.auditing.retraining import Retraining, find_odds
from leaderboards.auditing.sandbox import Limits, absolute, check_sandbox
from leaderboards.entries import FILE, RECORDS, check_entry
from leaderboards.packed_records import unpacked
from leaderboards.schemas.verification import PASSED, CheckedPart, Verification
from leaderboards.text.escaping import spell_controls
from suite.base.arguments import a_path, positive, program
from suite.base.endings import ends_in_message
from suite.base.errors import RecordError, RunError, SpecError
from suite.base.exit_codes import Exit
from suite.base.files import default_data_dir, sha256_of, write_atomically
from suite.plugins.find_plugin import check_version
from suite.spec.experiment import Experiment, with_ancestors
from suite.store.predictions import FIRST_WITH_PREDICTIONS
from suite.store.run_directory import RunDirectory
from suite.store.run_store import list_runs

_MOST_SHOWN = 5  # problems of a part, as an old form breaks them all


def verify(target: Path, console: Console, args: argparse.Namespace | None = None) -> Verification:
    """Check packed records or an entry's folder, and print what was found.

    Args:
        target: the file of records, or the entry's folder.
        console: terminal that shows what was found.
        args: the command line, which may ask for a sample of runs; none of them is trained unless all is sound.

    Raises:
        SpecError: The target is no such file or folder, or a stranger's model would be run without a sandbox.
        RunError: A run of the sample, or the sandbox, cannot be had here.
    """
    entry = [check_entry(target)] if (target / FILE).is_file() else []
    packed = target / RECORDS if entry else target
    if not packed.is_file():
        raise SpecError(f"{packed} is no file of records: name one that build.py --pack wrote, or an entry's folder")
    with contextlib.ExitStack() as stack:
        runs: list[RunDirectory] = []
        try:
            store = stack.enter_context(unpacked(packed))
            oldest_form = FIRST_WITH_PREDICTIONS if entry else 1
            runs, checks = list(list_runs(store)), (*entry, *check_records(store, oldest_form))
        except RecordError as error:
            checks = (*entry, CheckedPart(part="records", num_checked=1, problems=(str(error),)))
        _print_checks(checks, console)
        found = Verification(
            records=str(packed),
            records_sha256=sha256_of(packed),
            entry=target.name if entry else "",
            num_runs=len(runs),
            is_sound=not any(check.problems for check in checks),
            checks=checks,
            tolerances=TOLERANCES,
        )
        if args and args.sample and found.is_sound:
            found = _train_sample(found, store, runs, args, console)
        elif args and args.sample:
            console.print("No run is trained again before that is mended.")
        _print_sample(found, console)
    return found


def _train_sample(
    found: Verification, store: Path, runs: Sequence[RunDirectory], args: argparse.Namespace, console: Console
) -> Verification:
    seed = args.seed or secrets.randbelow(10**6) + 1
    ordered = sorted(runs, key=lambda run: run.id)
    drawn = random.Random(seed).sample(ordered, min(args.sample, len(runs)))
    _check_models(with_ancestors(run.read_experiment() for run in runs), is_allowed=args.sandbox or args.trust)
    seconds = sum(result.train_s for run in drawn if (result := run.read_result()))
    size = f"{len(drawn)} of {len(runs)} runs again, which took {seconds / 60:.1f} minutes, and those they start from"
    console.print(f"Training {size}; --seed {seed} draws the same.", soft_wrap=True)
    if args.sandbox:
        check_sandbox()
        args.device = "cpu"
    data_dir, limits = absolute(args.data_dir or default_data_dir()), Limits(args.minutes, args.memory_gb)
    folder = tempfile.mkdtemp()
    try:
        retraining = Retraining(store, Path(folder), data_dir, limits, args.sandbox, args.device)
        sample = tuple(map(retraining.recompute, drawn))
    finally:  # a stranger's program may have made folders that are nested too deeply for shutil
        subprocess.run(["rm", "-rf", "--", folder], check=False)
    is_sound, odds = all(run.outcome in PASSED for run in sample), find_odds(len(drawn), len(runs))
    return found.model_copy(is_sound=is_sound, sample_seed=seed, sample=sample, odds=odds)


def _check_models(experiments: Sequence[Experiment], *, is_allowed: bool) -> None:
    """Refuse strangers' models that may not be run, or are not installed here in their version."""
    strangers = [one for one in experiments if one.model_source]
    if strangers and not is_allowed:
        names = ", ".join(sorted({one.model for one in strangers}))
        raise SpecError(
            f"these records hold programs of others, the models {names}: train them by --sandbox, or read them and say "
            "--trust"
        )
    for one in strangers:
        assert one.model_source is not None
        try:
            check_version(one.model_source)
        except SpecError as error:
            raise RunError(f"{one.id} cannot be trained again here: {error}") from error


def _print_checks(checks: tuple[CheckedPart, ...], console: Console) -> None:
    """Print each part with the number that was checked, and its problems below the table."""
    table = Table("", "checked", "problems", box=None, pad_edge=False)
    for check in checks:
        what = PARTS.get(check.part, check.part)
        style = "red" if check.problems else "" if check.num_checked else "dim"
        table.add_row(what, str(check.num_checked), str(len(check.problems)), style=style)
    console.print(table)
    for check in checks:
        for problem in check.problems[:_MOST_SHOWN]:
            console.print(spell_controls(f"{check.part}: {problem}"), style="red", soft_wrap=True)
        if (more := len(check.problems) - _MOST_SHOWN) > 0:
            console.print(f"{check.part}: {more} more", style="red")


def _print_sample(found: Verification, console: Console) -> None:
    """Print each run that was trained again beside its records, what such a sample finds, and by which tolerance."""
    if not found.sample:
        said = "No run was trained again: who alters a run and all of its files alike is only found by --sample N."
        console.print(said, soft_wrap=True)
        return
    table = Table(Column("trained again", no_wrap=True), "code", "device", "top-1", "here", "outcome", box=None)
    table.collapse_padding, table.pad_edge = True, False
    for run in found.sample:
        there, here = run.device
        device = there if here in ("", there) else f"{there}, here {here}"
        claimed, again = (f"{top1:.2f}" if top1 is not None else "-" for top1 in run.top1_percent)
        words = (run.run, run.code[:10], device, claimed, again, run.outcome)
        table.add_row(*map(spell_controls, words), style="" if run.outcome in PASSED else "red")
    console.print(table)
    for run in found.sample:
        if run.reason:
            console.print(spell_controls(f"{run.run}: {run.reason}"), style="red", soft_wrap=True)
    size = f"{len(found.sample)} of {found.num_runs} runs, drawn by seed {found.sample_seed}"
    odds = "; ".join(f"{one.num_altered} altered: {100 * one.probability:.1f} %" for one in found.odds)
    allowed = f"{TOLERANCES['top1_percent']:g} points of accuracy and {TOLERANCES['test_loss']:g} of loss"
    console.print(
        f"The sample: {size}. The probability that it holds an altered run, by their number: {odds}.\n"
        "On the same kind of processor, by the same code and torch, numbers have to be equal to the bit; "
        f"elsewhere they may be {allowed} off.",
        soft_wrap=True,
    )


@ends_in_message
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line: 0 if all is sound, 1 if not, 2 if the command line is wrong."""
    parser = argparse.ArgumentParser(
        prog=program("verify", "verify.py"),
        description="Check packed records, or an entry, and train a random sample of their runs again.",
    )
    add = parser.add_argument
    add("target", type=a_path, metavar="PACK", help="a file that build.py --pack wrote, or an entry's folder")
    add("--sample", type=positive, metavar="N", help="train N runs again, drawn at random (default: none)")
    add("--seed", type=positive, metavar="S", help="draw the sample by this seed (default: a random one)")
    add("--report", type=a_path, metavar="FILE", help="write what was found as JSON")
    add("--data-dir", type=a_path, metavar="DIR", help="folder of the images (default: $IMAGESETS_DIR, or the cache's)")
    add("--device", choices=("cpu", "gpu"), help="train on it (default: as each run was trained; in a sandbox cpu)")
    add("--minutes", type=positive, default=60, metavar="N", help="end a run after so many minutes (default: 60)")
    add("--memory-gb", type=positive, default=16, metavar="N", help="memory of a process in the sandbox (default: 16)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--sandbox", action="store_true", help="train by bubblewrap without network and secrets, limited")
    how.add_argument("--trust", action="store_true", help="train custom models without a sandbox: you have read them")
    args = parser.parse_args(arguments)
    if args.report and not args.report.parent.is_dir():
        raise SpecError(f"--report {args.report}: there is no folder {args.report.parent}")
    console = Console(highlight=False, markup=False)
    found = verify(args.target, console, args)
    if args.report:
        write_atomically(args.report, f"{found.model_dump_json(indent=1)}\n".encode())
    console.print("Sound." if found.is_sound else "NOT sound.", style="" if found.is_sound else "bold red")
    return Exit.DONE if found.is_sound else Exit.FAILED


if __name__ == "__main__":
    sys.exit(main())
