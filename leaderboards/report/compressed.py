"""Contents that a page carries along: compressed within the HTML, unpacked by the browser when they are asked for."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping

from leaderboards.text.escaping import spell_controls

_ELEMENT = 80  # bytes around a parcel in the HTML


def pack(content: bytes) -> str:
    """Compress to base64; the same bytes for the same content."""
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()


def pack_within(num_bytes: int, contents: Mapping[str, bytes]) -> dict[str, str]:
    """Pack the contents that fit together, the first ones first; the others are left out.

    Args:
        num_bytes: of the page that are left, also for the element around each.
        contents: by the names under which the page's scripts find them.
    """
    packed = {}
    for name, content in contents.items():
        parcel = pack(content)
        size = len(parcel) + len(name) + _ELEMENT
        if size <= num_bytes:
            num_bytes -= size
            packed[name] = parcel
    return packed


def as_json(data: object) -> bytes:
    """Write data as JSON, with what would steer a terminal or turn text around spelt out."""
    return json.dumps(spelt(data), allow_nan=False, separators=(",", ":")).encode()


def spelt(data: object) -> object:
    """The same data with harmless texts."""
    if isinstance(data, str):
        return spell_controls(data)
    if isinstance(data, Mapping):
        return {spell_controls(str(name)): spelt(value) for name, value in data.items()}
    return [spelt(value) for value in data] if isinstance(data, (list, tuple)) else data
