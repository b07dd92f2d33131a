"""The bar of a long conversion; nothing at all in a log file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def show_status(text: str, console: Console) -> contextlib.AbstractContextManager[object]:
    """A line on the terminal about work of unknown length."""
    return console.status(text) if console.is_terminal else contextlib.nullcontext()


@contextlib.contextmanager
def show_progress(title: str, num_done: int, num_all: int, console: Console) -> Iterator[Callable[[int], None]]:
    """Show a bar on the terminal: done, all, time gone and left.

    Args:
        num_done: images of an earlier start.
        num_all: images in all.

    Yields:
        A function to call with the number of images just done.
    """
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=num_all, completed=num_done)
        yield lambda count: progress.advance(task, count)
