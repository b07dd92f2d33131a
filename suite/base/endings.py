"""How an entry point ends where the user, a file or the disk is at fault: in a line, never in a traceback."""

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

from suite.base.errors import SpecError, SuiteError
from suite.base.exit_codes import Exit

_P = ParamSpec("_P")


def ends_in_message(main: Callable[_P, int]) -> Callable[_P, int]:
    """Decorate a main function: an error of ours or of the system becomes a message and an exit status."""

    @functools.wraps(main)
    def guarded(*arguments: _P.args, **named: _P.kwargs) -> int:
        try:
            return main(*arguments, **named)
        except (SuiteError, OSError) as error:
            cure = "" if isinstance(error, SuiteError) else "; mend that, or name another folder"
            with contextlib.suppress(OSError):
                print(f"error: {error}{cure}", file=sys.stderr)
            return Exit.MISUSE if isinstance(error, SpecError) else Exit.FAILED

    return guarded
