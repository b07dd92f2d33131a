"""``convolutional-prior``: the scripts of a checkout as the subcommands of one installed command.

Each subcommand is the very ``main`` of its script, which is imported only once it is asked for.
"""

import suite.base.ctrl_c  # noqa: F401  # isort: skip  # before what takes a while
import argparse
import importlib
import sys
from collections.abc import Sequence

from suite.base.arguments import COMMAND, add_version

COMMANDS = {  # the module whose ``main`` takes the remaining arguments, and the purpose
    "grid": ("launchers.grid", "plan a suite's grid, train what is missing, build its leaderboard"),
    "build": ("leaderboards.build", "set finished runs beside the papers' tables"),
    "verify": ("leaderboards.verify", "check packed records or an entry, and train a sample of its runs again"),
    "submit": ("leaderboards.submit", "pack the runs of a store as an entry, ready for a pull request"),
    "prepare": ("imagesets.prepare.__main__", "convert an image set for training, or check one"),
    "fetch": ("imagesets.__main__", "fetch an image set and check it"),
    "evaluate": ("launchers.evaluate", "test saved weights on other test sets than the suite's"),
    "export": ("suite.export.__main__", "write a finished run as a model folder for timm"),
    "models": ("suite.models.__main__", "list every model with its size and cost"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand that the first argument names, with all that follow it; returns its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    lines = "\n".join(f"  {name:10} {purpose}" for name, (_, purpose) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description="The benchmark suite for one question: what does a convolutional prior do for attention?",
        epilog=f"commands:\n{lines}\n\n`{COMMAND} COMMAND --help` shows the options of one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of the commands below")
    module, _ = COMMANDS[parser.parse_args(given[:1]).command]
    return int(importlib.import_module(module).main(given[1:]))


if __name__ == "__main__":
    sys.exit(main())
