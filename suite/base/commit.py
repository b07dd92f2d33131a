"""Which code this is: the project's git commit, for the record of a run and of the code that a submission pins."""

import base64
import contextlib
import functools
import hashlib
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from pathlib import Path

PINNED = "COMMIT"  # beside the packages of a copy that is no checkout


@functools.cache
def commit() -> str:
    """The project's git commit, with "+changes" where the working tree differs; of an installed wheel its version.

    "unknown" is a copy of the project without git, which anybody may have changed, and a checkout that git cannot read.

    It is read once, as this process starts its run: what is committed while that trains is not the code that trains it.
    """
    folder = Path(__file__).resolve().parents[2]
    if (folder / PINNED).is_file():
        return (folder / PINNED).read_text(encoding="utf-8").strip()
    if not (folder / ".git").exists():
        return _installed_version()
    # named, a folder of any owner is asked, whatever called us has set: its code is running already
    command = ["git", f"--git-dir={folder / '.git'}", f"--work-tree={folder}", "--no-optional-locks"]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        asked = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, check=True, env=ours)
        return asked.stdout.decode(errors="replace").strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", b"").decode(errors="replace").strip() or error
        print(f"results will not name their commit: git cannot tell that of {folder}: {reason}", file=sys.stderr)
        return "unknown"


def _installed_version() -> str:
    """The version, such as "v0.2.0", of the wheel whose record lists this very file, with "+changes" where a source is
    no longer as it was installed; else "unknown"."""
    with contextlib.suppress(PackageNotFoundError):
        found = distribution("convolutional-prior-suite")
        sources = [file for file in found.files or () if file.suffix == ".py" and file.hash]
        if any(Path(str(file.locate())).resolve() == Path(__file__).resolve() for file in sources):
            return f"v{found.version}" + ("" if all(map(is_as_recorded, sources)) else "+changes")
    return "unknown"


def is_as_recorded(file: PackagePath) -> bool:
    """Whether an installed file has the hash that it was installed with, where one was recorded."""
    path = Path(str(file.locate()))
    if not path.is_file():
        return False
    if file.hash is None:
        return True
    found = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, path.read_bytes()).digest())
    return found.rstrip(b"=").decode() == file.hash.value
