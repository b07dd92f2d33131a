"""The journal of a conversion: which portions of the samples are done, so that a killed one goes on.

A portion is noted here only once all that it wrote is on the disk, and a conversion with other settings starts over.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from imagesets.fetch.storage import write_file
from imagesets.formats.sinks import Finished, Portion
from suite.base.reading import read_model, read_object

SETTINGS = "settings.json"


class Journal:
    """The notes in a working folder.

    Attributes:
        ready: the folder below it that becomes the prepared one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.ready = folder, folder / "ready"

    def open(self, settings: dict[str, Any]) -> str | None:
        """Start, or go on if all settings are the same. Returns the settings that made it drop earlier work, if any."""
        path, text, changed = self.folder / SETTINGS, json.dumps(settings, indent=1), None
        if self.folder.exists():
            try:
                earlier = read_object(path.read_bytes())
            except (OSError, ValueError):
                earlier = {}
            if earlier == json.loads(text):
                return None
            changed = ", ".join(key for key in earlier if earlier[key] != settings.get(key)) or None
            shutil.rmtree(self.folder)
        self.ready.mkdir(parents=True)
        write_file(path, text.encode())
        return changed

    def read(self, portion: Portion) -> Finished | None:
        """A portion's note; None where it is not done."""
        try:
            return read_model(Finished, self._path(portion).read_bytes())
        except (OSError, ValueError):
            return None

    def write(self, portion: Portion, finished: Finished) -> None:
        write_file(self._path(portion), finished.model_dump_json().encode())

    def _path(self, portion: Portion) -> Path:
        return self.folder / f"{portion.stem}.json"
