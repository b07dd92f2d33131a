"""Loads once what many runs need: in the fork server, which imports this module, and in each process of a SLURM job."""

import gc
import os
import signal

from launchers.core.fork_server import RESOURCES_VARIABLE, send_output_to
from suite.execute import die_with_parent
from suite.spec.resources import WAITING_THREADS, Resources


def import_training(resources: Resources) -> None:
    """Import, before the first fork, what every run needs: it takes seconds, and fails where one is missing."""
    os.environ.setdefault(*WAITING_THREADS)
    import suite.training.loop
    import suite.training.measure.untrained  # noqa: F401
    from suite.training.distributed import check_device, preload

    preload(resources)
    check_device(resources)


def _load(resources: Resources) -> None:
    """Make the fork server ready. If it fails, the server ends, and each run loads the libraries and says why."""
    os.setsid()
    die_with_parent()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    send_output_to(os.open(os.devnull, os.O_WRONLY))
    import_training(resources)
    from suite.training.accelerator import is_started

    assert not is_started(), "the process that forks runs must not touch a GPU"
    gc.collect()
    gc.freeze()  # else each run's first collection would write on, and so copy, all that it shares with the others


if RESOURCES_VARIABLE in os.environ:
    try:
        _load(Resources.model_validate_json(os.environ.pop(RESOURCES_VARIABLE)))
    except ImportError as error:  # which multiprocessing would pass over
        raise SystemExit(str(error)) from error
