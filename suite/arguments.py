"""Types of arguments that several command lines share, and how a command is called."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

COMMAND = "convolutional-prior"


def positive(text: str) -> int:
    """A whole number of at least 1, as ``argparse`` wants its types.

    Raises:
        ArgumentTypeError: for any other text.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number of at least 1")
    return int(text)


def program(subcommand: str, script: str) -> str:
    """Return what the user typed to get here: a subcommand of the installed command, or a script of the checkout."""
    return f"{COMMAND} {subcommand}" if Path(sys.argv[0]).name == COMMAND else script
