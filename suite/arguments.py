"""Types of command-line arguments that several commands take."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A whole number of at least 1, as ``argparse`` wants its types.

    Raises:
        ArgumentTypeError: for any other text.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number of at least 1")
    return int(text)
