"""A column of a Parquet file's row group -> the place of each of its values, so that one is read without the others.

A column is a row of pages, each behind a header in Thrift's compact protocol, and mostly compressed. Values lie in a
data page or in the dictionary before it, behind their lengths of four bytes (https://parquet.apache.org/docs/file-format/).
"""

from typing import Any

from suite.base.errors import DataError

Place = tuple[int, int, int, int]  # offset, length; offset and length of the compressed page that they count in, or 0

_INDEX_PAGE, _DICTIONARY_PAGE = 1, 2
_PLAIN, _BY_DICTIONARY = 0, (2, 8)
_MAX_RATIO = 64  # of snappy, which copies at most 64 bytes at a time: no broken page makes us take more memory


def import_pyarrow() -> Any:
    """``pyarrow`` and ``pyarrow.parquet``; raise DataError where they are not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(f'Parquet files are read by pyarrow ({error}): pip install ".[parquet]"') from error
    return pyarrow


def decompress(data: bytes, codec: str) -> bytes:
    """A page's bytes; raise ValueError for broken ones."""
    pyarrow = import_pyarrow()
    try:
        if codec == "SNAPPY":
            num_bytes = min(_Compact(data).read_varint(), _MAX_RATIO * len(data))
            return bytes(pyarrow.Codec("snappy").decompress(data, num_bytes, asbytes=True))
        return bytes(pyarrow.CompressedInputStream(pyarrow.BufferReader(data), codec.lower()).read())
    except (OSError, IndexError) as error:
        raise ValueError(str(error)) from error


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
        data, page = chunk[first : compact.end], (0, 0)
        if codec != "UNCOMPRESSED" and second.get(7, True):
            data, page = decompress(data, codec), (start + first, len(data))
        found = _split(data, about[1], [] if header[1] == _DICTIONARY_PAGE else here)
        origin = 0 if page[1] else start + first
        pairs = [(data[at : at + length], (origin + at, length, *page)) for at, length in found]
        if header[1] == _DICTIONARY_PAGE:
            known = dict(pairs)
        elif [value for value, _ in pairs] == here:
            places += [place for _, place in pairs]
        else:
            raise ValueError(f"the values are not where the page at byte {start + first:,} should have them")
    if len(places) != len(values):
        raise ValueError(f"its pages have {len(places):,} values, expected {len(values):,}")
    return places


def _split(data: bytes, count: int, values: list[bytes]) -> list[tuple[int, int]]:
    """Offset and length of each plain value of a page, which ends where these values do, or else starts with one."""
    at, found = len(data) - sum(4 + len(value) for value in values) if values else 0, []
    for _ in range(count):
        length = int.from_bytes(data[at : at + 4], "little")
        found.append((at + 4, length))
        at += 4 + length
    return found
