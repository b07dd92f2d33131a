"""``python -m suite.export``: a run as a model folder, a store's results as a table, citations: for other tools."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from suite.base.arguments import a_path, program
from suite.base.endings import ends_in_message
from suite.base.errors import RecordError, SpecError
from suite.base.exit_codes import Exit
from suite.base.files import write_atomically
from suite.export.timm_results import render_timm_results
from suite.papers import list_papers
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status
from suite.store.run_store import experiments_folder, list_runs

_SUITE = """@software{{convolutional_prior_suite,
  title={{What does a convolutional prior do for attention? A benchmark suite}},
  author={{{{contributors of this project}}}},
  version={{{version}}},
  license={{Apache-2.0}}
}}"""


@ends_in_message
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit status: 0, 1 for a run that cannot be exported, 2 for misuse."""
    parser = argparse.ArgumentParser(
        prog=program("export", "python -m suite.export"),
        description="Write a finished run as a model folder that timm reads, or a store's results as timm's tables.",
    )
    add = parser.add_argument
    place = "a run's folder, or its id in the store, such as deit_s-0123456789abcdef/seed-0"
    add("run", nargs="?", metavar="RUN", help=place)
    add("--to", type=a_path, metavar="DIR", help="folder for the weights, the model card and the scores")
    add("--runs", type=a_path, default=Path("runs"), metavar="DIR", help="run store (default: runs)")
    add("--results-csv", type=a_path, metavar="FILE", help="write all finished runs of the store, in timm's columns")
    add("--bibtex", type=a_path, metavar="FILE", help="write the suite's and the papers' entries, to cite them")
    options = parser.parse_args(arguments)
    if (options.run is None) != (options.to is None) or not (options.run or options.results_csv or options.bibtex):
        parser.error("expected RUN with --to DIR, --results-csv FILE or --bibtex FILE")
    if options.run is not None:
        from suite.export.card import write_use
        from suite.export.folder import export  # imports torch

        path = experiments_folder(options.runs) / options.run
        directory = RunDirectory(path if path.is_dir() else Path(options.run))
        is_timms = export(directory, options.to)
        use = write_use(str(options.to), directory.read_experiment(), is_timms)
        print(f"{options.to} holds the network:\n\n{use}")
    if options.results_csv is not None:
        _write_results(options.runs, options.results_csv)
    if options.bibtex is not None:
        own = _SUITE.format(version=version("convolutional-prior-suite"))
        entries = [own, *(paper.citation for paper in list_papers())]
        write_atomically(options.bibtex, ("\n\n".join(entries) + "\n").encode())
        print(f"{options.bibtex}: the suite and {len(entries) - 1} papers")
    return Exit.DONE


def _write_results(store: Path, path: Path) -> None:
    """Write the results that hold; what cannot be read is named and left out."""
    if not experiments_folder(store).is_dir():
        raise SpecError(
            f"there is no run store {store}: expected a folder that holds experiments/; name it with --runs"
        )
    results = []
    for run in list_runs(store):
        try:
            status = find_run_status(run, run.read_experiment())
        except RecordError as error:
            print(f"left out {run.path}: {error}", file=sys.stderr)
            continue
        if status.state == "done" and status.result is not None:
            results.append(status.result)
        else:
            print(f"left out {run.path}: {status.state}", file=sys.stderr)
    write_atomically(path, render_timm_results(results).encode())
    print(f"{path}: {len(results)} runs")


if __name__ == "__main__":
    sys.exit(main())
