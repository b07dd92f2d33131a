"""``python -m launchers.count_models``: count the operations of every suite's models anew, and ship them as data.

For developers, whenever a file of ``suite/models/`` has changed; ``suite.cost.known_flops`` reads them.
"""

import sys
from typing import Any

from suite.base.endings import ends_in_message
from suite.base.exit_codes import Exit
from suite.cost.costs import run_flops
from suite.cost.known_flops import PATH, Flops, key_of, write_shipped
from suite.models.flops import count_anew
from suite.papers import get_suite, list_suites
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources


def all_experiments() -> list[Experiment]:
    """Every experiment of every profile, with repetitions."""
    profiles = [profile for name in list_suites() for profile in get_suite(name).profiles.values()]
    return [experiment for profile in profiles for experiment in profile.experiments()]


@ends_in_message
def main() -> int:
    """Write the file; returns the exit status 0."""
    counts: dict[str, tuple[int, int]] = {}

    def count(model: str, *, num_classes: int, image_size: int, **options: Any) -> Flops:
        if (key := key_of(model, num_classes, image_size, options)) not in counts:
            found = count_anew(model, num_classes, image_size, options)
            counts[key] = found.total, found.linear
        return Flops(*counts[key])

    for experiment in all_experiments():
        run_flops(experiment, Resources(), count)
    write_shipped(counts)
    print(f"{PATH}: {len(counts)} models")
    return Exit.DONE


if __name__ == "__main__":
    sys.exit(main())
