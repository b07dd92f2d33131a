"""The treatment of one image: read it, decode it to prove that it is whole, and shrink or encode it where asked to.

Runs in worker processes, on a few images at a time. The same image always gives the same bytes.
"""

import io
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from PIL import Image, UnidentifiedImageError

from imagesets.decode import Pixels, decode, to_rgb
from imagesets.originals.samples import ByteRange

DEFAULT_QUALITY = 90  # of a JPEG that had to be shrunk

_OTHER_FORMATS = ("BMP", "GIF", "PPM", "TIFF", "WEBP")
_EXTENSIONS = {b"\xff\xd8\xff": "jpg", b"\x89PNG\r\n\x1a\n": "png"}

Wanted = Literal["encoded", "square", "checked"]


@dataclass(frozen=True)
class Treatment:
    """The treatment that is asked for. "encoded" gives a JPEG's or PNG's bytes; "square" gives pixels, squashed to
    ``max_side`` squared where that is given; "checked" gives nothing back."""

    wanted: Wanted
    max_side: int | None = None  # pixels that the longer side of longer images becomes; None leaves them
    quality: int | None = None  # that every JPEG is encoded again with; None keeps those that need no shrinking


@dataclass(frozen=True, slots=True)
class Treated:
    """An image as it is to be stored. ``size`` is the original's height and width, no EXIF rotation applied."""

    size: tuple[int, int]
    data: bytes | Pixels | None
    num_bytes: int  # of the source's bytes
    crc32: int  # of what is stored, or else of the source's bytes

    @property
    def extension(self) -> str:
        assert isinstance(self.data, bytes), "only encoded images have one"
        return _extension(self.data) or ""


def treat_all(ranges: list[ByteRange], treatment: Treatment) -> list[Treated | str]:
    """Read some images, decode all of each, and make of it what is to be stored; or say why it cannot be decoded.
    DataError if a file cannot be read, which no skipping of corrupt images excuses."""
    return [_treat(image.read(), treatment) for image in ranges]


def _treat(raw: bytes | Pixels, treatment: Treatment) -> Treated | str:
    try:
        pixels = decode_any(raw)
    except ValueError as error:
        return str(error)
    height, width = pixels.shape[:2]
    stored = _make(raw, pixels, treatment)
    crc32 = zlib.crc32(np.frombuffer(raw if stored is None else stored, np.uint8).data)
    return Treated((height, width), stored, len(raw) if isinstance(raw, bytes) else raw.nbytes, crc32)


def decode_any(data: bytes | Pixels) -> Pixels:
    """Pixels of a JPEG or PNG as training sees them; of other formats, what Pillow makes of them; pixels as they are.
    ValueError if it cannot be decoded."""
    if isinstance(data, np.ndarray) or _extension(data) is not None:
        return decode(data)
    try:
        with Image.open(io.BytesIO(data), formats=_OTHER_FORMATS) as image:  # none that starts a program
            return to_rgb(image)
    except UnidentifiedImageError as error:
        raise ValueError(f"it is no image in a known format ({', '.join(('JPEG', 'PNG', *_OTHER_FORMATS))})") from error
    except (OSError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from error


def decodable(image: bytes | Pixels) -> bytes | Pixels:
    """A source's image in a form that every reader knows: a JPEG, a PNG, or pixels."""
    return image if isinstance(image, np.ndarray) or _extension(image) is not None else decode_any(image)


def _make(raw: bytes | Pixels, pixels: Pixels, treatment: Treatment) -> bytes | Pixels | None:
    if treatment.wanted == "checked":
        return None
    max_side, (height, width) = treatment.max_side, pixels.shape[:2]
    if treatment.wanted == "square":
        return pixels if max_side is None else resize(pixels, max_side, max_side)
    factor = 1.0 if max_side is None else min(max_side / max(height, width), 1.0)
    extension = _extension(raw) if isinstance(raw, bytes) else None
    if isinstance(raw, bytes) and factor == 1 and (extension == "png" or (extension and treatment.quality is None)):
        return raw
    pixels, file = resize(pixels, max(1, round(height * factor)), max(1, round(width * factor))), io.BytesIO()
    is_jpeg = extension == "jpg"
    options: dict[str, Any] = {"quality": treatment.quality or DEFAULT_QUALITY} if is_jpeg else {}
    Image.fromarray(pixels).save(file, "JPEG" if is_jpeg else "PNG", **options)
    return file.getvalue()


def resize(pixels: Pixels, height: int, width: int) -> Pixels:
    """Antialiased bicubic interpolation."""
    if pixels.shape[:2] == (height, width):
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC))


def _extension(data: bytes) -> str | None:
    return next((extension for magic, extension in _EXTENSIONS.items() if data.startswith(magic)), None)
