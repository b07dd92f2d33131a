"""Standard output and error, whatever their encoding: a character that it lacks is spelt, and ends no process."""

import codecs
import io
import sys

_SPELT = {"…": "...", "±": "+/-"}  # those that our messages hold; of others, such as of names, the code
_HANDLER = "spell"


def spell_what_streams_lack() -> None:
    """Let this process print any text, also names of files that are none."""
    codecs.register_error(_HANDLER, _spell)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _spell(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(_SPELT.get(each) or ascii(each)[1:-1] for each in lacking), error.end
