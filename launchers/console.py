"""Consoles whose output cannot steer the terminal: names, errors and commits come from files that others write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class SafeConsole(Console):
    """A console that spells control characters out; its own colors and cursor movements stay."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape before anything is measured, so that tables keep their shape."""
        return super().render_str(escape(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render, and replace what a terminal would obey by its code, such as ``\\x1b``."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape(segment.text), segment.style)


def escape(text: str) -> str:
    """Spell out, such as ``\\x1b``, control characters and those that turn text around; line breaks and tabs stay."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
