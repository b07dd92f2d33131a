"""The JavaScript that draws the charts: Vega, Vega-Lite and vega-embed, as vl-convert bundles them, without a network.

It was chosen among what the package index has whole: 0.9 MB, 0.3 compressed, where Plotly's takes 4.5; a chart is data
that Python writes without calls of a library, and the same data make the PDF. Bundling takes seconds, so it is kept.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import importlib.metadata
import zlib
from pathlib import Path

from suite.base.errors import RunError
from suite.base.files import cache_folder, write_atomically

_NAMES = "window.vegaEmbed = vegaEmbed;"


@functools.cache
def charts_library() -> bytes:
    """The library, compressed; made once for each version of vl-convert."""
    path = _cached_path()
    try:
        found = path.read_bytes()
        gzip.decompress(found)  # its checksum tells a damaged file
        return found
    except (OSError, EOFError, zlib.error):
        pass
    import vl_convert

    made = gzip.compress(vl_convert.javascript_bundle(_NAMES).encode(), compresslevel=9, mtime=0)
    _keep(path, made)
    return made


def _cached_path() -> Path:
    named = f"{importlib.metadata.version('vl-convert-python')} {_NAMES}"
    return cache_folder("suite-report") / f"charts-{hashlib.sha256(named.encode()).hexdigest()[:16]}.js.gz"


def _keep(path: Path, content: bytes) -> None:
    with contextlib.suppress(OSError, RunError):  # a folder that may not be written to costs seconds the next time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
