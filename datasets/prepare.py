"""``python datasets/prepare.py``: make an image set ready for training. See ``imagesets.prepare``."""

import sys

import suite.ctrl_c  # noqa: F401  # isort: skip  # before what takes a while
from imagesets.prepare.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
