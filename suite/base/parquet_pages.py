"""A column of a Parquet file's row group -> the place of each of its values, so that one is read without the others.

A column is a row of pages, each behind a header in Thrift's compact protocol, and mostly compressed. Values lie in a
data page or in the dictionary before it, behind their lengths of four bytes (https://parquet.apache.org/docs/file-format/).
Snappy compresses fragments of 64 KiB, each by itself: of its pages, only those with the value are read.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from suite.base.errors import DataError

Place = tuple[int, int, int, int]  # offset, length; offset and length of the compressed page that they count in, or 0

_INDEX_PAGE, _DICTIONARY_PAGE = 1, 2
_PLAIN, _BY_DICTIONARY = 0, (2, 8)
_FRAGMENT = 1 << 16  # bytes that snappy compresses by themselves


def import_pyarrow() -> Any:
    """``pyarrow`` and ``pyarrow.parquet``; raise DataError where they are not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(f'Parquet files are read by pyarrow ({error}): pip install ".[parquet]"') from error
    return pyarrow


def decompress(data: bytes, codec: str) -> bytes:
    """A page's bytes, or of snappy any run of its fragments, without the length before; ValueError for broken ones."""
    pyarrow = import_pyarrow()
    try:
        if codec == "LZ4":  # whose pages are blocks without their length
            raise ValueError("pages compressed by LZ4 are not read here: write it with snappy or zstd")
        if codec != "SNAPPY":
            return bytes(pyarrow.CompressedInputStream(pyarrow.BufferReader(data), codec.lower()).read())
        *_, (end, num_bytes) = _walk_snappy(data)
        if end != len(data):
            raise ValueError(f"it has {len(data):,} bytes, expected {end:,}")
        groups = [num_bytes >> shift & 127 for shift in range(0, max(num_bytes.bit_length(), 1), 7)]
        header = bytes([group | 128 for group in groups[:-1]] + groups[-1:])
        return bytes(pyarrow.Codec("snappy").decompress(header + data, num_bytes, asbytes=True))
    except (OSError, IndexError) as error:
        raise ValueError(str(error)) from error


def _walk_snappy(data: bytes) -> Iterator[tuple[int, int]]:
    """Where each literal and copy of a snappy stream starts, and its end: there, and decompressed."""
    at = size = 0
    while at < len(data):
        yield at, size
        tag, kind = data[at] >> 2, data[at] & 3
        if kind == 0:
            num_more = max(tag - 59, 0)
            length = int.from_bytes(data[at + 1 : at + 1 + num_more], "little") + 1 if num_more else tag + 1
            at += 1 + num_more + length
        else:
            length = (tag & 7) + 4 if kind == 1 else tag + 1
            at += (0, 2, 3, 5)[kind]
        size += length
    yield at, size


class _Compact:
    """Thrift's compact protocol, as far as page headers use it."""

    def __init__(self, data: bytes) -> None:
        self._data, self.end = data, 0

    def read_varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._data[self.end]
            self.end += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def read_struct(self) -> dict[int, Any]:
        """The values of a structure by the numbers of its fields."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._data[self.end]:
            self.end += 1
            number = number + (head >> 4) if head >> 4 else self._read_int()
            fields[number] = self._read_value(head & 15)
        self.end += 1
        return fields

    def _read_int(self) -> int:
        number = self.read_varint()
        return number >> 1 ^ -(number & 1)

    def _read_value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self._read_int()
        if kind == 12:
            return self.read_struct()
        if kind != 8:
            raise ValueError(f"a page's header has a field of type {kind}, which none has")
        length = self.read_varint()  # of bytes, such as the least value: of no use here
        self.end += length
        return None


def find_values(chunk: bytes, start: int, codec: str, values: list[bytes]) -> list[Place]:
    """The place of each value of a column without nulls.

    Args:
        chunk: the column's bytes in the file, from ``start`` on.
        codec: Parquet's name for their compression.
        values: the values as pyarrow reads them. A place is given only where these very bytes are.

    Raises:
        ValueError: the bytes are elsewhere, or encoded in a way that leaves them nowhere.
    """
    compact, places, known = _Compact(chunk), list[Place](), dict[bytes, Place]()
    while len(places) < len(values) and compact.end < len(chunk):
        header = compact.read_struct()
        second = header.get(8) or {}  # of a data page of version 2, whose first bytes are never compressed
        about = header.get(5) or header.get(7) or second
        first, compact.end = compact.end + second.get(5, 0) + second.get(6, 0), compact.end + header[3]
        encoding = _PLAIN if header[1] == _DICTIONARY_PAGE else about.get(4 if second else 2)
        here = values[len(places) : len(places) + about.get(1, 0)]
        if header[1] == _INDEX_PAGE:
            continue
        if encoding in _BY_DICTIONARY:
            places += [known[value] for value in here]
            continue
        if encoding != _PLAIN:
            raise ValueError(f"its values have Parquet's encoding {encoding}, expected plain ones or a dictionary")
        is_packed = codec != "UNCOMPRESSED" and second.get(7, True)
        data, place = _open_page(chunk[first : compact.end], start + first, codec if is_packed else None)
        found = _split(data, about[1], [] if header[1] == _DICTIONARY_PAGE else here)
        pairs = [(data[at : at + length], place(at, length)) for at, length in found]
        if header[1] == _DICTIONARY_PAGE:
            known = dict(pairs)
        elif [value for value, _ in pairs] == here:
            places += [place for _, place in pairs]
        else:
            raise ValueError(f"the values are not where the page at byte {start + first:,} should have them")
    if len(places) != len(values):
        raise ValueError(f"its pages have {len(places):,} values, expected {len(values):,}")
    return places


def _open_page(page: bytes, start: int, codec: str | None) -> tuple[bytes, Callable[[int, int], Place]]:
    """A page's bytes, and a function that says where a part of them lies: of snappy's, in which of its fragments."""
    if codec is None:
        return page, lambda at, length: (start + at, length, 0, 0)
    if codec != "SNAPPY":
        return decompress(page, codec), lambda at, length: (at, length, start, len(page))
    length_before = _Compact(page)
    length_before.read_varint()
    start, page = start + length_before.end, page[length_before.end :]
    data = decompress(page, codec)
    borders = {size: at for at, size in _walk_snappy(page) if size % _FRAGMENT == 0 or size == len(data)}

    def place(at: int, length: int) -> Place:
        first, last = at // _FRAGMENT * _FRAGMENT, min(-(-(at + length) // _FRAGMENT) * _FRAGMENT, len(data))
        if first in borders and last in borders:
            part = page[borders[first] : borders[last]]
            with contextlib.suppress(ValueError):  # fragments of other sizes, which copy from one another
                if decompress(part, codec)[at - first :][:length] == data[at : at + length]:
                    return at - first, length, start + borders[first], len(part)
        return at, length, start, len(page)

    return data, place


def _split(data: bytes, count: int, values: list[bytes]) -> list[tuple[int, int]]:
    """Offset and length of each plain value of a page, which ends where these values do, or else starts with one."""
    at, found = len(data) - sum(4 + len(value) for value in values) if values else 0, []
    for _ in range(count):
        length = int.from_bytes(data[at : at + 4], "little")
        found.append((at + 4, length))
        at += 4 + length
    return found
