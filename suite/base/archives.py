"""Reading tar and zip archives that may be a stranger's: members are listed, and read by offset or written as files."""

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, NamedTuple, Self, cast

from suite.base.errors import DataError
from suite.base.files import open_file

GZIP = (".tar.gz", ".tgz")

_MAX_ZEROS = 1 << 20  # bytes after the end mark: the largest record that anybody pads to
_MAX_EXTENSION = 1 << 20  # bytes of a header's extension, such as a long name
_ZIP_HEADER_BYTES = 30  # of a member's own header, before its name
_EXTENSIONS = (b"x", b"g", b"X", tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)


class StrictHeader(tarfile.TarInfo):
    """A member's header that refuses damage, for ``tarfile.open(..., tarinfo=StrictHeader)``.

    ``TarFile`` takes a damaged header for the end of the archive, passes over all that follows a block of zeros, such
    as a second archive in the same file, and fills a sparse member of a few bytes up to any size that it claims.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.size < 0 or (header.type in _EXTENSIONS and header.size > _MAX_EXTENSION):
            raise tarfile.HeaderError(f"a header claims {header.size:,} bytes")
        return header

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        try:
            member = super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            rest = archive.fileobj.read(_MAX_ZEROS + 1)
            if len(rest) > _MAX_ZEROS or rest.count(0) != len(rest):
                raise tarfile.ReadError(
                    f"it goes on after its end mark at byte {archive.offset:,}: it is damaged, or several archives in "
                    "one file, each of which has to be a file of its own"
                ) from None
            raise
        except (tarfile.HeaderError, ValueError, OverflowError) as error:
            what = f"it is cut short or broken: after {archive.offset:,} bytes there is no end mark ({error})"
            raise tarfile.ReadError(what) from error
        if member.issparse():
            raise tarfile.ReadError(f"member {member.name!r} is sparse, whose size is only claimed; expected none")
        return member


def unpack_files(
    archive: tarfile.TarFile, folder: Path, find_fault: Callable[[tarfile.TarInfo], str] = lambda member: ""
) -> None:
    """Write the plain files of an archive below a folder, without owners, rights and times.

    ``TarFile.extractall`` follows links that an archive brings along, and its filters, which older Pythons do not have,
    were led out of the folder more than once. A sparse file of a few bytes may claim to be gigabytes of nothing.

    Raises:
        ValueError: it holds a link, a device, a FIFO, a sparse file, a file twice, a name that leads out of the folder,
            or what ``find_fault`` names a fault of.
        OSError, tarfile.TarError: a file cannot be written, or the archive is damaged.
    """
    while (member := archive.next()) is not None:
        archive.members = []  # type: ignore[attr-defined]  # as there may be millions
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise ValueError(f"it holds {member.name!r}, which leads out of its folder")
        path = folder / name
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            continue
        content = archive.extractfile(member) if member.isreg() and not member.issparse() else None
        if content is None:
            raise ValueError(f"it holds {member.name!r}, which is no plain file")
        if fault := find_fault(member):
            raise ValueError(f"it holds {member.name!r}, {fault}")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with content, path.open("xb") as file:
                shutil.copyfileobj(content, file)
        except FileExistsError as error:
            raise ValueError(f"it holds {member.name!r} twice") from error


def list_stored_members(file: BinaryIO) -> Iterator[tuple[str, int, int]]:
    """Name, offset and length of each file in a zip, which lies there as it is.

    Raises:
        ValueError, zipfile.BadZipFile: one is compressed or encrypted, or the zip is damaged.
    """
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                raise ValueError(f"{info.filename!r} is compressed or encrypted, as nothing is by zip -0 -r")
            file.seek(info.header_offset)
            header = file.read(_ZIP_HEADER_BYTES)
            lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
            offset = info.header_offset + _ZIP_HEADER_BYTES + lengths
            if header[:4] != b"PK\3\4" or offset + info.file_size > archive.start_dir:
                raise zipfile.BadZipFile(f"the header of {info.filename!r} contradicts the table at its end")
            yield info.filename, offset, info.file_size


class Member(NamedTuple):
    """A regular file in a tar: its bytes are at ``offset`` of the tar's own file."""

    name: str
    offset: int
    length: int


class _Part:
    """A file that ends where a member of it does."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file, self._end = file, end
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        return self._file.read(max(min(size, self._end - self._file.tell()), 0))


def list_tar_members(path: Path, within: Member | None = None) -> Iterator[Member]:
    """The regular files in a tar, or in a tar that is a member of one; of a compressed one, as if it were not.
    DataError if the tar is cut short, compressed or broken or goes on after its end, or has a member that is no plain
    file or whose name leads out of it."""
    shown = f"{path}: {within.name}" if within else str(path)
    try:
        with open_file(path) as file:
            yield from _list_tar(path, file, within, shown)
    except FileNotFoundError as error:
        raise DataError(f"{shown} is not there") from error
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        kind = "a gzip" if shown.endswith(GZIP) else "an uncompressed"
        raise DataError(f"{shown} cannot be read as {kind} tar: {str(error).rstrip('.')}. Bring it again.") from error


def _list_tar(path: Path, file: BinaryIO, within: Member | None, shown: str) -> Iterator[Member]:
    file.seek(within.offset if within else 0)
    source = cast(BinaryIO, _Part(file, within.offset + within.length)) if within else file  # offsets stay absolute
    mode: Literal["r|gz", "r:"] = "r|gz" if path.name.endswith(GZIP) else "r:"
    names = set[str]()
    with tarfile.open(fileobj=source, mode=mode, tarinfo=StrictHeader) as tar:
        while (info := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # a million of them would fill the memory
            name = check_member_name(shown, info.name)
            if info.isdir():
                continue
            if not info.isfile():
                raise DataError(f"{shown}: {info.name} is not a plain file, and nothing else belongs in there")
            if name in names:
                raise DataError(f"{shown}: {info.name} is there twice, and nobody knows which counts. Remove one.")
            names.add(name)
            yield Member(info.name, info.offset_data, info.size)


def check_member_name(shown: str, name: str) -> str:
    """A member's name without needless parts."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if not name or any(character < " " for character in name):
        raise DataError(f"{shown}: a member is called {name!r}, which nobody would write: this file is damaged")
    if parts.is_absolute() or ".." in parts.parts:
        raise DataError(f"{shown}: the name of member {name!r} leads out of the archive. Do not trust this file.")
    return str(PurePosixPath(name))
