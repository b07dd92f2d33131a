"""Which code this is: the project's git commit, for the record of a run and of the code that a submission pins."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PINNED = "COMMIT"  # beside the packages of a copy that is no checkout


@functools.cache
def commit() -> str:
    """The project's git commit, with "+changes" where the working tree differs; of an installed wheel its version.

    "unknown" is a copy of the project without git, which anybody may have changed.

    It is read once, as this process starts its run: what is committed while that trains is not the code that trains it.
    """
    folder = Path(__file__).resolve().parents[1]
    if (folder / PINNED).is_file():
        return (folder / PINNED).read_text().strip()
    if not (folder / ".git").exists():
        return _installed_version(folder)

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, env={**os.environ}
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _installed_version(folder: Path) -> str:
    """The version, such as "v0.2.0", whose wheel put this package into ``folder``; else "unknown"."""
    with contextlib.suppress(PackageNotFoundError):
        found = distribution("convolutional-prior-suite")
        if Path(str(found.locate_file("suite"))).resolve() == folder / "suite":
            return f"v{found.version}"
    return "unknown"
