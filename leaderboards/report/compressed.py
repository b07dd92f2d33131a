"""Contents that a page carries along: pictures that it shows as they are, the others compressed for its scripts."""

import base64
import gzip
import io
import json
import re
from collections.abc import Mapping
from urllib.parse import quote

from markupsafe import Markup

from leaderboards.text.escaping import spell_controls

SVG = "data:image/svg+xml,"
_LARGE, _COLORS = 64_000, 64  # characters of an SVG, from which on it is a PNG; of how many colours
_ELEMENT = 80  # bytes of the HTML element around a content
_SHORTER = (  # what Matplotlib's SVG says at more length than a screen or a printer needs
    (r"<metadata>.*?</metadata>|<!--.*?-->|^.*?(?=<svg)", ""),
    (r"(?<![\d.])[1-9]\d*\.\d{2,}", lambda number: f"{float(number[0]):.1f}"),
    (r'transform="translate\(([-\d.]+) 0\)"', r'x="\1"'),
    (r"\s+", " "),
    (r"> <", "><"),
    (r"([:;]) ", r"\1"),
    (r" ?([MLCQz]) (?=[-\d\"])", r"\1"),
    (r'"', "'"),
)


def compress(content: bytes) -> str:
    """Compress to base64; the same content makes the same text."""
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()


def keep_within(num_bytes: int, texts: Mapping[str, str]) -> dict[str, str]:
    """The texts that fit together into ``num_bytes``, with their elements, the first ones first."""
    kept = {}
    for name, text in texts.items():
        size = len(text) + len(name) + _ELEMENT
        if size <= num_bytes:
            num_bytes -= size
            kept[name] = text
    return kept


def as_source(svg: bytes, png: bytes | None = None) -> Markup:
    """Write Matplotlib's SVG as the address of an image that a page shows without a script, a network or a file; of a
    large one, such as many maps, the PNG in few colours."""
    text, ids = shorten(svg.decode()), dict[str, str]()
    for name in re.findall(r"(?:href='|url\()#([\w.-]+)", text):
        ids.setdefault(name, f"i{len(ids):x}")
    text = re.sub(r" id='([\w.-]+)'", lambda at: f" id='{ids[at[1]]}'" if at[1] in ids else "", text)
    text = re.sub(r"(href='|url\()#([\w.-]+)", lambda at: f"{at[1]}#{ids[at[2]]}", text)
    text = re.sub(r"<g>((<(path|use)[^>]*/>)*)</g>", r"\1", text)
    source = SVG + quote(text, safe=" '=:/<>;,.()+-")
    return Markup(source if png is None or len(source) < _LARGE else f"data:image/png;base64,{_reduce(png)}")


def shorten(svg: str) -> str:
    """The same picture of Matplotlib's in fewer characters, to a tenth of a pixel."""
    for pattern, shorter in _SHORTER:
        svg = re.sub(pattern, shorter, svg, flags=re.DOTALL)
    return svg


def _reduce(png: bytes) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(_COLORS).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


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
