"""The command line of ``grid.py``: text -> ``GridOptions``."""

import argparse
import contextlib
import math
import textwrap
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from launchers.command.address import DEFAULT, parse_address
from launchers.command.options import Cluster, GridOptions
from launchers.command.site_file import Site, find_site, parse_more, read_site
from leaderboards.significance.rules import FIRST_LOOK
from suite.base.arguments import a_path, add_version, num_seeds, positive, program, some_seeds
from suite.base.errors import SpecError
from suite.spec.resources import StorageFormat, TrackerName

_SPELT = {"sbatch": "slurm", "requeue": "no-requeue"}
_WIDTH = 76  # of a group's names, which argparse indents by 2
_MODEL = ("NAME=MODEL", "OPTION=VALUE")
_SHARED = {field.name for field in fields(GridOptions)} & {"runs", "data_dir", "stage"}  # of a site, and of any grid
_OF_SLURM = {*Site.model_fields, "detach", "site_check"} - _SHARED - {"container"}


def parse_options(arguments: Sequence[str] | None = None) -> GridOptions:
    """Read the command line; a SpecError for options that do not go together, or that would do nothing."""
    given = vars(_make_parser().parse_args(arguments))
    if "site_check" in given:
        given["cluster"] = "slurm"
    for_slurm = sorted(_OF_SLURM & given.keys())
    if for_slurm and given.get("cluster") != "slurm":
        names = ", ".join("--" + _SPELT.get(name, name.replace("_", "-")) for name in for_slurm)
        raise SpecError(f"{names} would do nothing here: add --cluster slurm, or leave it out")
    if isinstance(given.get("seeds"), float):
        given |= {"until": given["seeds"], "seeds": range(FIRST_LOOK)}
    named: Path | None = given.pop("site", None)
    asks_slurm = given.get("cluster") == "slurm" or {"status", "cancel"} & given.keys()
    for_site = {name: given.pop(name) for name in Site.model_fields.keys() - _SHARED if name in given}
    if "sbatch" in for_site:
        for_site["sbatch"] = parse_more(for_site["sbatch"])
    if "max_parallel" in given and asks_slurm:
        for_site["concurrency"] = given["max_parallel"]
    path = find_site(named) if named or asks_slurm else None
    site = read_site(path, for_site)
    of_site = {name: value for name in _SHARED if (value := getattr(site, name)) is not None}
    return GridOptions(site=site, site_path=path, **{name: _frozen(value) for name, value in (of_site | given).items()})


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _seeds(text: str) -> range | float:
    """Seeds, or after ``until=`` a width, which is a float."""
    name, separator, width = text.partition("=")
    if not separator:
        return some_seeds(text)
    with contextlib.suppress(ValueError):
        found = float(width)
        if name == "until" and 0 < found < math.inf:
            return found
    raise argparse.ArgumentTypeError(f"found {text!r}, expected a number, 8-19, or until=0.5, in points above 0")


class _ShortHelp(argparse.Action):
    """Shows the options that most people use, and names the others by group."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        for group in parser._action_groups[2:]:
            names = " ".join(action.option_strings[0] for action in group._group_actions)
            group.description = textwrap.fill(names, _WIDTH, break_on_hyphens=False)
            for action in group._group_actions:
                action.help = argparse.SUPPRESS
        parser.print_help()
        parser.exit()


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("grid", "grid.py"),
        usage="%(prog)s --suite NAME [options]",
        description="Plan a suite's grid, train what is missing, build its leaderboard.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,  # the defaults are those of GridOptions
        add_help=False,
    )
    parser.add_argument("--list", action="store_true", dest="list_suites", help="show all suites, and what they cost")
    parser.add_argument("--suite", metavar="NAME", help="which table to fill; --list shows all; or FILE.py:ATTRIBUTE")
    parser.add_argument(
        "--profile",
        help="laptop (default), desktop where there is one (an evening), gpu, paper, or smoke: seconds, no meaning",
    )
    parser.add_argument(
        "--seeds", type=_seeds, metavar="N",
        help="seeds 0 to N-1 of every configuration (default 1), or FIRST-LAST, such as 8-19; until=H: until the "
        "headline is known to H points",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", action="extend", metavar="KEY=VALUE",
        help="train only these, such as model=deit_micro, or rows as their board calls them: train_size_percent=5",
    )  # fmt: skip
    parser.add_argument(
        "--challenger", nargs="+", action="append", dest="custom_models", metavar=_MODEL,
        help="also train a model of your own in every row: timm:NAME, FILE.py:ATTRIBUTE, MODULE:ATTRIBUTE or a "
        "plug-in; recipe.FIELD=VALUE changes its recipe",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="show plan and cost, start nothing")
    parser.add_argument(
        "--serve", nargs="?", type=parse_address, const=DEFAULT, metavar="HOST:PORT",
        help=f"show the grid's page in a browser while it works (default: {DEFAULT}), and in a terminal until Ctrl-C "
        "after it; with --status only look on",
    )  # fmt: skip
    parser.add_argument("-h", "--help", action=_ShortHelp, nargs=0, help="show these options")
    parser.add_argument("--help-all", action="help", help="show all options, those named below too")
    add_version(parser)
    for add in (_add_runs, _add_images, _add_training, _add_looking, _add_cluster):
        add(parser)
    return parser


def _add_runs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which runs")
    group.add_argument(
        "--dataset", metavar="NAME", help="train all of it on another image set, such as one of your own"
    )
    group.add_argument(
        "--check", nargs="+", metavar=_MODEL,
        help="try a model as --challenger takes it in seconds, and show its cost beside the papers' models; train "
        "nothing",
    )  # fmt: skip
    group.add_argument(
        "--tune", type=positive, metavar="N",
        help="first tune learning rate, warm-up and weight decay of every model by the same N tries on held-out "
        "training images; the board is that of profile PROFILE+tuneN",
    )  # fmt: skip
    group.add_argument("--max-seeds", type=num_seeds, metavar="N", help="the most for --seeds until (default 30)")
    group.add_argument(
        "--freeze", type=a_path, metavar="FILE",
        help="write down claims, configurations, seeds and stopping rule before training, and train nothing",
    )  # fmt: skip
    group.add_argument(
        "--looks", type=positive, nargs="+", metavar="N",
        help="with --freeze: judge the claims at these numbers of seeds, such as 5 8 (default: when all are done)",
    )  # fmt: skip
    group.add_argument("--precision", choices=["fp32", "bf16"], help="another precision than the recipe's: other runs")
    group.add_argument("--retry-failed", action="store_true", help="start failed runs again, from their checkpoints")


def _add_images(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where runs and images are")
    group.add_argument("--runs", type=a_path, metavar="DIR", help="run store (default: runs)")
    group.add_argument(
        "--data-dir", type=a_path, metavar="DIR",
        help="where image sets are kept (default: $IMAGESETS_DIR, else the user's cache)",
    )  # fmt: skip
    group.add_argument(
        "--stage", metavar="DIR",
        help="a folder of each node's own disk that images are copied to before training; slurm = $SLURM_TMPDIR",
    )  # fmt: skip
    group.add_argument(
        "--loader", choices=get_args(StorageFormat),
        help="format to read images from (default: the one that datasets/prepare.py has made, else memory)",
    )  # fmt: skip
    group.add_argument("--skip-corrupt", action="store_true", help="go on without images that cannot be decoded")


def _add_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how runs are trained")
    numbers = {
        "--workers": "threads a rank decodes images with (default: its cores)",
        "--max-parallel": "runs at once (default: one per core or GPU)",
        "--runs-per-gpu": "small runs that share a GPU by NVIDIA's MPS, on this machine",
        "--ranks-per-node": "processes of one run (default 1; with SLURM on CPUs)",
        "--micro-batch": "images a rank holds at once (default: its share)",
    }
    for name, words in numbers.items():
        group.add_argument(name, type=positive, metavar="N", help=words)
    group.add_argument("--zero-stage", type=int, choices=range(4), help="DeepSpeed's ZeRO (default 0)")
    group.add_argument(
        "--compile", action="store_true", dest="compiled", help="train by torch.compile; all runs share the code"
    )
    group.add_argument(
        "--teacher-weights", type=a_path, metavar="FILE", help="trained weights of a timm teacher, for distillation"
    )
    group.add_argument("--device", choices=["cpu", "gpu"], help="train on another device than the profile's")


def _add_looking(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("look")
    group.add_argument("--status", action="store_true", help="show where every run stands; start nothing")
    group.add_argument("--watch", action="store_true", help="with --status: again and again, until all have ended")
    group.add_argument(
        "--show", action="store_true", help="show the profile's experiments and recipes in full, beside the paper's"
    )
    group.add_argument(
        "--json", action="store_true",
        help="with --list, --show, --dry-run, --status or --check: answer as JSON alone on standard output",
    )  # fmt: skip
    group.add_argument(
        "--track", nargs="+", action="extend", choices=get_args(TrackerName),
        help="also show metrics and results there; wandb offline unless WANDB_MODE says otherwise",
    )  # fmt: skip


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("on a SLURM cluster")
    group.add_argument("--cluster", choices=get_args(Cluster), help="where to train (default: here)")
    group.add_argument("--cancel", action="store_true", help="end the suite's jobs; checkpoints stay")
    group.add_argument("--detach", action="store_true", help="return once the jobs are in the queue")
    group.add_argument(
        "--site", type=a_path, metavar="FILE",
        help="what this cluster's jobs need (default: site.toml here, else in the user's configuration folder)",
    )  # fmt: skip
    group.add_argument("--site-check", action="store_true", help="try it in a job of a minute; train nothing")
    numbers = {
        "--runs-per-job": "runs that one job trains in turn (default 1)",
        "--nodes": "nodes of one run (default 1)",
        "--implied-gpus": "GPUs that the partition gives each node unasked",
        "--cpus-per-task": "cores of a rank (default 1; with GPUs 8)",
        "--mem-gb": "memory of a node",
        "--time-min": "a job's time limit (default 60); a run that needs longer is requeued and goes on",
        "--chain": "jobs in a row for each run, where a job may not requeue itself (default 1)",
        "--max-arrays": "arrays in the queue at once; the next follow as these leave it",
    }
    for name, words in numbers.items():
        group.add_argument(name, type=positive, metavar="N", help=words)
    group.add_argument("--no-requeue", action="store_false", dest="requeue", help="where no job may requeue itself")
    texts = {
        "--gpus-per-node": "on GPUs, and as many ranks (default 1): 4, h100:4, 1g.10gb:2",
        "--gres": "in place of that, such as gpu:h100:4",
        "--gpus": "in place of that, on all nodes together",
        "--container": "image to train in; on this machine by Apptainer or Docker",
        **dict.fromkeys(("--partition", "--account", "--qos", "--constraint"), "as sbatch's"),
    }
    for name, words in texts.items():
        group.add_argument(name, metavar="NAME", help=words)
    group.add_argument(
        "--slurm", nargs="+", action="extend", dest="sbatch", metavar="KEY=VALUE", help="more of sbatch's options"
    )
