"""Contents that a page carries: compressed within the HTML, decompressed by the browser when a script asks for them."""

import base64
import gzip
import json
from collections.abc import Mapping

from leaderboards.text.escaping import spell_controls

_ELEMENT = 80  # bytes of the HTML element around a content


def compress_within(num_bytes: int, contents: Mapping[str, bytes]) -> dict[str, str]:
    """Compress to base64 the contents that fit together into ``num_bytes``, with their elements, the first ones first;
    the others are left out. The same contents make the same bytes."""
    compressed = {}
    for name, content in contents.items():
        text = base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()
        size = len(text) + len(name) + _ELEMENT
        if size <= num_bytes:
            num_bytes -= size
            compressed[name] = text
    return compressed


def as_json(data: object) -> bytes:
    """Write data as JSON, its texts without control characters."""
    return json.dumps(without_controls(data), allow_nan=False, separators=(",", ":")).encode()


def without_controls(data: object) -> object:
    """The same data with the control characters of its texts spelt out."""
    if isinstance(data, str):
        return spell_controls(data)
    if isinstance(data, Mapping):
        return {spell_controls(str(name)): without_controls(value) for name, value in data.items()}
    return [without_controls(value) for value in data] if isinstance(data, (list, tuple)) else data
