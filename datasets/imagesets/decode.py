"""The one decoder of all loaders of photographs: the bytes of a JPEG or PNG -> a window of it, resized.

Folders, tar shards and FFCV files all pass through here, so they give the same pixels. Pillow decodes an image down to
the window's last row. libjpeg-turbo 3, from the extra ``jpeg`` or the system, decodes the window by itself: what lies
above and beside it is only skipped, and the pixels equal the whole image's exactly. It also refuses data in which
libjpeg finds damage, where Pillow fills in grey. libjpeg-turbo tells its first warning alone: after one, the image is
decoded again without all that harms no pixel, and what is warned of then is damage.

Differs: from Pillow's crop and bicubic resize by at most 1 level in 99.99 % of values, 0.01 to 0.02 levels in the
mean (torch rounds the filter's weights to 16 bits). libjpeg's scaled decoding is left out: at 500 x 375 pixels it
is slower (only 1/2, 1/4 and 1/8 are vectorized), and from larger photographs its pixels are off by a level.

All functions may run in many threads at once; they release the GIL while decoding and resizing.
"""

import contextlib
import ctypes
import ctypes.util
import io
import re
import struct
import threading
import warnings
import zlib
from functools import cache, partial
from importlib import metadata
from math import prod
from typing import Literal, NamedTuple, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from PIL import __version__ as PILLOW_VERSION

Pixels = NDArray[np.uint8]
Box = tuple[int, int, int, int]  # top, left, height, width
Interpolation = Literal["bilinear", "bicubic"]
_RESIZE = {"bilinear": torch.ops.aten._upsample_bilinear2d_aa.out, "bicubic": torch.ops.aten._upsample_bicubic2d_aa.out}

MAX_PIXELS = 178_956_970  # where Pillow, too, refuses a decompression bomb
_MAX_KEPT_BYTES = 1 << 24  # a larger buffer is not kept for the next image
_JPEG_START, _JPEG_END, _PNG_START = b"\xff\xd8", b"\xff\xd9", b"\x89PNG\r\n\x1a\n"
_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SEQUENTIAL_MARKERS = (0xC0, 0xC1)
_LUMA_FACTORS = (0x11, 0x21, 0x12, 0x22, 0x41)  # blocks across and down for one of each colour: 4:4:4 to 4:1:1
_SCAN_MARKER, _COMMENT_MARKER, _NOTE_MARKERS = 0xDA, 0xFE, range(0xE0, 0xF0)
_NEXT_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")  # none of those within coded data
_BEHIND_PIXELS = re.compile("extraneous bytes before marker 0xd9")
_BELOW_WINDOW = re.compile("extraneous bytes before marker 0xd[0-79]")  # rows that are passed over
_MAX_ASPECT = 16  # of a longer image only the middle is resized for its central window


class _Header(NamedTuple):
    """The facts in an image's header; all but the size of a JPEG only."""

    height: int
    width: int
    is_plain: bool = False  # grey, or colours in a usual sampling: what libjpeg-turbo turns into windows of RGB
    is_sequential: bool = False  # coded from top to bottom: decoding can stop below a window
    height_offset: int = 0  # of the two bytes that hold the height
    block_width: int = 0  # pixels; decoding starts at a multiple of it


class _Region(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int) for name in "xywh")


def _load_turbojpeg() -> ctypes.CDLL | None:
    """libjpeg-turbo 3, from the extra's wheel ``turbojpeg`` or from the system; None if neither has it."""
    files = [file for found in metadata.distributions(name="turbojpeg") for file in found.files or ()]
    paths = [str(file.locate()) for file in files if re.search(r"libturbojpeg.*\.(so|dylib)", file.name)]
    for path in filter(None, (*paths, ctypes.util.find_library("turbojpeg"))):
        with contextlib.suppress(OSError):  # built for another machine
            library = ctypes.CDLL(path)
            if hasattr(library, "tj3SetCroppingRegion"):  # from 3.0 on
                library.tj3Init.restype, library.tj3GetErrorStr.restype = ctypes.c_void_p, ctypes.c_char_p
                return library
    return None


_TURBOJPEG = _load_turbojpeg()
JPEG_DECODER = "libjpeg-turbo 3" if _TURBOJPEG else f"Pillow {PILLOW_VERSION}"
"""Names what decodes JPEGs in this process."""


class _Workspace(threading.local):
    """A thread's buffers: fresh memory for every image can take half as long as its decoding."""

    def __init__(self) -> None:
        self._buffers: dict[str, Pixels] = {}

    def buffer(self, name: str, *shape: int) -> Pixels:
        """Memory of this shape with undefined contents, valid until this thread asks for the same name again."""
        num_bytes = prod(shape)
        if num_bytes > _MAX_KEPT_BYTES:
            return np.empty(shape, np.uint8)
        if name not in self._buffers or self._buffers[name].size < num_bytes:
            self._buffers[name] = np.empty(num_bytes, np.uint8)
        return self._buffers[name][:num_bytes].reshape(shape)


_WORKSPACE = _Workspace()


def is_decoded(data: bytes | Pixels) -> TypeGuard[Pixels]:
    """Whether these are an image's pixels, (H, W, 3), and not the bytes of a file."""
    return isinstance(data, np.ndarray) and data.ndim == 3


def read_size(data: bytes | Pixels) -> tuple[int, int]:
    """Height and width in pixels: of an image's pixels, or from the header of a JPEG or PNG. ValueError if the data are
    none of these, are cut off in the header, or promise more than MAX_PIXELS."""
    if is_decoded(data):
        return data.shape[0], data.shape[1]
    header = _read_header(np.frombuffer(data, np.uint8).data)
    return header.height, header.width


def decode(data: bytes | Pixels) -> Pixels:
    """The whole image, (H, W, 3) RGB; grey, palette, CMYK and transparent ones as Pillow converts them. A camera's note
    on how it was held (EXIF orientation) is ignored, as torchvision does. ValueError if the data are cut off or, as far
    as the decoder sees it, damaged; with its reason."""
    return data if is_decoded(data) else _decode_box(data, (0, 0, *read_size(data))).copy()


def decode_window(
    data: bytes | Pixels, box: Box, size: int, out: Pixels, interpolation: Interpolation = "bicubic"
) -> None:
    """Decode the window ``box`` of an image and resize it, antialiased. ValueError as ``decode``, or if the box reaches
    outside. Damage below the window goes unseen, unless the file's end is missing.

    Args:
        data: a JPEG or PNG: bytes, or a contiguous array such as a slice of a mapped file; or an image's pixels.
        box: (top, left, height, width) in pixels of this image.
        size: S, the side of the result.
        out: (S, S, 3) uint8, filled here; a batch (B, S, S, 3) of them is torch's channels_last.
        interpolation: the filter that resizes.
    """
    assert out.shape == (size, size, 3), f"out is {out.shape}, expected {(size, size, 3)}"
    _resize(_decode_box(data, box), out, interpolation)


def decode_centered(data: bytes | Pixels, resize: int, size: int, out: Pixels) -> None:
    """Decode for evaluation: the shorter side resized to ``resize``, then the central window, as torchvision does.

    Args:
        data, resize: the image, as of ``decode_window``, and its shorter side after resizing.
        size, out: S, at most ``resize``, and what is filled, (S, S, 3) uint8.
    """
    assert size <= resize, f"a window of {size} in an image of {resize}"
    pixels = _decode_box(data, (0, 0, *read_size(data)))
    cut_y, cut_x = (max(0, side - _MAX_ASPECT * min(pixels.shape[:2])) // 2 for side in pixels.shape[:2])
    pixels = pixels[cut_y : pixels.shape[0] - cut_y, cut_x : pixels.shape[1] - cut_x]
    height, width = (resize * side // min(pixels.shape[:2]) for side in pixels.shape[:2])
    resized = _WORKSPACE.buffer("resized", height, width, 3)
    _resize(pixels, resized)
    top, left = round((height - size) / 2), round((width - size) / 2)
    out[...] = resized[top : top + size, left : left + size]


def _resize(pixels: Pixels, out: Pixels, interpolation: Interpolation = "bicubic") -> None:
    """Resize to the shape of ``out``, and straight into it: F.interpolate would allocate each result anew."""
    if not (pixels.flags.c_contiguous and pixels.flags.writeable):  # torch is slow with one and warns of the other
        window = _WORKSPACE.buffer("window", *pixels.shape)
        window[...] = pixels
        pixels = window
    source, target = (torch.from_numpy(image).permute(2, 0, 1).unsqueeze(0) for image in (pixels, out))
    _RESIZE[interpolation](source, list(out.shape[:2]), False, None, None, out=target)


def _decode_box(data: bytes | Pixels, box: Box) -> Pixels:
    """The pixels of ``box``, (height, width, 3); valid until this thread's next call."""
    top, left, height, width = box
    bottom, right = top + height, left + width
    if is_decoded(data):
        return data[top:bottom, left:right]
    source = np.frombuffer(data, np.uint8)
    header = _read_header(source.data)
    if not (0 <= top < bottom <= header.height and 0 <= left < right <= header.width):
        raise ValueError(f"the window {box} reaches outside the image of {header.height} x {header.width} pixels")
    if not header.is_plain:
        return _decode_pillow(source, box)
    # libjpeg interpolates colours between neighbours, so a row more below; what lies under that need not be decoded.
    lowest = min(bottom + 1, header.height)
    if header.is_sequential and lowest < header.height:
        source = _end_at(source, header.height_offset, lowest)
    if _TURBOJPEG:
        with contextlib.suppress(OSError):  # it gives up: what Pillow reads nevertheless is no damage
            return _decode_turbojpeg(source, header, box, lowest)
    else:
        _warn_of_pillow()
    return _decode_pillow(source, box)


def _read_header(view: memoryview) -> _Header:
    if view[:2] == _JPEG_START:
        header = _read_jpeg_header(view)
    elif view[:8] == _PNG_START:
        header = _Header(int.from_bytes(view[20:24]), int.from_bytes(view[16:20]))  # zero where the data end before
    else:
        raise ValueError(f"neither JPEG nor PNG: the data start with {bytes(view[:4]).hex(' ') or 'nothing'}")
    if not 0 < header.height * header.width <= MAX_PIXELS:
        found = f"{header.height} x {header.width} pixels"
        raise ValueError(f"the header promises {found}, expected 1 to {MAX_PIXELS:,} in all")
    return header


def _read_jpeg_header(view: memoryview) -> _Header:
    at = 2
    try:
        while view[at] != 0xFF or view[at + 1] not in _FRAME_MARKERS:
            is_segment = view[at] == 0xFF and view[at + 1] not in (0x00, 0xFF)  # else bytes that libjpeg skips
            at += 2 + (view[at + 2] << 8 | view[at + 3]) if is_segment else 1
        height, width = view[at + 5] << 8 | view[at + 6], view[at + 7] << 8 | view[at + 8]
        factors = tuple(view[at + 11 + 3 * component] for component in range(view[at + 9]))
    except IndexError:
        raise ValueError("the JPEG ends within its header") from None
    if not factors:
        raise ValueError("the JPEG's header names no colour component")
    is_grey, is_sequential = len(factors) == 1, view[at + 1] in _SEQUENTIAL_MARKERS
    is_plain = is_grey or (factors[0] in _LUMA_FACTORS and factors[1:] == (0x11, 0x11))
    return _Header(height, width, is_plain, is_sequential, at + 5, 8 if is_grey else 8 * (factors[0] >> 4))


def _decode_turbojpeg(source: Pixels, header: _Header, box: Box, bottom: int) -> Pixels:
    """``box``, decoded down to the row before ``bottom``."""
    assert _TURBOJPEG
    top, left, height, width = box
    # A pixel more beside, too, and 8 across at least: in the narrowest windows libjpeg does not interpolate.
    right = min(max(left + width, 7) + 1, header.width)
    start = max(min(left - 1, right - 8), 0) // header.block_width * header.block_width
    pixels = _WORKSPACE.buffer("pixels", bottom - top, right - start, 3)
    region = _Region(start, top, right - start, bottom - top)
    is_cut = header.is_sequential and bottom < header.height
    warning = _run_turbojpeg(source, region, pixels)
    if warning and not (_BELOW_WINDOW if is_cut else _BEHIND_PIXELS).search(warning):
        warning = _run_turbojpeg(_without_oddities(source, header.is_sequential), region, pixels)
        if warning and not ("extraneous" in warning if is_cut else _BEHIND_PIXELS.search(warning)):
            raise ValueError(warning)
    return pixels[:height, left - start : left - start + width]


def _run_turbojpeg(source: Pixels, region: _Region, pixels: Pixels) -> str:
    """Decode a region into ``pixels``, and return the first warning; "" where there was none."""
    library = _TURBOJPEG
    assert library
    pointer, reason = ctypes.c_void_p, ""
    data = (pointer(source.ctypes.data), ctypes.c_size_t(source.size))
    handle = pointer(library.tj3Init(1))  # 1 is to decompress; a new one, as it would keep tables of the image before
    try:
        for decode_part in (
            partial(library.tj3DecompressHeader, handle, *data),
            partial(library.tj3SetCroppingRegion, handle, region),
            partial(library.tj3Decompress8, handle, *data, pointer(pixels.ctypes.data), 0, 0),  # RGB
        ):
            reason = library.tj3GetErrorStr(handle).decode(errors="replace") if decode_part() else ""
            if reason and library.tj3GetErrorCode(handle) == 1:  # TJERR_FATAL
                raise OSError(reason)
    finally:
        library.tj3Destroy(handle)
    return reason


def _end_at(source: Pixels, height_offset: int, height: int) -> Pixels:
    """A copy of a JPEG whose header names a smaller height: all that is coded below is passed over."""
    if source[-2:].tobytes() != _JPEG_END and _JPEG_END not in source[height_offset:].tobytes():
        raise ValueError("premature end of JPEG file: it has no end marker")
    copy = _WORKSPACE.buffer("source", source.size)
    copy[:] = source
    copy[height_offset : height_offset + 2] = divmod(height, 256)
    return copy


def _without_oddities(source: Pixels, is_sequential: bool) -> Pixels:
    """A copy of a JPEG with the same pixels, but without what libjpeg passes over with a warning: bytes between
    segments, parameters that a sequential scan does not have, notes, and unknown versions of those on colours."""
    data, parts, at, is_coded = source.tobytes(), [_JPEG_START], 2, False
    while found := _NEXT_MARKER.search(data, at):
        start, marker = found.start(), data[found.start() + 1]
        parts += [data[at:start]] * is_coded
        at = start + 2 + int.from_bytes(data[start + 2 : start + 4])
        segment = bytearray(data[start:at])
        if marker == _JPEG_END[1]:
            return np.frombuffer(b"".join([*parts, _JPEG_END]), np.uint8)
        if segment[4:9] == b"JFIF\0" and len(segment) > 15:
            segment[9] = 1  # the major version
        elif segment[4:9] == b"Adobe" and len(segment) > 15:
            segment[15] = min(segment[15], 1)  # libjpeg takes any other transform of three colours for 1
        elif marker in _NOTE_MARKERS or marker == _COMMENT_MARKER:
            segment.clear()
        elif marker == _SCAN_MARKER and is_sequential:
            segment[-3:] = b"\0\x3f\0"
        parts.append(bytes(segment))
        is_coded = marker == _SCAN_MARKER
    return np.frombuffer(b"".join([*parts, data[at:]]), np.uint8)


@cache  # once a process; each run's log then has it
def _warn_of_pillow() -> None:
    warnings.warn(
        "Pillow decodes the JPEGs: the same pixels, but it takes longer and does not notice damage within an image. "
        "`pip install turbojpeg==0.0.2` (the extra `jpeg`) brings libjpeg-turbo 3 to Linux on x86-64; elsewhere the "
        "system's is used where it is 3.0 or newer",
        stacklevel=2,
    )


def _decode_pillow(source: Pixels, box: Box) -> Pixels:
    top, left, height, width = box
    try:
        with Image.open(io.BytesIO(source.data), formats=("JPEG", "PNG")) as image:
            if image.mode == "RGB":
                return np.array(image.crop((left, top, left + width, top + height)))
            return to_rgb(image)[top : top + height, left : left + width]
    except (OSError, SyntaxError, EOFError, struct.error, zlib.error, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from error


def to_rgb(image: Image.Image) -> Pixels:
    """An opened image's pixels, (H, W, 3), as Pillow converts them; but grey of 16 bits, where Pillow turns all above
    255 to white, keeps its high byte, as colours of 16 bits do. ValueError if they are numbers whose range is not
    known."""
    if image.mode == "F" or (image.mode == "I" and image.format not in ("PNG", "PPM")):
        raise ValueError(f"its pixels are numbers of unknown range (mode {image.mode}), expected 8 or 16 bits of each")
    if image.mode.startswith("I"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return np.array(image.convert("RGB"))
