"""Pack the runs of a store as an entry, ready for a pull request.

python leaderboards/submit.py runs --suite sample_efficiency --name my-vit --who "A. Name"
"""

import suite.base.ctrl_c  # noqa: F401  # isort: skip  # before what takes a while
import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from leaderboards.boards.board import make_leaderboard
from leaderboards.entries import FILE, RECORDS, find_entries
from leaderboards.packed_records import pack_records
from leaderboards.schemas.entry import EntryFile
from leaderboards.verify import verify
from suite.base.arguments import a_path, program
from suite.base.endings import ends_in_message
from suite.base.errors import RecordError, SpecError
from suite.base.exit_codes import Exit
from suite.base.files import write_atomically
from suite.base.reading import describe
from suite.papers import get_suite


def submit(args: argparse.Namespace, console: Console) -> Path:
    """Pack the finished runs of a suite in a store, check them, and write the entry's folder.

    Raises:
        SpecError: There is no such suite, profile or store, or the name is taken or none.
        RecordError: The store has no finished run of it, or its records are not sound.
    """
    packed = pack_records(make_leaderboard(get_suite(args.suite), args.profile, args.store))
    if not packed.num_runs:
        raise RecordError(f"{args.store} has no finished run of {args.suite} in {args.profile}: train it first")
    if packed.num_left_out:
        raise RecordError(
            f"{packed.num_left_out} finished runs of {args.store} cannot be read: mend or delete them first"
        )
    digest = hashlib.sha256(packed.content).hexdigest()
    try:
        entry = EntryFile(name=args.name, who=args.who, suite=args.suite, profile=args.profile, records_sha256=digest)
    except ValueError as error:
        raise SpecError(describe(error)) from error
    fields = entry.model_dump(mode="json").items()  # whose strings and lists TOML writes as JSON does
    lines = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields)
    told = f"`{args.name}`, by {args.who}: {packed.num_runs} runs of `{args.suite}` in `{args.profile}`.\n"
    folder: Path = args.out / args.name
    if folder.exists():
        raise SpecError(f"{folder} is there already: choose another --name, or delete it")
    if same := find_entries(args.out, digest):
        raise RecordError(f"these records are entered already, as {same[0]}")
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=args.out) as temporary:
        partial = Path(temporary, args.name)  # read_entry compares the name
        partial.mkdir()
        write_atomically(partial / RECORDS, packed.content)
        write_atomically(partial / FILE, lines.encode())
        write_atomically(partial / "README.md", told.encode())
        if not verify(partial, console).is_sound:
            raise RecordError("the records are not sound, so that nothing was written: mend the store, or train again")
        partial.rename(folder)
    return folder


@ends_in_message
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line: 0, 1 if the records are not sound, 2 if the command line is wrong."""
    parser = argparse.ArgumentParser(
        prog=program("submit", "submit.py"),
        description="Pack the runs of a store as an entry, ready for a pull request.",
    )
    add = parser.add_argument
    add("store", type=a_path, metavar="STORE", help="run store, such as runs")
    add("--suite", required=True, metavar="NAME", help="the suite whose runs are entered")
    add("--profile", default="laptop", help="its scale (default: laptop)")
    add("--name", required=True, help="name of the entry and its folder: small letters, digits, '-' and '_'")
    add("--who", required=True, metavar="NAMES", help="the people who enter it, as boards show them")
    add("--out", type=a_path, default=Path("entries"), metavar="DIR", help="folder of all entries (default: entries)")
    args = parser.parse_args(arguments)
    console = Console(highlight=False, markup=False)
    folder = submit(args, console)
    console.print(f"{folder}: commit this folder, and open a pull request with it.", soft_wrap=True)
    return Exit.DONE


if __name__ == "__main__":
    sys.exit(main())
