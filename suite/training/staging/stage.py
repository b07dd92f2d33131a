"""A run's images to its node's disk, between the start of its ranks and its loader.

Where a node has no space or refuses, the run reads where the set is.
"""

import errno
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from imagesets.fetch import ensure
from imagesets.prepared import find_info, find_prepared
from suite.base.errors import DataError
from suite.spec.resources import Resources
from suite.store.attempts import record_staging
from suite.store.heartbeat import Heartbeat
from suite.store.run_directory import RunDirectory
from suite.training.distributed import Ranks
from suite.training.environment import StopRequest
from suite.training.staging.copies import ImageSet, Watch

_LOOK_EVERY_S = 0.5


def stage_images(
    run: RunDirectory, dataset: str, resources: Resources, ranks: Ranks, stop: StopRequest
) -> Resources | None:
    """The resources by which a run reads its images from the node's disk, as far as they can be copied there.

    The ranks ask each other meanwhile, so that none waits in vain for one whose node is slower.

    Args:
        run: run directory, whose attempt and heartbeat tell of it.
        dataset: name of the image set.
        resources: data folder, loader, and the folder to copy to.
        ranks: this process among those of the run.
        stop: request that ends the copying.

    Returns:
        None where a rank was asked to stop.

    Raises:
        DataError: if the image set is not there, or not complete.
    """
    if resources.stage is None:
        return resources
    watch, began, seen = Watch(), time.monotonic(), -1
    heartbeat = Heartbeat(run if ranks.is_first else None)
    with ThreadPoolExecutor(1) as pool, heartbeat.during("staging"):
        copying = pool.submit(_stage, dataset, resources, watch)
        waiting = True
        while waiting:
            wait([copying], _LOOK_EVERY_S)
            progress = watch.progress
            waiting, stopping, goes_on = ranks.agree(not copying.done(), bool(stop), progress != seen)
            seen = progress
            if goes_on:  # else it hangs, as whoever watches this run finds out
                heartbeat.go_on()
            if stopping:
                watch.is_stopped = True
                return None
        staged = copying.result()
    if ranks.is_first:
        seconds = time.monotonic() - began
        record_staging(run, seconds)
        print(f"staging: {seconds:,.1f} s, images are read in {staged.data_dir}", flush=True)
    return staged


def _stage(dataset: str, resources: Resources, watch: Watch) -> Resources:
    data_dir = Path(resources.data_dir) if resources.data_dir else None
    prepared = find_prepared(dataset, resources.loader, data_dir)
    if prepared is None and find_info(dataset, data_dir).packaged:
        return resources  # it is installed on each node
    found = ImageSet(*prepared) if prepared else ImageSet(ensure(dataset, data_dir))
    stage = os.path.expandvars("$SLURM_TMPDIR" if resources.stage == "slurm" else str(resources.stage))
    target = Path(stage) / f"staged-{found.key}"
    try:
        if "$" in stage:
            raise OSError(errno.ENOENT, "the variable is not set on this node")
        found.copy_to(target, watch)
    except (OSError, DataError) as error:
        what = getattr(error, "strerror", None) or error
        told = f"warning: images are not staged in {stage}: {what}. They are read where they are"
        print(told, file=sys.stderr, flush=True)
        return resources
    return resources.model_copy(data_dir=str(target), loader=found.loader)
