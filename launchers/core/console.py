"""Consoles whose output cannot steer the terminal: names, errors and commits come from files that others write."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.containers import Lines
from rich.segment import Segment
from rich.text import Text

from leaderboards.text.escaping import spell_controls

_MAX_CHARACTERS = 10_000  # of either end: more is never shown, and slow to lay out


class Excerpt(Text):
    """Text that others wrote, such as an error's, in a table or group: five lines at most, however narrow."""

    def __init__(self, text: str, style: str = "") -> None:
        shown = text[:_MAX_CHARACTERS] + text[_MAX_CHARACTERS:][-_MAX_CHARACTERS:]
        super().__init__(spell_controls(shown), style, overflow="fold", tab_size=1)

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        """Keep the last lines too: they say what to do, or name a log."""
        lines = super().wrap(console, width, **options)
        if len(lines) <= 5:
            return lines
        lines[2].truncate(width - 1)
        return Lines([*lines[:2], lines[2].append("…"), *lines[-2:]])


class SafeConsole(Console):
    """A console that spells control characters out; its own colors and cursor movements stay."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape before anything is measured, so that tables keep their shape."""
        return super().render_str(spell_controls(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        r"""Render, and replace what a terminal would obey by its code, such as ``\x1b``."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(spell_controls(segment.text), segment.style)
