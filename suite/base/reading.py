"""Reading lines and records that may be damaged in any byte, and saying in one line what is wrong with them.

All JSON that we have written is read by ``read_json`` or ``read_model``, so that no number from a file is out of range.
"""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from suite.base.errors import RecordError

MOST_WHOLE = 10**15  # in a file of ours: below 2**53, so that each whole number is a float of its own
_MOST = 3.5e38  # of other numbers: what 32 bits hold
_BY_LAYER = {"nonlocality": 0, "gates": 0, "centers": 2, "precisions": 3}  # [layer][head], and how many numbers of each
_Model = TypeVar("_Model", bound=BaseModel)
_SEAL = re.compile(rb',\n "sha256": "([0-9a-f]{64})"\n}\Z')


def seal(data: bytes) -> bytes:
    """Add a last field to an indented JSON object: the SHA-256 of its bytes without that field."""
    body = data.removesuffix(b"\n}")
    return body + f',\n "sha256": "{hashlib.sha256(data).hexdigest()}"\n}}'.encode()


def unseal(data: bytes) -> bytes:
    """Take the last field of ``seal`` off again; ValueError if any other byte was changed.

    What has no seal, from before there were seals, stays as it is. A seal that is itself damaged stays too, as a field
    that no record has.
    """
    found = _SEAL.search(data)
    if found is None:
        return data
    body = data[: found.start()] + b"\n}"
    if hashlib.sha256(body).hexdigest().encode() != found[1]:
        raise ValueError("it was damaged or changed, its content has another SHA-256 than it says")
    return body


class _OutOfRangeError(ValueError):
    """A number, as it is spelt, and the field that it is the value of."""

    def __init__(self, number: str, field: str = "") -> None:
        limits = f"expected whole numbers to {MOST_WHOLE:.0e}, others to {_MOST:g}"
        super().__init__(f"{field} is {number[:20].lower()!r}: {limits}")
        self.number = number


def read_json(data: bytes | str) -> Any:
    """Read JSON as we write it: each name once in an object, and numbers that are finite and in range. ValueError for
    all else."""
    try:
        text = data if isinstance(data, str) else data.decode()
        return _JSON.decode(text)
    except _OutOfRangeError as error:
        field = re.search(r'"(\w+)"\s*:[^"]*\Z', text.partition(error.number)[0])
        raise _OutOfRangeError(error.number, field[1] if field else "it") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("not JSON") from error


def read_model(kind: type[_Model], data: bytes | str) -> _Model:
    """Read JSON that a model of ours was written as; ValueError as of ``read_json``, for other fields and numbers in
    quotes."""
    try:
        found = kind.model_validate_json(data, strict=True)  # first, as it names more
    except OverflowError as error:
        raise ValueError(f"it holds a number out of range: {error}") from error
    read_json(data)
    return found


def read_object(line: bytes | str) -> dict[str, Any]:
    """One line of a file of JSON objects; errors as of ``read_json``, and for what is no object."""
    found = read_json(line)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def read_metrics_line(line: str) -> dict[str, Any]:
    """Read the step, and numbers by their names; by layer and head what is measured of each head. ValueError for
    anything else."""
    try:
        found = read_object(line)
    except _OutOfRangeError as error:
        raise ValueError(f"no line of numbers, as {error}") from error
    if type(found.get("step")) is not int or found["step"] < 0:
        raise ValueError("without the number of its step")
    for name, value in found.items():
        is_fine = _is_by_layer(value, _BY_LAYER[name]) if name in _BY_LAYER else type(value) in (int, float)
        if not (is_fine and name.isprintable()):
            raise ValueError(f"no line of numbers, as {ascii(name[:40])[1:-1]} is {str(value)[:40]!r}")
    return found


def _is_by_layer(value: object, width: int) -> bool:
    """Whether it is a list of lists of numbers, or of lists of ``width`` numbers each."""
    layers = value if isinstance(value, list) else [None]
    heads = [head for layer in layers for head in (layer if isinstance(layer, list) else [None])]
    if width:
        heads = [x for head in heads for x in (head if isinstance(head, list) and len(head) == width else [None])]
    return {type(number) for number in heads} <= {int, float}


def _whole(text: str) -> int:
    if len(text) > len(f"-{MOST_WHOLE}") or abs(int(text)) > MOST_WHOLE:
        raise _OutOfRangeError(text)
    return int(text)


def _real(text: str) -> float:
    if not abs(found := float(text)) <= _MOST:
        raise _OutOfRangeError(text)
    return found


def _check_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        doubled = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"{doubled!r} is there twice")
    return found


_JSON = json.JSONDecoder(object_pairs_hook=_check_pairs, parse_int=_whole, parse_float=_real, parse_constant=_real)


def unreadable(path: Path, error: Exception, advice: str) -> RecordError:
    """The error for a file of ours that cannot be read, with what to do next."""
    return RecordError(f"cannot read {path}: {describe(error)}. {advice}")


def describe(error: Exception) -> str:
    """Say in one line what is wrong with a file; of a record's fields the first: "top1_percent is 150: Input ..."."""
    if not isinstance(error, ValidationError):
        return (str(error).splitlines() or [type(error).__name__])[0]
    first = error.errors(include_url=False)[0]
    name, found = ".".join(map(str, first["loc"])), first["input"]
    if not name:
        return first["msg"].removeprefix("Value error, ")
    is_shown = first["type"] != "missing" and isinstance(found, bool | int | float | str | None)
    return f"{name} is {str(found)[:40]!r}: {first['msg']}" if is_shown else f"{name}: {first['msg']}"
