"""The command ``python datasets/prepare.py``: options in, a prepared image set and a summary out."""

import suite.base.ctrl_c  # noqa: F401  # isort: skip  # before what takes a while
import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import get_args

from rich.console import Console

from imagesets.catalog import CATALOG
from imagesets.manifest import Manifest
from imagesets.prepare.conversion import check_prepared, prepare
from imagesets.prepare.settings import Prepared, PrepareSettings
from suite.base.arguments import a_path, positive, program
from suite.base.endings import ends_in_message
from suite.base.errors import SpecError
from suite.base.exit_codes import Exit
from suite.base.files import default_data_dir
from suite.spec.resources import StorageFormat

_MAX_LISTED = 20


@ends_in_message
def main(argv: Sequence[str] | None = None) -> int:
    """Prepare or check one image set. The status is 1 for data that is missing or broken, 130 where it was stopped."""
    parser = _make_parser()
    options = vars(parser.parse_args(argv))
    only_check = options.pop("check")
    options["out"] = (options["out"] or default_data_dir()).absolute()
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        settings = PrepareSettings(**options)
        if only_check:
            manifest, num_files = check_prepared(settings.target, console)
            print(f"{settings.target}\n{_describe(manifest)}\nfiles that are as the manifest says: {num_files:,}")
        else:
            started = time.monotonic()
            _print_prepared(prepare(settings, console), time.monotonic() - started)
    except SpecError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return Exit.INTERRUPTED
    return Exit.DONE


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("prepare", "python datasets/prepare.py"),
        description="Convert an image set for training. A command that was killed goes on where it ended.",
    )
    parser.add_argument("--dataset", required=True, metavar="NAME", help=f"{', '.join(CATALOG)}, or a name of your own")
    originals = "the originals: a folder, or a pattern of shards; needless for sets that can be fetched"
    parser.add_argument("--source", metavar="PATH", help=originals)
    formats = parser.add_mutually_exclusive_group(required=True)
    formats.add_argument("--format", choices=get_args(StorageFormat), dest="storage_format")
    noted = "write an index of the images and copy none; it lies beside them where that can be written"
    formats.add_argument("--in-place", action="store_const", const="in_place", dest="storage_format", help=noted)
    parser.add_argument("--out", type=a_path, metavar="DIR", help="the data folder; the set lands in DIR/NAME/FORMAT")
    shrinks = "shrink images whose longer side has more pixels (default: none)"
    parser.add_argument("--max-side", type=positive, metavar="N", help=shrinks)
    encodes = "encode every JPEG again with this quality (default: keep its bytes; 90 for those that are shrunk)"
    parser.add_argument("--quality", type=_quality, metavar="N", help=encodes)
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    per_core = "processes (default: one per core)"
    parser.add_argument("--workers", dest="num_workers", type=positive, default=num_cores, metavar="N", help=per_core)
    parser.add_argument("--skip-corrupt", action="store_true", help="leave out images that cannot be decoded")
    parser.add_argument("--samples-per-shard", type=positive, default=PrepareSettings.samples_per_shard, metavar="N")
    parser.add_argument("--label-key", metavar="KEY", help="key of the label in .json members of shards")
    served = "where readers get the shards of format webdataset that are not in their folder, such as https://HOST/DIR"
    parser.add_argument("--shards-url", metavar="URL", help=served)
    parser.add_argument("--check", action="store_true", help="hold every byte of a prepared set against its manifest")
    return parser


def _quality(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{number} is not within 1..100")
    return number


def _print_prepared(prepared: Prepared, seconds: float) -> None:
    print(f"{prepared.folder}\n{_describe(prepared.manifest)}")
    for name, reason in prepared.skipped[:_MAX_LISTED]:
        print(f"skipped {name}: {reason}")
    if len(prepared.skipped) > _MAX_LISTED:
        print(f"... and {len(prepared.skipped) - _MAX_LISTED:,} more")
    num_images = sum(prepared.manifest.num_images.values())
    print("was there already" if prepared.was_there else f"{num_images:,} images in {seconds:,.1f} s")


def _describe(manifest: Manifest) -> str:
    counts, skipped = manifest.num_images, manifest.num_skipped
    text = f"{counts['train']:,} train and {counts['test']:,} test images of {len(manifest.classes):,} classes"
    return text + (f"; {skipped:,} corrupt ones were left out" if skipped else "")


if __name__ == "__main__":
    sys.exit(main())
