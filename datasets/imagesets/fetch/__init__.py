"""Image sets that can be fetched: from a name in the catalog to one file of arrays, which ``storage`` opens."""

from imagesets.fetch.ready import ensure, lock
from suite.base.files import default_data_dir

__all__ = ["default_data_dir", "ensure", "lock"]
