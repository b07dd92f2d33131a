"""``convolutional-prior evaluate``: saved weights, of a run or of timm's, on other test sets -> a table and a board.

The board is ``RUNS/leaderboards/other_sets.csv``, beside those of the suites: a line a network and test set.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from leaderboards.text.escaping import escape_cell
from leaderboards.text.notation import NOTHING
from leaderboards.text.records import render_records
from suite.base.arguments import a_path, program
from suite.base.endings import ends_in_message
from suite.base.errors import DataError
from suite.base.exit_codes import Exit
from suite.base.files import locked_folder, read_file, write_atomically
from suite.base.reading import unreadable
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.store.run_store import experiments_folder

_KEY = ("network", "source", "part")
COLUMNS = (*_KEY, "classes", "images", "top1_percent", "top5_percent", "test_loss", "own_top1_percent")


@ends_in_message
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit status: 0, 1 for what cannot be read, 2 for misuse."""
    parser = argparse.ArgumentParser(
        prog=program("evaluate", "launchers/evaluate.py"),
        description="Test saved weights on other test sets: CIFAR-10.1, CIFAR-10-C, ImageNet-V2, -C, -R, -ReaL.",
    )
    add = parser.add_argument
    add("run", metavar="RUN", help="a finished run's folder, or its id in the store; or timm:NAME")
    add("--source", type=a_path, required=True, metavar="FILE", help="the test set: a .npy or .json file, or a folder")
    add("--images", type=a_path, metavar="DIR", help="with a .json: ImageNet's validation images")
    add("--weights", type=a_path, metavar="FILE", help="with timm:NAME: its published weights")
    add("--runs", type=a_path, default=Path("runs"), metavar="DIR", help="run store (default: runs)")
    add("--data-dir", type=a_path, metavar="DIR", help="where image sets are kept, as grid.py takes it")
    add("--device", choices=["cpu", "gpu"], default="cpu", help="where to compute (default: cpu)")
    add("--json", action="store_true", help="answer as JSON alone on standard output")
    options = parser.parse_args(arguments)
    if options.run.startswith("timm:") != (options.weights is not None):
        parser.error("timm:NAME goes with --weights FILE, and with it alone")
    lines = _evaluate(options)
    board = options.runs / "leaderboards" / "other_sets.csv"
    if options.json:
        print(json.dumps(lines, indent=1))
    else:
        _print_table(lines)
    _write_board(board, lines)
    if not options.json:
        print(f"Board: {board}")
    return Exit.DONE


def _print_table(lines: Sequence[dict[str, object]]) -> None:
    headings = (name.replace("_percent", " %").replace("_", " ") for name in COLUMNS[1:])
    table = Table(*headings, box=box.SIMPLE_HEAD, title=str(lines[0]["network"]))
    for line in lines:
        cells = (NOTHING if one is None else one for one in list(line.values())[1:])
        table.add_row(*(f"{one:.2f}" if isinstance(one, float) else str(one) for one in cells))
    Console().print(table)


def _evaluate(options: argparse.Namespace) -> list[dict[str, object]]:
    from suite.evaluation import open_run, open_timm, read_sources
    from suite.training import distributed

    path = experiments_folder(options.runs) / options.run
    run = RunDirectory(path if path.is_dir() else Path(options.run))
    tested = open_timm(options.run, options.weights) if options.weights else open_run(run, options.data_dir)
    ranks, lines = distributed.start(Resources(device=options.device)), []
    tested.network.to(ranks.device)
    source = "/".join(options.source.resolve().parts[-2:])  # sets have folders of the same names, such as val
    for one in read_sources(options.source, tested.classes, options.images):
        line: dict[str, object] = {"network": tested.name, "source": source, "part": one.part}
        line |= {"classes": len(one.among or tested.classes), **tested.evaluate(one, ranks)}
        lines.append(line | {"own_top1_percent": tested.own_top1_percent})
    distributed.stop()
    if not lines:
        raise DataError(f"{options.source} holds no test set")
    return lines


def _write_board(path: Path, lines: Sequence[dict[str, object]]) -> None:
    """Write the board, with these lines in the place of earlier ones of the same networks and test sets."""
    with locked_folder(path.parent):
        before = _read_board(path) if path.exists() else []
        found = {tuple(str(escape_cell(line[name])) for name in _KEY): line for line in (*before, *lines)}
        write_atomically(path, render_records(COLUMNS, [found[key] for key in sorted(found)]).encode())


def _read_board(path: Path) -> list[dict[str, object]]:
    try:
        header, *lines = list(csv.reader(read_file(path).decode().splitlines(keepends=True))) or [[]]
        if header != list(COLUMNS):
            raise ValueError(f"it begins with {','.join(header)!r}, expected {','.join(COLUMNS)!r}")
        return [dict(zip(COLUMNS, line, strict=True)) for line in lines]
    except (OSError, ValueError, csv.Error) as error:
        raise unreadable(path, error, "Move it away, and evaluate again: nothing was added to it.") from error


if __name__ == "__main__":
    sys.exit(main())
