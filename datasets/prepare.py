"""``python datasets/prepare.py``: make an image set ready for training. See ``imagesets.prepare``."""

import sys

from imagesets.prepare.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
