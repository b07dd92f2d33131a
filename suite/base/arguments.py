"""Types of arguments that several command lines share, and how a command is called."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

COMMAND = "convolutional-prior"

_MAX_DIGITS = 100
MAX_SEEDS = 10_000  # of one grid: each has experiments of its own, which are all made at once


def num_seeds(text: str) -> int:
    """Read a number of seeds as a type of ``argparse``: at least 1, and no more than a grid can have."""
    number = positive(text)
    if number > MAX_SEEDS:
        raise argparse.ArgumentTypeError(f"found {text}, expected at most {MAX_SEEDS} seeds")
    return number


def some_seeds(text: str) -> range:
    """Read seeds as a type of ``argparse``: a number of them, from 0 on, or the first and the last, as in 8-19."""
    first, dash, last = text.partition("-")
    if not dash:
        return range(num_seeds(text))
    if not (first.isdecimal() and last.isdecimal() and len(text) <= _MAX_DIGITS and int(first) <= int(last) < 2**31):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number of seeds, or FIRST-LAST such as 8-19")
    num_seeds(str(int(last) - int(first) + 1))
    return range(int(first), int(last) + 1)


def spell_seeds(seeds: Sequence[int]) -> str:
    """Spell seeds without a gap as ``some_seeds`` reads them."""
    return str(len(seeds)) if min(seeds) == 0 else f"{min(seeds)}-{max(seeds)}"


def positive(text: str) -> int:
    """Read a whole number of at least 1 as a type of ``argparse``."""
    if not text.isdecimal() or len(text) > _MAX_DIGITS or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number of at least 1")
    return int(text)


def a_path(text: str) -> Path:
    """Read a path that can be written down as a type of ``argparse``; the shell leaves ``~`` as it is in
    ``--data-dir=~/images``."""
    if text.encode(errors="ignore").decode() != text:
        expected = f"expected text in {sys.getfilesystemencoding()}: rename it, or set LC_ALL=C.UTF-8"
        raise argparse.ArgumentTypeError(f"found {text!r}, {expected}")
    return Path(os.path.expanduser(text))  # noqa: PTH111  # pathlib's raises for a user that is not there


def program(subcommand: str, script: str) -> str:
    """Return what the user typed to get here: a subcommand of the installed command, or a script of the checkout."""
    return f"{COMMAND} {subcommand}" if Path(sys.argv[0]).name == COMMAND else script


def add_version(parser: argparse.ArgumentParser) -> None:
    """Let ``--version`` print the installed version and end the program."""
    told = f"{COMMAND} {version('convolutional-prior-suite')}"
    parser.add_argument("--version", action="version", version=told, help="show the installed version")
