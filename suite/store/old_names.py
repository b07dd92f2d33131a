"""Runs of custom models from when a model's name was in the identity: RUNS/experiments/<name>-<old id>/seed-<n>/.

They are found, and stay, where they are.
"""

import contextlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from suite.base.files import read_file
from suite.base.reading import read_model
from suite.spec.custom_model import OF_CUSTOM
from suite.spec.experiment import Experiment
from suite.spec.model_options import read_options


def folders_of(experiments: Path, experiment: Experiment) -> list[Path]:
    """The folder of a configuration, which need not be there, and those that it has under old names."""
    old = present_names(experiments).items() if experiment.model_source else ()
    names = (experiment.configuration, *(name for name, present in old if present == experiment.configuration))
    return [experiments / name for name in names]


def present_names(experiments: Path) -> Mapping[str, str]:
    """Find the present names of configurations whose folders have old ones, by folder, sorted."""
    with contextlib.suppress(OSError):  # nothing was trained yet
        return _read(experiments, experiments.stat().st_mtime_ns)
    return {}


@lru_cache(maxsize=8)
def _read(experiments: Path, _changed_ns: int) -> Mapping[str, str]:
    found = {}
    for name in sorted(os.listdir(experiments)):
        if name.startswith(OF_CUSTOM) or name.rpartition("-")[0] in read_options():
            continue
        for path in sorted((experiments / name).glob("seed-*/experiment.json")):
            with contextlib.suppress(OSError, ValueError):  # another one tells it, or none can be used
                experiment = read_model(Experiment, read_file(path))
                if experiment.model_source and experiment.old_configuration == name:
                    found[name] = experiment.configuration
                    break
    return found
