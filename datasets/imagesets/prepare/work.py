"""All samples through the workers and into the sink, portion by portion, from where an earlier process was killed."""

import contextlib
import functools
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import MofNCompleteColumn

from imagesets.fetch.storage import write_file
from imagesets.formats.sinks import Collected, Finished, Portion, Sink, collect
from imagesets.manifest import Split
from imagesets.originals.samples import Original
from imagesets.originals.treatment import Treated, Treatment, treat_all
from imagesets.prefetch import in_order
from imagesets.prepare.settings import PrepareSettings
from suite.base.errors import DataError
from suite.base.far.downloads import show_bar
from suite.base.reading import read_model, read_object

Task = TypeVar("Task")
Returned = TypeVar("Returned")

_IMAGES_PER_TASK = 32
_MIN_IMAGES_PER_WORKER = 500  # a process takes seconds to start
_TASKS_AHEAD_PER_WORKER = 4


class Journal:
    """Notes in a working folder of the portions that are done, so that a killed conversion goes on.

    A portion is noted only once all that it wrote is on the disk, and a conversion with other settings starts over.
    ``ready`` is the folder below it that becomes the prepared one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.ready = folder, folder / "ready"

    def open(self, settings: dict[str, Any]) -> str | None:
        """Start, or go on if all settings are the same. Returns the settings that made it drop earlier work, if any."""
        path, text, changed = self.folder / "settings.json", json.dumps(settings, indent=1), None
        if self.folder.exists():
            try:
                earlier = read_object(path.read_bytes())
            except (OSError, ValueError):
                earlier = {}
            if earlier == json.loads(text) and self.ready.is_dir():
                return None
            changed = ", ".join(key for key in earlier if earlier[key] != settings.get(key)) or None
            shutil.rmtree(self.folder)
        self.ready.mkdir(parents=True)
        write_file(path, text.encode())
        return changed

    def read(self, portion: Portion) -> Finished | None:
        """A portion's note; None where it is not done."""
        try:
            return read_model(Finished, self._path(portion).read_bytes())
        except (OSError, ValueError):
            return None

    def write(self, portion: Portion, finished: Finished) -> None:
        write_file(self._path(portion), finished.model_dump_json().encode())

    def _path(self, portion: Portion) -> Path:
        return self.folder / f"{portion.stem}.json"


def convert_splits(
    settings: PrepareSettings, original: Original, sink: Sink, journal: Journal, console: Console
) -> dict[Split, Collected]:
    """Work through all portions that are not done.

    Args:
        settings, original, console: Options of the command, images that are converted, and terminal that shows the bar.
        sink, journal: Writer of the portions, and record of those that are done.
    """
    portions = [
        Portion(split, number, start, stop)
        for split, samples in original.samples.items()
        for number, (start, stop) in enumerate(itertools.pairwise(sink.edges(samples, settings.samples_per_shard)))
    ]
    done: dict[Portion, Finished] = {}  # up to the first gap: a format may write one after the other
    for portion in portions:
        finished = journal.read(portion)
        if finished is None or (finished.skipped and not settings.skip_corrupt) or not sink.has(portion, finished):
            break
        done[portion] = finished
    todo = portions[len(done) :]
    num_todo = sum(portion.stop - portion.start for portion in todo)
    num_workers = min(settings.num_workers, max(1, num_todo // _MIN_IMAGES_PER_WORKER))
    treatment = Treatment(sink.wanted, settings.max_side, settings.quality)
    tasks = (
        [original.samples[portion.split].byte_range(index) for index in indexes]
        for portion in todo
        for indexes in _tasks(portion)
    )
    treated = map_in_order(functools.partial(treat_all, treatment=treatment), tasks, num_workers)
    title, num_all = f"{settings.dataset} {settings.storage_format}", sum(map(len, original.samples.values()))
    with (
        contextlib.closing(treated),
        show_bar(title, console, num_all, num_all - num_todo, MofNCompleteColumn()) as advance,
    ):
        for portion in todo:
            done[portion] = _convert_portion(portion, original, treated, sink, advance, settings.skip_corrupt)
            journal.write(portion, done[portion])
    return {
        split: collect(samples, [(portion, done.pop(portion)) for portion in portions if portion.split == split])
        for split, samples in original.samples.items()
    }


def _convert_portion(
    portion: Portion,
    original: Original,
    results: Iterator[list[Treated | str]],
    sink: Sink,
    advance: Callable[[int], None],
    skip_corrupt: bool,
) -> Finished:
    sizes: list[tuple[int, int]] = []
    crc32s: list[int] = []
    skipped: dict[int, str] = {}

    def images() -> Iterator[tuple[int, Treated]]:
        for indexes in _tasks(portion):
            for index, outcome in zip(indexes, next(results), strict=True):
                if isinstance(outcome, str):
                    if not skip_corrupt:
                        raise DataError(
                            f"{original.samples[portion.split].names[index]} in {original.source} cannot be decoded: "
                            f"{outcome}. Replace it, or leave corrupt images out with --skip-corrupt; what is "
                            "done so far is kept."
                        )
                    skipped[index] = outcome
                else:
                    sizes.append(outcome.size)
                    crc32s.append(outcome.crc32)
                    yield index, outcome
            advance(len(indexes))

    written = sink.write(portion, images())
    places = {"crc32": crc32s, **written.places}
    return written.model_copy(skipped=skipped, sizes=sizes, places=places)


def _tasks(portion: Portion) -> list[range]:
    edges = [*range(portion.start, portion.stop, _IMAGES_PER_TASK), portion.stop]
    return [range(start, stop) for start, stop in itertools.pairwise(edges)]


def map_in_order(function: Callable[[Task], Returned], tasks: Iterable[Task], num_workers: int) -> Generator[Returned]:
    """Apply a function to many tasks in several processes; results come in order, and few of them wait.

    With one worker the work is done here; else ``function`` is importable by name, so that a fresh process finds it.
    DataError if a process was killed, and what ``function`` raises.
    """
    if num_workers == 1:
        yield from map(function, tasks)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy our threads' locks
    pool = ProcessPoolExecutor(num_workers, context, initializer=_start_worker)
    try:
        yield from in_order((pool.submit(function, task) for task in tasks), num_workers * _TASKS_AHEAD_PER_WORKER)
    except BrokenProcessPool as error:
        raise DataError(
            "a worker process was killed, perhaps for want of memory. Run the same command with fewer --workers: it "
            "goes on where this one ended."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it: a pool's workers would wait for a killed parent for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None, "this runs in a worker"
    sentinel = parent.sentinel

    def end_with_parent() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
