"""``python -m imagesets NAME``: fetch an image set ahead of time and check every byte of it, or describe it."""

import suite.base.ctrl_c  # noqa: F401  # isort: skip  # before what takes a while
import argparse
import sys
from collections.abc import Sequence

from imagesets import fetch
from imagesets.catalog import CATALOG, get_info
from imagesets.croissant import VERSION, render_croissant
from imagesets.fetch import storage
from suite.base.arguments import a_path, program
from suite.base.endings import ends_in_message
from suite.base.errors import SpecError
from suite.base.exit_codes import Exit
from suite.base.files import write_atomically


@ends_in_message
def main(argv: Sequence[str] | None = None) -> int:
    """Fetch one set and print its path, counts and checksums. The status is 1 for data that cannot be had."""
    parser = argparse.ArgumentParser(
        prog=program("fetch", "python -m imagesets"), description="Fetch an image set and check it."
    )
    parser.add_argument("name", help=", ".join(CATALOG))
    parser.add_argument("--data-dir", type=a_path, help="where to keep it (default: $IMAGESETS_DIR or your cache)")
    there = "what is there already, in place of a download: an original archive or its folder, parquet files, an npz"
    parser.add_argument("--source", type=a_path, metavar="PATH", help=there)
    parser.add_argument(
        "--croissant", type=a_path, metavar="FILE", help="write the set's description as Croissant; nothing is fetched"
    )
    options = parser.parse_args(argv)
    try:
        if options.croissant:
            write_atomically(options.croissant, render_croissant(get_info(options.name)).encode())
            print(f"{options.croissant}: {options.name}, as Croissant {VERSION}")
            return Exit.DONE
        info, path = get_info(options.name), fetch.ensure(options.name, options.data_dir, options.source)
        print(f"{path}\n{info.num_train:,} train and {info.num_test:,} test images of {info.num_classes} classes")
        for array, digest in storage.compute_sha256(storage.open_arrays(path)).items():
            print(f"{digest}  {array}")
    except SpecError as error:
        parser.error(str(error))
    return Exit.DONE


if __name__ == "__main__":
    sys.exit(main())
