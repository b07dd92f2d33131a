"""Consoles whose output cannot steer the terminal: names, errors and commits come from files that others write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from leaderboards.text.escaping import spell_controls


class SafeConsole(Console):
    """A console that spells control characters out; its own colors and cursor movements stay."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape before anything is measured, so that tables keep their shape."""
        return super().render_str(spell_controls(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render, and replace what a terminal would obey by its code, such as ``\\x1b``."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(spell_controls(segment.text), segment.style)
