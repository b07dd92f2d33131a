"""Reading lines and records that may be damaged in any byte, and saying in one line what is wrong with them.

Below ``records`` on the data's path, which adds the file's name to what is said here.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from typing import Any

from pydantic import ValidationError

_SEAL = re.compile(rb',\n "sha256": "([0-9a-f]{64})"\n}\Z')


def seal(data: bytes) -> bytes:
    """Add a last field to an indented JSON object: the SHA-256 of its bytes without that field."""
    body = data.removesuffix(b"\n}")
    return body + f',\n "sha256": "{hashlib.sha256(data).hexdigest()}"\n}}'.encode()


def unseal(data: bytes) -> bytes:
    """Take the last field of ``seal`` off again; what has none, from before there were seals, stays as it is.

    Where a seal itself is damaged it stays too, as a field that no record has.

    Raises:
        ValueError: if any other byte was changed.
    """
    found = _SEAL.search(data)
    if found is None:
        return data
    body = data[: found.start()] + b"\n}"
    if hashlib.sha256(body).hexdigest().encode() != found[1]:
        raise ValueError("it was damaged or changed, its content has another SHA-256 than it says")
    return body


def read_object(line: str) -> dict[str, Any]:
    """One line of a file of JSON objects.

    Raises:
        ValueError: if it is none.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("not JSON") from error
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def read_metrics_line(line: str) -> dict[str, Any]:
    """The step, and finite numbers or lists by their names.

    Raises:
        ValueError: if the line holds anything else.
    """
    found = read_object(line)
    if type(found.get("step")) is not int:
        raise ValueError("without the number of its step")
    for name, value in found.items():
        if not isinstance(value, list) and (type(value) not in (int, float) or not math.isfinite(value)):
            raise ValueError(f"no line of numbers, as {name} is {str(value)[:40]!r}")
    return found


def check_each_once(data: bytes) -> None:
    """Refuse JSON in which an object has two values for one name, of which a reader would take either.

    Raises:
        ValueError: for the first such name.
    """
    _EACH_ONCE.decode(data.decode())


def _check_pairs(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        doubled = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"{doubled!r} is there twice")


_EACH_ONCE = json.JSONDecoder(object_pairs_hook=_check_pairs)


def describe(error: Exception) -> str:
    """Say in one line what is wrong with a file; of a record's fields the first: "top1_percent is 150: Input ..."."""
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0]
    first = error.errors(include_url=False)[0]
    name, found = ".".join(map(str, first["loc"])), first["input"]
    if not name:
        return first["msg"].removeprefix("Value error, ")
    is_shown = first["type"] != "missing" and isinstance(found, bool | int | float | str | None)
    return f"{name} is {str(found)[:40]!r}: {first['msg']}" if is_shown else f"{name}: {first['msg']}"
