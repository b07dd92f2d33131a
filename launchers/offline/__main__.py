"""``python -m launchers.offline``: the commands of a kit. See the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from launchers.offline.install import install
from launchers.offline.parts import KitError, KitManifest, find_problems
from suite.base.arguments import a_path
from suite.base.endings import ends_in_message
from suite.base.exit_codes import Exit

_ASSUMED = ["torch", "torchvision", "triton", "nvidia-*", "cuda-*", "numpy"]
_PART_MB = 50.0


@ends_in_message
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, 1 for a kit that cannot be made or used, 2 for misuse."""
    options = _parse(arguments)
    return {"pack": _pack, "check": _check, "install": _install}[options.command](options)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m launchers.offline",
        description="Bring the project to a machine without a network.",
        fromfile_prefix_chars="@",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    pack = commands.add_parser(
        "pack", help="collect wheels and images, here, where there is a network", fromfile_prefix_chars="@"
    )
    pack.add_argument("--python", default="3.12", metavar="X.Y", help="version there (default 3.12)")
    pack.add_argument("--processor", default="x86_64", metavar="NAME", help="as `uname -m` there (default x86_64)")
    pack.add_argument(
        "--glibc", type=int, default=28, metavar="MINOR", help="of its C library 2.MINOR, or older (default 28)"
    )
    pack.add_argument(
        "--assume-installed", nargs="+", action="extend", metavar="NAME",
        help=f"what is there already, besides {' '.join(_ASSUMED)}; @FILE reads a name a line, as `pip freeze` there "
        "writes them",
    )  # fmt: skip
    pack.add_argument("--images", nargs="*", default=["cifar10"], metavar="NAME", help="image sets (default cifar10)")
    pack.add_argument(
        "--part-mb", type=float, default=_PART_MB, metavar="MB", help=f"size of a part (default {_PART_MB:g})"
    )
    check = commands.add_parser("check", help="say which parts are missing or damaged")
    install_ = commands.add_parser("install", help="install a kit there, on top of the Python that runs this")
    install_.add_argument("--venv", type=a_path, default=Path(".venv"), metavar="DIR", help="default: .venv")
    install_.add_argument("--data-dir", type=a_path, metavar="DIR", help="where image sets are kept")
    for command in (pack, check, install_):
        command.add_argument(
            "--kit", type=a_path, default=Path("offline-kit"), metavar="DIR", help="default: offline-kit"
        )
    return parser.parse_args(arguments)


def _pack(options: argparse.Namespace) -> int:
    from launchers.offline.pack import pack  # needs what install brings
    from launchers.offline.wheels import Target

    if options.part_mb < 1:
        raise KitError(f"--part-mb is {options.part_mb:g}, expected at least 1")
    target = Target(options.python, options.processor, options.glibc)
    assumed = [*_ASSUMED, *(options.assume_installed or [])]
    manifest = pack(options.kit, target, assumed, options.images, options.part_mb)
    for part in manifest.parts:
        print(f"{options.kit / part.name}  {part.num_bytes / 1e6:6.1f} MB  {part.sha256}")
    print(
        f"Left out, since they are to be there: {', '.join(manifest.assumed)}.\nBring manifest.json and the parts, one "
        "after the other if need be, beside a copy of the project; there:\n"
        f"  python3 -m launchers.offline install --kit {options.kit}"
    )
    return Exit.DONE


def _check(options: argparse.Namespace) -> int:
    parts = KitManifest.read(options.kit).parts
    problems = find_problems(options.kit, parts)
    for name, problem in problems.items():
        print(f"{name} {problem}")
    print(f"{len(parts) - len(problems)} of {len(parts)} parts are there and whole")
    return Exit.FAILED if problems else Exit.DONE


def _install(options: argparse.Namespace) -> int:
    install(options.kit, options.venv, options.data_dir)
    print(f"Ready: {options.venv / 'bin/python'} launchers/grid.py --suite sample_efficiency --profile smoke")
    return Exit.DONE


if __name__ == "__main__":
    sys.exit(main())
