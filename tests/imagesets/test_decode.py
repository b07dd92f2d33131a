"""The decoder against Pillow, on JPEGs and PNGs made of packaged real images."""

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from imagesets import decode as module
from imagesets.decode import (
    decode,
    decode_centered,
    decode_window,
    read_size,
)
from imagesets.fetch import ensure
from imagesets.fetch.storage import open_arrays
from imagesets.originals.treatment import decode_any

HEIGHT, WIDTH, SIZE = 211, 298, 64
ENCODINGS = {
    "4:2:0": {},
    "4:2:2": {"subsampling": 1},
    "4:4:4": {"subsampling": 0},
    "4:1:1": {"subsampling": "4:1:1"},
    "progressive": {"progressive": True},
    "restart markers": {"restart_marker_rows": 1},
}


@pytest.fixture(scope="module")
def photograph():
    tiles = open_arrays(ensure("cifar10_sample"))["train_images"][:12].reshape(3, 4, 32, 32, 3)
    mosaic = Image.fromarray(tiles.transpose(0, 2, 1, 3, 4).reshape(96, 128, 3))
    return mosaic.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)


def encode(image, kind="JPEG", **options):
    file = io.BytesIO()
    image.save(file, kind, **({"quality": 90} if kind == "JPEG" else {}), **options)
    return file.getvalue()


def pillow(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def window(data, box, size=SIZE):
    out = np.empty((size, size, 3), np.uint8)
    decode_window(data, box, size, out)
    return out


@pytest.fixture(params=["libjpeg-turbo", "Pillow"])
def decoder(request, monkeypatch):
    """Each of the two in turn, the first where it is there."""
    if request.param == "Pillow":
        monkeypatch.setattr(module, "_TURBOJPEG", None)
    elif not module._TURBOJPEG:
        pytest.skip("needs the extra jpeg")
    return request.param


def assert_close(found, expected):
    difference = np.abs(found.astype(int) - np.asarray(expected))
    assert difference.max() <= 2
    assert difference.mean() <= 0.05


@pytest.mark.filterwarnings("ignore:Pillow decodes")
@pytest.mark.parametrize("options", ENCODINGS.values(), ids=ENCODINGS)
def test_a_window_has_exactly_the_pixels_of_the_whole_image(photograph, options, decoder):
    data = encode(photograph, **options)
    whole, rng = pillow(data), np.random.default_rng(0)
    for _ in range(75):  # the size of the box, so nothing is resized
        size = int(rng.integers(1, 60))
        top, left = (int(rng.integers(side - size + 1)) for side in (HEIGHT, WIDTH))
        expected = whole[top : top + size, left : left + size]
        np.testing.assert_array_equal(window(data, (top, left, size, size), size), expected)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 9, 16, 17, 18, 31, 33])
def test_columns_at_the_edges_of_narrow_images_are_exact(photograph, width):
    data = encode(photograph.crop((0, 0, width, 20)))
    whole = pillow(data)
    for left in range(width):
        np.testing.assert_array_equal(window(data, (9, left, 1, 1), 1)[0, 0], whole[9, left])


@pytest.mark.parametrize("box", [(0, 0, HEIGHT, WIDTH), (20, 31, 150, 201), (100, 90, 40, 30), (7, 290, 60, 8)])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_resized_window_is_pillows_crop_and_bicubic_resize(photograph, box, kind):
    data = encode(photograph, kind)
    top, left, height, width = box
    cropped = Image.fromarray(pillow(data)).crop((left, top, left + width, top + height))
    expected = cropped.resize((SIZE, SIZE), Image.Resampling.BICUBIC)
    assert_close(window(data, box), expected)


@pytest.mark.parametrize("shape", [(HEIGHT, WIDTH), (WIDTH, HEIGHT), (80, 80), (81, 120)])
def test_a_centered_window_follows_torchvisions_resize_and_center_crop(photograph, shape):
    height, width = shape
    data = encode(photograph.resize((width, height)))
    new_width, new_height = (72, int(72 * height / width)) if width <= height else (int(72 * width / height), 72)
    resized = Image.fromarray(pillow(data)).resize((new_width, new_height), Image.Resampling.BICUBIC)
    top, left = round((new_height - SIZE) / 2.0), round((new_width - SIZE) / 2.0)
    out = np.empty((SIZE, SIZE, 3), np.uint8)
    decode_centered(data, 72, SIZE, out)
    assert_close(out, np.asarray(resized)[top : top + SIZE, left : left + SIZE])


def test_pixels_decoded_before_give_the_same_windows(photograph):
    data, out, again = encode(photograph), *np.empty((2, SIZE, SIZE, 3), np.uint8)
    decode_window(decode(data), (20, 31, 150, 201), SIZE, out)
    np.testing.assert_array_equal(out, window(data, (20, 31, 150, 201)))
    decode_centered(decode(data), 72, SIZE, out)
    decode_centered(data, 72, SIZE, again)
    np.testing.assert_array_equal(out, again)


@pytest.mark.parametrize(
    ("kind", "mode"), [("JPEG", "L"), ("JPEG", "CMYK"), ("PNG", "L"), ("PNG", "P"), ("PNG", "RGBA"), ("PNG", "1")]
)
def test_every_colour_mode_becomes_the_rgb_that_pillow_gives(photograph, kind, mode):
    data = encode(photograph.convert(mode), kind)
    assert read_size(data) == (HEIGHT, WIDTH)
    np.testing.assert_array_equal(decode(data), pillow(data))
    np.testing.assert_array_equal(window(data, (30, 40, 50, 50), 50), pillow(data)[30:80, 40:90])


def test_a_slice_of_a_mapped_file_is_decoded_in_place(photograph, tmp_path):
    data = encode(photograph)
    (tmp_path / "blob").write_bytes(b"before" + data + b"after")
    mapped = np.memmap(tmp_path / "blob", np.uint8, "r")[6 : 6 + len(data)]
    assert read_size(mapped) == (HEIGHT, WIDTH)
    np.testing.assert_array_equal(window(mapped, (20, 31, 90, 101)), window(data, (20, 31, 90, 101)))


@pytest.mark.filterwarnings("ignore:Pillow decodes")
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("kept", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_an_image_cut_off_raises_even_where_the_window_is_whole(photograph, kind, kept, decoder):
    data = encode(photograph, kind)
    data = data[: int(kept * len(data))]
    with pytest.raises(ValueError, match=r"\w"):
        decode(data)
    with pytest.raises(ValueError, match=r"\w"):
        window(data, (0, 0, 16, 16))


@pytest.mark.filterwarnings("ignore:Pillow decodes")
def test_needless_bytes_after_an_image_and_for_libjpeg_turbo_in_it_are_passed_over(photograph, decoder):
    data = encode(photograph)
    if decoder == "libjpeg-turbo":  # Pillow does not take it for an image
        np.testing.assert_array_equal(decode(data[:2] + b"\0" * 50 + data[2:]), pillow(data))
    np.testing.assert_array_equal(window(data + b"\0" * 50, (3, 3, 9, 9), 9), pillow(data)[3:12, 3:12])


def test_damage_raises_where_libjpeg_turbo_decodes_and_not_where_pillow_does(photograph, monkeypatch):
    data = encode(photograph)
    middle = len(data) // 2
    damaged = data[:middle] + b"\xff\xd9" + data[middle:]
    if module._TURBOJPEG:
        with pytest.raises(ValueError, match=r"(?i)premature end|broken|truncated"):
            decode(damaged)
    monkeypatch.setattr(module, "_TURBOJPEG", None)
    module._warn_of_pillow.cache_clear()
    with pytest.warns(UserWarning, match="Pillow decodes the JPEGs: .*does not notice damage"):
        assert not np.array_equal(decode(damaged), pillow(data))


def insert_junk(data, marker=b"\xff\xda"):
    place = data.index(marker)
    return data[:place] + b"\1\2\3" + data[place:]


def set_byte(data, marker, offset, value):
    place = data.index(marker) + offset
    return data[:place] + bytes([value]) + data[place + 1 :]


ODDITIES = {  # what libjpeg warns of, before any pixel, and passes over
    "bytes before a scan": insert_junk,
    "bytes before a table": lambda data: insert_junk(data, b"\xff\xdb"),
    "a revision of JFIF": lambda data: set_byte(data, b"JFIF", 5, 7),
    "a transform of colours": lambda data: b"\xff\xd8\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\5" + data[20:],
    "parameters of a scan": lambda data: set_byte(data, b"\xff\xda", 5 + 2 * 3 + 1, 0),  # as some phones write them
}


@pytest.mark.skipif(not module._TURBOJPEG, reason="needs the extra jpeg")
@pytest.mark.parametrize("oddity", ODDITIES.values(), ids=ODDITIES)
@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"restart_marker_rows": 1}], ids=["4:2:0", "4:4:4", "DRI"])
def test_what_harms_no_pixel_is_read_as_pillow_reads_it_and_hides_no_damage(photograph, oddity, options):
    data = encode(photograph, **options)
    odd = oddity(data)
    assert odd != data
    np.testing.assert_array_equal(decode(odd), pillow(data))
    np.testing.assert_array_equal(window(odd, (30, 40, 50, 50), 50), pillow(data)[30:80, 40:90])
    for marker in (b"\xff\xd9", b"\xff\xd5"):  # an end, and a restart where none is
        damaged = data[: len(data) // 2] + marker + data[len(data) // 2 + 2 :]
        for broken in (damaged, oddity(damaged)):
            with pytest.raises(ValueError, match="premature end of data segment"):
                decode(broken)


@pytest.mark.skipif(not module._TURBOJPEG, reason="needs the extra jpeg")
def test_needless_bytes_within_coded_data_are_damage_and_below_a_window_are_not(photograph):
    data = encode(photograph, restart_marker_rows=1)
    damaged = insert_junk(data, b"\xff\xd3")
    with pytest.raises(ValueError, match="extraneous bytes before marker 0xd3"):
        decode(damaged)
    np.testing.assert_array_equal(window(damaged, (3, 3, 9, 9), 9), pillow(data)[3:12, 3:12])


def test_pillow_decides_where_libjpeg_turbo_gives_up(photograph, monkeypatch):
    def give_up(*_):
        raise OSError("unsupported")

    monkeypatch.setattr(module, "_TURBOJPEG", object())
    monkeypatch.setattr(module, "_run_turbojpeg", give_up)
    data = encode(photograph)
    np.testing.assert_array_equal(decode(data), pillow(data))
    with pytest.raises(ValueError, match="cannot load this image"):
        decode(data[: data.index(b"\xff\xda")] + b"\xff\xd9")


@pytest.mark.parametrize("shape", [(5000, 1), (1, 5000), (3000, 2)])
def test_of_a_thread_of_an_image_only_the_middle_is_resized(shape, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    resize, areas = module._resize, []
    monkeypatch.setattr(module, "_resize", lambda image, out: (areas.append(out.size), resize(image, out)))
    found = np.empty((SIZE, SIZE, 3), np.uint8)
    decode_centered(pixels, 72, SIZE, found)
    assert areas == [16 * 72 * 72 * 3]
    long, short = max(shape) * 72 // min(shape), 72
    resized = Image.fromarray(pixels).resize((long, short) if shape[1] > 2 else (short, long), Image.Resampling.BICUBIC)
    top, left = ((side - SIZE) // 2 for side in (resized.height, resized.width))
    assert_close(found, resized.crop((left, top, left + SIZE, top + SIZE)))


def test_what_is_no_image_or_too_large_a_one_is_refused(photograph):
    with pytest.raises(ValueError, match="neither JPEG nor PNG: the data start with 47 49 46 38"):
        read_size(b"GIF89a")
    data = encode(photograph)
    start = data.index(HEIGHT.to_bytes(2) + WIDTH.to_bytes(2))
    with pytest.raises(ValueError, match="promises 65535 x 65535 pixels"):
        decode(data[:start] + b"\xff" * 4 + data[start + 4 :])
    with pytest.raises(ValueError, match="reaches outside the image of 211 x 298"):
        window(data, (0, 0, HEIGHT + 1, 10))


def test_threads_do_not_disturb_each_other(photograph):
    data = encode(photograph)
    boxes = [(i, 2 * i, 60 + i, 80 + i) for i in range(70)] * 4
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda box: window(data, box), boxes))
    for box, image in zip(boxes, found, strict=True):
        np.testing.assert_array_equal(image, window(data, box))


@pytest.mark.parametrize("kind", ["PNG", "PPM", "TIFF"])
def test_grey_of_16_bits_keeps_its_high_byte(photograph, kind):
    low = np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) % 256
    grey = np.asarray(photograph.convert("L"))
    values = (grey.astype(np.uint16) << 8) + low.astype(np.uint16)
    found = decode_any(encode(Image.fromarray(values), kind))
    np.testing.assert_array_equal(found, np.repeat(grey[..., None], 3, axis=2))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_pixels_of_unknown_range_are_refused_instead_of_clipped(dtype):
    data = encode(Image.fromarray(np.full((4, 4), 1000, dtype)), "TIFF")
    with pytest.raises(ValueError, match="numbers of unknown range"):
        decode_any(data)
