"""Contents that a page carries along: compressed within the HTML, unpacked by the browser when they are asked for."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from leaderboards.escaping import spell_controls


def pack(content: bytes) -> str:
    """Compress to base64; the same bytes for the same content."""
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()


@dataclass
class Parcels:
    """The packed contents of one page by name, and what may no longer be added to it."""

    budget: int  # bytes of base64 that are left
    contents: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def add(self, name: str, content: bytes) -> bool:
        """Take a content along, unless that would make the page too large."""
        packed = pack(content)
        if len(packed) > self.budget:
            self.left_out.append(name)
            return False
        self.budget -= len(packed)
        self.contents[name] = packed
        return True

    def add_data(self, name: str, data: object) -> bool:
        """Take data along as JSON, with what would steer a terminal or turn text around spelt out."""
        return self.add(name, json.dumps(spelt(data), allow_nan=False, separators=(",", ":")).encode())


def spelt(data: object) -> object:
    """The same data with harmless texts."""
    if isinstance(data, str):
        return spell_controls(data)
    if isinstance(data, Mapping):
        return {spell_controls(str(name)): spelt(value) for name, value in data.items()}
    return [spelt(value) for value in data] if isinstance(data, (list, tuple)) else data
