"""``python -m launchers.tracking``: the process that ``grid.py --track`` starts beside the training."""

import sys

from launchers.tracking.follower import main

sys.exit(main())
