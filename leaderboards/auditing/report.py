"""A verification -> tables for the terminal. Whatever others have written is spelt, and steers no terminal."""

from rich.console import Console
from rich.table import Column, Table

from leaderboards.auditing.comparison import TOLERANCES
from leaderboards.auditing.record_checks import PARTS
from leaderboards.schemas.verification import PASSED, CheckedPart, Verification
from leaderboards.text.escaping import spell_controls

_MOST_SHOWN = 5  # problems of a part, as an old form breaks them all


def print_checks(checks: tuple[CheckedPart, ...], console: Console) -> None:
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


def print_sample(found: Verification, console: Console) -> None:
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
