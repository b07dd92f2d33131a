"""Ctrl-C ends a command with one line, also while it still loads. Commands import this before all that takes time."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own takes time to import
if TYPE_CHECKING:
    from types import TracebackType


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        return sys.__excepthook__(kind, error, trace)
    print("interrupted", file=sys.stderr)
    sys.exit(130)  # Exit.INTERRUPTED, whose import takes time


sys.excepthook = _end
