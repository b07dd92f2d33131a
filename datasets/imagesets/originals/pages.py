"""A column of a Parquet file's row group -> the place of each of its values, so that one is read without the others.

A column's chunk is a row of pages: a header by Thrift's compact protocol, then the page, mostly compressed. Values lie
in a data page, or in the dictionary page before it, each behind its length in four bytes. The format:
https://parquet.apache.org/docs/file-format/data-pages/
"""

from typing import Any

from suite.base.errors import DataError

_DICTIONARY_PAGE, _INDEX_PAGE = 2, 1
_PLAIN, _BY_DICTIONARY = 0, (2, 8)
_MAX_RATIO = 64  # of snappy, which copies at most 64 bytes at a time: no header makes us take more memory


def import_pyarrow() -> Any:
    """``pyarrow``, with ``pyarrow.parquet``; raise DataError where it is not installed."""
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
            num_bytes = min(Compact(data).read_varint(), _MAX_RATIO * len(data))
            return bytes(pyarrow.Codec("snappy").decompress(data, num_bytes, asbytes=True))
        return bytes(pyarrow.CompressedInputStream(pyarrow.BufferReader(data), codec.lower()).read())
    except (OSError, IndexError) as error:
        raise ValueError(str(error)) from error


class Compact:
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
        if kind == 8:  # bytes, such as the least value: of no use here
            self.end += self.read_varint()
            return None
        raise ValueError(f"a page's header has a field of type {kind}, which none has")


def find_values(chunk: bytes, start: int, codec: str, values: list[bytes]) -> list[tuple[int, int, int, int]]:
    """The place of each value of a column: offset, length, and offset and length of the compressed page that it is in.

    Without a compressed page, the last two are 0 and the offset counts in the file.

    Args:
        chunk: the column's bytes in the file, without nulls.
        start: the offset of the chunk in the file.
        codec: the chunk's compression.
        values: the values as pyarrow reads them. A place is given only where these very bytes are.

    Raises:
        ValueError: the bytes are elsewhere, or encoded in a way that leaves them nowhere.
    """
    compact, places = Compact(chunk), list[tuple[int, int, int, int]]()
    known: dict[bytes, tuple[int, int, int, int]] = {}
    while len(places) < len(values) and compact.end < len(chunk):
        header = compact.read_struct()
        about, second = header.get(5) or header.get(7) or header.get(8) or {}, header.get(8) or {}
        end = compact.end + header[3]
        first = compact.end + second.get(5, 0) + second.get(6, 0)  # behind the levels, which are not compressed there
        data, compact.end = chunk[first:end], end
        encoding = about.get(4 if second else 2)
        if header[1] == _INDEX_PAGE:
            continue
        here = values[len(places) : len(places) + about[1]]
        if header[1] != _DICTIONARY_PAGE and encoding in _BY_DICTIONARY:
            places += [known[value] for value in here]
            continue
        page = (start + first, len(data)) if codec != "UNCOMPRESSED" and second.get(7, True) else (0, 0)
        origin = 0 if page[1] else start + first
        data = decompress(data, codec) if page[1] else data
        if header[1] == _DICTIONARY_PAGE:
            at = 0
            for _ in range(about[1]):
                length = int.from_bytes(data[at : at + 4], "little")
                known[data[at + 4 : at + 4 + length]] = (origin + at + 4, length, *page)
                at += 4 + length
            continue
        if encoding != _PLAIN:
            raise ValueError(f"its images have Parquet's encoding {encoding}, expected plain ones or a dictionary")
        at = len(data) - sum(4 + len(value) for value in here)  # values end where the page does
        for value in here:
            if data[at + 4 : at + 4 + len(value)] != value:
                raise ValueError(f"an image is not where its page, at byte {start + first:,}, should have it")
            places.append((origin + at + 4, len(value), *page))
            at += 4 + len(value)
    if len(places) != len(values):
        raise ValueError(f"its pages have {len(places):,} images, expected {len(values):,}")
    return places
