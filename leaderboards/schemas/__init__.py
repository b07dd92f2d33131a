"""The published forms of our own files, and of what ``grid.py --json`` answers, as JSON Schemas with a version each.

    result.schema.json   one finished run, as ``suite.store.results.Result`` writes and reads it
    long.schema.json     one line of the CSV: a cell of a table; an empty field is null
    verification.schema.json   what ``verify --report`` writes
    entry.schema.json    what ``entries/NAME/entry.toml`` holds
    list, dry_run, status, show, check   an answer of ``grid.py --json`` each

``python -m leaderboards.schemas`` writes the files beside this one. A change of the form is a new version: results of
older ones are read, those of newer ones are refused by their number.
"""

from pathlib import Path
from typing import Any

from leaderboards.schemas.answers import ANSWER_FORMAT, ANSWERS
from leaderboards.schemas.entry import ENTRY_FORMAT, EntryFile
from leaderboards.schemas.long_line import LONG_FORMAT, LongLine
from leaderboards.schemas.verification import VERIFICATION_FORMAT, Verification
from suite.store.results import RESULT_FORMAT, Result

FOLDER = Path(__file__).parent
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def published() -> dict[str, dict[str, Any]]:
    """The schemas as they should lie in the files, by file name."""
    result = Result.model_json_schema()
    result["properties"]["sha256"] = {"type": "string", "description": "of the object's bytes without this last field"}
    forms = {"result": (RESULT_FORMAT, result), "long": (LONG_FORMAT, LongLine.model_json_schema())}
    forms["verification"] = VERIFICATION_FORMAT, Verification.model_json_schema(mode="serialization")
    forms["entry"] = ENTRY_FORMAT, EntryFile.model_json_schema()
    forms |= {name: (ANSWER_FORMAT, form.model_json_schema(mode="serialization")) for name, form in ANSWERS.items()}
    return {
        f"{name}.schema.json": {"$schema": _DIALECT, "$id": f"convolutional-prior/{name}/{version}", **schema}
        for name, (version, schema) in forms.items()
    }
