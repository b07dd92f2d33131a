"""Image sets that can be fetched: from a name in the catalog to one file of arrays, which ``storage`` opens."""

from imagesets.fetch.ready import ensure, lock

__all__ = ["ensure", "lock"]
