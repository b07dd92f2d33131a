"""All samples through the workers and into the sink, portion by portion, from where an earlier process was killed."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator

from rich.console import Console

from imagesets.manifest import Split
from imagesets.prepare.collected import Collected, collect
from imagesets.prepare.images import Corrupt, Treated, Treatment, corrupt_error, treat_all
from imagesets.prepare.portions import Finished, Journal, Portion
from imagesets.prepare.progress import show_progress
from imagesets.prepare.request import Request
from imagesets.prepare.samples import Original
from imagesets.prepare.sinks import Sink
from imagesets.prepare.targets import divide_samples
from imagesets.prepare.workers import map_in_order

_IMAGES_PER_TASK = 32
_MIN_IMAGES_PER_WORKER = 500  # a process takes seconds to start


def convert_splits(
    request: Request, original: Original, sink: Sink, journal: Journal, console: Console
) -> dict[Split, Collected]:
    """Work through all portions that are not done."""
    portions = divide_samples(request, original, sink)
    done = _find_done(portions, sink, journal, request.skip_corrupt)
    todo = portions[len(done) :]
    num_todo = sum(portion.stop - portion.start for portion in todo)
    num_workers = min(request.num_workers, max(1, num_todo // _MIN_IMAGES_PER_WORKER))
    treatment = Treatment(sink.result, request.max_side, request.quality)
    tasks = (
        [original.samples[portion.split].place(index) for index in indexes]
        for portion in todo
        for indexes in _tasks(portion)
    )
    with contextlib.ExitStack() as stack:
        results = map_in_order(functools.partial(treat_all, treatment=treatment), tasks, num_workers)
        stack.enter_context(contextlib.closing(results))
        num_all = sum(map(len, original.samples.values()))
        advance = stack.enter_context(
            show_progress(f"{request.dataset} {request.stored_as}", num_all - num_todo, num_all, console)
        )
        for portion in todo:
            done[portion] = _convert_portion(
                portion, results, sink, advance, functools.partial(_skip, request, original)
            )
            journal.write(portion, done[portion])
    return {
        split: collect(samples, [(portion, done[portion]) for portion in portions if portion.split == split])
        for split, samples in original.samples.items()
    }


def _find_done(portions: list[Portion], sink: Sink, journal: Journal, skip_corrupt: bool) -> dict[Portion, Finished]:
    """What an earlier process did, up to the first gap: a format may write portions one after the other."""
    done: dict[Portion, Finished] = {}
    for portion in portions:
        finished = journal.read(portion)
        if finished is None or (finished.skipped and not skip_corrupt) or not sink.has(portion, finished):
            break
        done[portion] = finished
    return done


def _convert_portion(
    portion: Portion,
    results: Iterator[list[Treated | Corrupt]],
    sink: Sink,
    advance: Callable[[int], None],
    skip: Callable[[Portion, int, str], None],
) -> Finished:
    sizes: list[tuple[int, int]] = []
    skipped: dict[int, str] = {}

    def images() -> Iterator[tuple[int, Treated]]:
        for indexes in _tasks(portion):
            for index, outcome in zip(indexes, next(results), strict=True):
                if isinstance(outcome, Corrupt):
                    skip(portion, index, outcome.reason)
                    skipped[index] = outcome.reason
                else:
                    sizes.append(outcome.size)
                    yield index, outcome
            advance(len(indexes))

    written = sink.write(portion, images())
    return Finished(skipped=skipped, sizes=sizes, places=written.places, names=written.names, file=written.file)


def _tasks(portion: Portion) -> list[range]:
    edges = [*range(portion.start, portion.stop, _IMAGES_PER_TASK), portion.stop]
    return [range(start, stop) for start, stop in itertools.pairwise(edges)]


def _skip(request: Request, original: Original, portion: Portion, index: int, reason: str) -> None:
    if not request.skip_corrupt:
        raise corrupt_error(original.samples[portion.split].names[index], original.source, reason)
