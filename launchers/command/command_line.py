"""The command line of ``grid.py``: text -> ``GridOptions``."""

import argparse
import contextlib
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from launchers.command.address import DEFAULT, parse_address
from launchers.command.options import Cluster, GridOptions
from launchers.command.site_file import Site, find_site, read_site
from leaderboards.significance.rules import FIRST_LOOK
from suite.base.arguments import a_path, add_version, num_seeds, positive, program, some_seeds
from suite.base.errors import SpecError
from suite.spec.resources import StorageFormat, TrackerName

_SPELT = {"sbatch": "slurm", "requeue": "no-requeue"}
_WIDTH = 76  # of a group's names, which argparse indents by 2
_MODEL = ("NAME=MODEL", "OPTION=VALUE")
_FLAG: dict[str, Any] = {"action": "store_true"}
_NUMBER: dict[str, Any] = {"type": positive, "metavar": "N"}
_FILE: dict[str, Any] = {"type": a_path, "metavar": "FILE"}
_FOLDER: dict[str, Any] = {"type": a_path, "metavar": "DIR"}
_NAME: dict[str, Any] = {"metavar": "NAME"}
_SOME: dict[str, Any] = {"nargs": "+", "action": "extend"}
_Add = Callable[..., object]  # ``add_argument`` of a parser, or of a group of its options
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
    elif "max_seeds" in given:
        raise SpecError("--max-seeds would do nothing here: it goes with --seeds until=…")
    named: Path | None = given.pop("site", None)
    asks_slurm = given.get("cluster") == "slurm" or {"status", "cancel"} & given.keys()
    for_site = {name: given.pop(name) for name in Site.model_fields.keys() - _SHARED if name in given}
    if "sbatch" in for_site:
        pairs = (text.partition("=") for text in for_site["sbatch"])
        for_site["sbatch"] = {key: value if equals else True for key, equals, value in pairs}
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
    add = parser.add_argument
    add("--list", **_FLAG, dest="list_suites", help="show all suites, and what they cost")
    add("--suite", **_NAME, help="which table to fill; --list shows all; or FILE.py:ATTRIBUTE")
    add("--profile", help="laptop (default), desktop where there is one (an evening), gpu, paper, or smoke: seconds, "
        "no meaning")  # fmt: skip
    add("--seeds", type=_seeds, metavar="N", help="seeds 0 to N-1 of every configuration (default 1), or FIRST-LAST, "
        "such as 8-19; until=H: until the headline is known to H points")  # fmt: skip
    add("--only", **_SOME, metavar="KEY=VALUE", help="train only these, such as model=deit_micro, or rows as their "
        "board calls them: train_size_percent=5")  # fmt: skip
    add("--challenger", nargs="+", action="append", dest="custom_models", metavar=_MODEL, help="also train a model of "
        "your own in every row: timm:NAME, FILE.py:ATTRIBUTE, MODULE:ATTRIBUTE or a plug-in; recipe.FIELD=VALUE "
        "changes its recipe")  # fmt: skip
    add("--dry-run", **_FLAG, help="show plan and cost, start nothing")
    add("--serve", nargs="?", type=parse_address, const=DEFAULT, metavar="HOST:PORT", help="show the grid's page in a "
        f"browser while it works (default: {DEFAULT}), and in a terminal until Ctrl-C after it; with --status only "
        "look on")  # fmt: skip
    add("-h", "--help", action=_ShortHelp, nargs=0, help="show these options")
    add("--help-all", action="help", help="show all options, those named below too")
    add_version(parser)
    _add_runs(parser.add_argument_group("which runs").add_argument)
    _add_images(parser.add_argument_group("where runs and images are").add_argument)
    _add_training(parser.add_argument_group("how runs are trained").add_argument)
    _add_looking(parser.add_argument_group("look").add_argument)
    _add_cluster(parser.add_argument_group("on a SLURM cluster").add_argument)
    return parser


def _add_runs(add: _Add) -> None:
    add("--dataset", **_NAME, help="train all of it on another image set, such as one of your own")
    add("--check", nargs="+", metavar=_MODEL, help="try a model as --challenger takes it in seconds, and show its cost "
        "beside the papers' models; train nothing")  # fmt: skip
    add("--tune", **_NUMBER, help="first tune learning rate, warm-up and weight decay of every model by the same N "
        "tries on held-out training images; the board is that of profile PROFILE+tuneN")  # fmt: skip
    add("--max-seeds", type=num_seeds, metavar="N", help="the most for --seeds until (default 30)")
    add("--freeze", **_FILE, help="write down claims, configurations, seeds and stopping rule before training, and "
        "train nothing")  # fmt: skip
    add("--looks", **_NUMBER, nargs="+", help="with --freeze: judge the claims at these numbers of seeds, such as 5 8 "
        "(default: when all are done)")  # fmt: skip
    add("--precision", choices=["fp32", "bf16"], help="another precision than the recipe's: other runs")
    add("--retry-failed", **_FLAG, help="start failed runs again, from their checkpoints")


def _add_images(add: _Add) -> None:
    add("--runs", **_FOLDER, help="run store (default: runs)")
    add("--data-dir", **_FOLDER, help="where image sets are kept (default: $IMAGESETS_DIR, else the user's cache)")
    add("--stage", metavar="DIR", help="a folder of each node's own disk that images are copied to before training; "
        "slurm = $SLURM_TMPDIR")  # fmt: skip
    add("--loader", choices=get_args(StorageFormat), help="format to read images from (default: the one that "
        "datasets/prepare.py has made, else memory)")  # fmt: skip
    add("--skip-corrupt", **_FLAG, help="go on without images that cannot be decoded")


def _add_training(add: _Add) -> None:
    add("--workers", **_NUMBER, help="threads a rank decodes images with (default: its cores)")
    add("--max-parallel", **_NUMBER, help="runs at once (default: one per core or GPU)")
    add("--runs-per-gpu", **_NUMBER, help="small runs that share a GPU by NVIDIA's MPS, on this machine")
    add("--ranks-per-node", **_NUMBER, help="processes of one run (default 1; with SLURM on CPUs)")
    add("--micro-batch", **_NUMBER, help="images a rank holds at once (default: its share)")
    add("--zero-stage", type=int, choices=range(4), help="DeepSpeed's ZeRO (default 0)")
    add("--compile", **_FLAG, dest="compiled", help="train by torch.compile; all runs share the code")
    add("--cuda-graphs", **_FLAG, help="let a GPU start a pass's kernels by itself: the same bits, sooner")
    add("--teacher-weights", **_FILE, help="trained weights of a timm teacher, for distillation")
    add("--device", choices=["cpu", "gpu"], help="train on another device than the profile's")


def _add_looking(add: _Add) -> None:
    add("--status", **_FLAG, help="show where every run stands; start nothing")
    add("--watch", **_FLAG, help="with --status: again and again, until all have ended")
    add("--show", **_FLAG, help="show the profile's experiments and recipes in full, beside the paper's")
    add("--json", **_FLAG, help="with --list, --show, --dry-run, --status or --check: answer as JSON alone on standard "
        "output")  # fmt: skip
    add("--track", **_SOME, choices=get_args(TrackerName), help="also show metrics and results there; wandb offline "
        "unless WANDB_MODE says otherwise")  # fmt: skip


def _add_cluster(add: _Add) -> None:
    add("--cluster", choices=get_args(Cluster), help="where to train (default: here)")
    add("--cancel", **_FLAG, help="end the suite's jobs; checkpoints stay")
    add("--detach", **_FLAG, help="return once the jobs are in the queue")
    add("--site", **_FILE, help="what this cluster's jobs need (default: site.toml here, else in the user's "
        "configuration folder)")  # fmt: skip
    add("--site-check", **_FLAG, help="try it in a job of a minute; train nothing")
    for name, kind in get_type_hints(Site).items():
        if words := Site.model_fields[name].description:
            add(f"--{name.replace('_', '-')}", **(_NUMBER if int in (kind, *get_args(kind)) else _NAME), help=words)
    add("--no-requeue", action="store_false", dest="requeue", help="where no job may requeue itself")
    add("--slurm", **_SOME, dest="sbatch", metavar="KEY=VALUE", help="more of sbatch's options")
