"""Time how long the live pages of a grid of 1,000 runs take, against ``json.loads`` of all that these runs have left.

    python benchmarks/live_pages.py [--seeds 100] [--share-done 0.9] [--rounds 5]

Before each round one run is killed anew, so that every page is made anew. Seconds are the processor's, as the pages
are made beside a training.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

from measured import note
from read_results import make_result
from timing import time_in_turn

from launchers.command.command_line import parse_options
from launchers.command.grid_request import GridRequest
from launchers.live.board import ServedBoard
from launchers.live.site import make_site
from launchers.live.state import COLUMNS, TEXTS, StateReader
from leaderboards.report.suite_page import LiveTable
from suite.spec.experiment import Experiment
from suite.store import attempts
from suite.store.run_directory import RunDirectory

_NUM_LINES = 40  # that a laptop's run logs


def leave_run(store: Path, experiment: Experiment, is_done: bool) -> RunDirectory:
    """Leave the files of a run that has finished, or is half-way."""
    run, num_steps = RunDirectory.of(store, experiment), experiment.num_steps(50_000)
    run.create(experiment)
    attempts.record_start(run, 1)
    rates = {"images_per_s": 80.0, "loss": 1.5, "test_loss": 1.5}
    top1 = 40.0 + experiment.seed % 7
    lines = [
        {"step": num_steps * i // _NUM_LINES, "num_steps": num_steps, "epoch": i / 10, "top1_percent": top1, **rates}
        for i in range(1, (_NUM_LINES if is_done else _NUM_LINES // 2) + 1)
    ]
    run.metrics_path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    if is_done:
        run.result_path.write_text(make_result(experiment).model_dump_json(indent=1), encoding="utf-8")
    return run


def load_plainly(store: Path) -> None:
    """Parse every result and every log."""
    for path in store.glob("experiments/*/*/result.json"):
        json.loads(path.read_bytes())
    for path in store.glob("experiments/*/*/metrics.jsonl"):
        for line in path.read_bytes().splitlines():
            json.loads(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--share-done", type=float, default=0.9)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        words = ["--suite", "sample_efficiency", "--profile", "laptop", "--seeds", str(args.seeds), "--runs", folder]
        grid = GridRequest.of(parse_options(words))
        runs = [leave_run(store, e, e.seed < args.share_done * args.seeds) for e in grid.experiments]
        reader = StateReader(grid)
        index = make_site(grid, reader).pages["index.html"]
        board = ServedBoard(grid.suite, "laptop", store, range(args.seeds), LiveTable(COLUMNS, TEXTS, "state.json"))

        def kill_anew() -> None:
            runs[-1].record_failure("killed", "killed")
            index.due = 0.0
            load_plainly(store)

        makers = {"state": reader.read, "board": board.make, "index": index.find}
        seconds = time_in_turn({"json.loads": kill_anew, **makers}, args.rounds, warmup=1, clock=time.process_time)
    plain = seconds.pop("json.loads")
    print(f"{len(runs):,} runs; json.loads of their files: {median(plain):.2f} s of a core")
    for name, of_rounds in seconds.items():
        print(f"{name:6} {median(of_rounds):.2f} s of a core")
        note(f"the {name} of {len(runs):,} runs, served", "json.loads of their files", of_rounds, plain)


if __name__ == "__main__":
    main()
