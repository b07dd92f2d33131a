"""The JavaScript that draws the charts: Vega, Vega-Lite and vega-embed, as vl-convert bundles them, without a network.

It has 0.9 MB, 0.3 compressed, where Plotly's has 4.5, and a chart is data that Python writes without a library.
Bundling takes seconds, so the bundle is cached.
"""

import contextlib
import functools
import gzip
import hashlib
import importlib.metadata
import zlib

from suite.base.errors import RunError
from suite.base.files import cache_folder, write_atomically

_NAMES = "window.vegaEmbed = vegaEmbed;"


@functools.cache
def charts_library() -> bytes:
    """The library, compressed; made once for each version of vl-convert."""
    version = f"{importlib.metadata.version('vl-convert-python')} {_NAMES}"
    path = cache_folder("suite-report") / f"charts-{hashlib.sha256(version.encode()).hexdigest()[:16]}.js.gz"
    with contextlib.suppress(OSError, EOFError, zlib.error):
        found = path.read_bytes()
        gzip.decompress(found)  # raises an error for a damaged file
        return found
    import vl_convert

    made = gzip.compress(vl_convert.javascript_bundle(_NAMES).encode(), compresslevel=9, mtime=0)
    with contextlib.suppress(OSError, RunError):  # a folder that may not be written to costs seconds the next time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, made)
    return made
