"""Whether the same runs, trained on two kinds of machines, have the same results.

    python benchmarks/devices.py devices/intel-xeon.records.tar.xz devices/h200.records.tar.xz

Prints, of the runs that both packed records (or run stores) have, how many top-1 accuracies are equal, the largest
differences, and the times that the trainings took.
"""

import argparse
from pathlib import Path
from statistics import median

from leaderboards.packed_records import unpacked
from suite.store.results import Result
from suite.store.run_store import list_runs


def read(records: Path) -> dict[str, Result]:
    """The results of packed records or of a store, by the run's id."""
    with unpacked(records) as store:
        found = {run.id: run.read_result() for run in list_runs(store)}
    return {name: result for name, result in found.items() if result is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("records", type=Path, nargs=2)
    first, second = map(read, parser.parse_args().records)
    pairs = [(first[name], second[name]) for name in sorted(first.keys() & second.keys())]
    if not pairs:
        parser.error("the two have no run in common; expected the same suite, profile and seeds")
    for side, results in zip("AB", zip(*pairs, strict=True), strict=True):
        print(f"{side}: {', '.join(sorted({result.device for result in results}))}")
    equal = sum(a.top1_percent == b.top1_percent for a, b in pairs)
    print(f"{len(pairs)} runs in both; top-1 accuracy is equal in {equal}")
    for name in ("top1_percent", "test_loss"):
        print(f"largest difference of {name}: {max(abs(getattr(a, name) - getattr(b, name)) for a, b in pairs):.2g}")
    print(f"weights of equal bits in {sum(a.weights_sha256 == b.weights_sha256 for a, b in pairs)}")
    print(f"training takes A {median(a.train_s / b.train_s for a, b in pairs):.2g} times as long as B, by the median")


if __name__ == "__main__":
    main()
