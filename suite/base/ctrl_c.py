"""Ctrl-C ends a command with one line, also while it still loads. Commands import this before all that takes time."""

import sys


def _end(kind: type[BaseException], *failure: object) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        return sys.__excepthook__(kind, *failure)  # type: ignore[arg-type]  # an import of their types takes time
    print("interrupted", file=sys.stderr)
    sys.exit(130)  # Exit.INTERRUPTED, whose import takes time


sys.excepthook = _end
