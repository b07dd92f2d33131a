"""``python -m launchers.live SOCKET``: the process that ``grid.py --serve`` starts beside itself."""

import sys

from launchers.live.serving import serve

sys.exit(serve())
