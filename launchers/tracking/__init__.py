"""``grid.py --track``: metrics and results shown by TensorBoard, trackio or Weights & Biases.

    following   starts a sidecar of the grid, or on a node of its job's first rank
    follower    that process: run directories -> what is new in them -> a tracker
    trackers    one class for each of the three

No tracker lives in a training process: what follows is read from ``metrics.jsonl``, which is exact however often a run
was killed and resumed. So a tracker that raises, hangs or is slow is reported once and dropped; no run waits for it.

Whatever begins to follow a run writes the tracker's run anew from its first line, under the run's own id: a tracker
that was killed in the middle, another node, and a run that went back to a checkpoint leave no step twice. Only a run
that is on a server already is gone on with, from the step that is known there.
"""

import importlib.util
from collections.abc import Iterable

from suite.base.errors import SpecError


def check_installed(trackers: Iterable[str]) -> None:
    """Check for the packages before anything is trained; a SpecError has the command that installs a missing one."""
    for name in trackers:
        if importlib.util.find_spec(name) is None:
            pip = "python -m pip install"
            how = f"{pip} 'convolutional-prior-suite[{name}]', or in a checkout {pip} --editable '.[{name}]'"
            raise SpecError(f"--track {name} needs the package {name}, which is not installed: {how}")
