"""The code that a submission pins: a copy of our packages in the store, from which its jobs import.

    suite, launchers, leaderboards, imagesets -> RUNS/slurm/code/<digest>/ -> PYTHONPATH of a job

Jobs may wait for days: whatever is edited, pulled or broken meanwhile, they train what was submitted. Equal code has
one copy.
"""

import hashlib
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

from launchers.slurm.submission_record import submissions_folder
from suite.base.commit import PINNED, commit
from suite.base.files import disk_error, partial_of
from suite.plugins.versions import OUR_PACKAGES


class Snapshot:
    """Our packages as they are now; ``folder`` is where jobs of this store import them from."""

    def __init__(self, store: Path) -> None:
        self._files = {name: path.read_bytes() for name, path in _list_files()}
        self._files[PINNED] = commit().encode()
        digest = hashlib.sha256()
        for name, content in sorted(self._files.items()):
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        self.folder = submissions_folder(store).absolute() / "code" / digest.hexdigest()[:16]

    def write(self) -> None:
        """Copy them into the store, unless this code is there; a RunError if the disk refuses."""
        if self.folder.is_dir():
            return
        partial = partial_of(self.folder)
        try:
            for name, content in self._files.items():
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                (partial / name).write_bytes(content)
            partial.rename(self.folder)
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if not self.folder.is_dir():  # else another grid was faster
                raise disk_error(self.folder, error) from error


def _list_files() -> Iterator[tuple[str, Path]]:
    """List the files of our packages, wherever they were imported from, by their names in the copy."""
    for package in OUR_PACKAGES:
        found = importlib.util.find_spec(package)
        for place in (found and found.submodule_search_locations) or ():
            for path in Path(place).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield f"{package}/{path.relative_to(place)}", path
