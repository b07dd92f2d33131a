"""FFCV files: as FFCV's own loader reads them, against direct decoding, and when something is wrong with them."""

import importlib.util
import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from imagesets.decode import decode, decode_centered, decode_window
from imagesets.formats.ffcv import BetonFile, open_beton
from imagesets.manifest import Index
from imagesets.originals import beton
from suite.base.errors import DataError

HEIGHT, WIDTH = 24, 40
BOX = np.array([3, 5, 16, 20])


def picture(seed, height=HEIGHT, width=WIDTH):
    """Smooth colours, so that decoders may differ by rounding only."""
    corners = np.random.default_rng(seed).integers(0, 256, (3, 3, 3), np.uint8)
    return np.array(Image.fromarray(corners).resize((width, height), Image.Resampling.BICUBIC))


def encode(pixels, kind, mode="RGB"):
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, kind)
    return file.getvalue()


def mixed_samples(count):
    """In turn: pixels, a JPEG, a grey JPEG, a PNG, a JPEG in CMYK."""
    kinds = [lambda x: x] + [
        lambda x, kind=kind, mode=mode: encode(x, kind, mode)
        for kind, mode in (("JPEG", "RGB"), ("JPEG", "L"), ("PNG", "RGB"), ("JPEG", "CMYK"))
    ]
    return [kinds[i % 5](picture(i)) for i in range(count)]


def pixels_of(sample):
    return decode(sample) if isinstance(sample, bytes) else sample


def index_of(labels, height=HEIGHT, width=WIDTH):
    names = Index.encode_names([f"{i}.jpg" for i in range(len(labels))])
    return Index(np.array(labels), np.full((len(labels), 2), (height, width), np.int32), names)


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def has_ffcv():
    """CI must have FFCV."""
    if importlib.util.find_spec("ffcv") is None and os.environ.get("CI") != "true":
        pytest.skip("FFCV is not installed: `make ffcv`")


def write_file(path, samples, labels, steps=1, **options):
    pairs = list(zip(np.asarray(labels).tolist(), samples, strict=True))
    file = BetonFile(path, len(pairs), **options)
    places = [file.append(pairs[step::steps]) for step in range(steps)]
    file.finish(np.array([length for of_step in places for length in of_step["length"]], np.int64))


def write(folder, samples, labels=None, **options):
    labels = np.arange(len(samples)) * 7 if labels is None else labels
    write_file(folder / "train.beton", samples, labels, **options)
    return open_beton(folder, "train", index_of(labels))


def read_by_ffcv(path, num_samples):
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import SimpleRGBImageDecoder
    from ffcv.loader import Loader, OrderOption

    pipelines = {"image": [SimpleRGBImageDecoder()], "label": [IntDecoder()]}
    options = {"order": OrderOption.SEQUENTIAL, "pipelines": pipelines, "drop_last": False}
    threads = torch.get_num_threads()
    loader = Loader(str(path), num_samples, 1, os_cache=False, **options)  # no cache: it reads page by page
    [(images, labels)] = loader
    torch.set_num_threads(threads)
    return np.array(images), np.array(labels)[:, 0]


def test_the_layout_s_types_are_ffcv_s_own(has_ffcv):
    from ffcv import types
    from ffcv.fields import IntField, RGBImageField

    assert types.HeaderType == beton.HEADER
    assert types.FieldDescType.fields == beton.FIELD.fields
    assert types.ALLOC_TABLE_TYPE == beton.ENTRY
    metadata = types.get_metadata_type([RGBImageField(), IntField()])
    assert (*metadata.fields.values(), metadata.itemsize) == (*beton.METADATA.fields.values(), beton.METADATA.itemsize)
    assert types.CURRENT_VERSION == beton.VERSION
    assert [types.TYPE_ID_HANDLER[number] for number in beton.FIELDS.values()] == [RGBImageField, IntField]
    assert [types.TYPE_ID_HANDLER[number].__name__ for number in range(7)] == list(beton.TYPES)


def test_ffcv_s_own_loader_reads_the_same_pixels_and_labels(folder, has_ffcv):
    samples = mixed_samples(20)
    ours = write(folder, samples, page_size=4096)
    images, labels = read_by_ffcv(folder / "train.beton", len(samples))
    np.testing.assert_array_equal(labels, ours.labels)
    for number, (sample, theirs) in enumerate(zip(samples, images, strict=True)):
        tolerance = 3 if number % 5 in (1, 2) else 0  # of JPEGs, by another decoder
        np.testing.assert_allclose(theirs.astype(int), pixels_of(sample), atol=tolerance)
        np.testing.assert_array_equal(ours.whole(number), pixels_of(sample))


def test_jpegs_that_ffcv_can_decode_keep_their_bytes(folder):
    samples = mixed_samples(5)
    images = write(folder, samples)
    assert [images.read(i) for i in (1, 2)] == samples[1:3]
    assert images.read(4).shape == (HEIGHT, WIDTH, 3)
    assert samples[1] in (folder / "train.beton").read_bytes()


def test_windows_equal_those_of_direct_decoding(folder):
    samples = mixed_samples(4)
    images = write(folder, samples)
    for number, sample in enumerate(samples):
        out, expected = np.zeros((2, 12, 12, 3), np.uint8), np.zeros((2, 12, 12, 3), np.uint8)
        images.window(number, BOX, 12, out[0])
        images.centered(number, 16, 12, out[1])
        if number in (1, 2):
            decode_window(sample, tuple(BOX.tolist()), 12, expected[0])
            decode_centered(sample, 16, 12, expected[1])
        else:
            decode_window(pixels_of(sample), tuple(BOX.tolist()), 12, expected[0])
            decode_centered(pixels_of(sample), 16, 12, expected[1])
        np.testing.assert_array_equal(out, expected)


def test_pixels_of_one_size_are_gathered_at_once_in_any_order(folder):
    samples = np.stack([picture(i) for i in range(9)])
    images = write(folder, samples, page_size=8192)  # two images a page, and a rest
    order = np.array([8, 0, 3, 3, 7])
    np.testing.assert_array_equal(images.gather(order), samples[order])


def test_nothing_is_gathered_where_one_image_is_a_jpeg(folder):
    assert write(folder, mixed_samples(2)).gather(np.array([0])) is None


def test_a_sample_larger_than_a_page_enlarges_the_pages(folder, has_ffcv):
    from ffcv.reader import Reader

    samples = [picture(0), picture(1, 90, 70), picture(2)]
    images = write(folder, samples, page_size=4096)
    assert Reader(str(folder / "train.beton")).page_size == 32768
    for number, sample in enumerate(samples):
        np.testing.assert_array_equal(images.whole(number), sample)


def test_equal_samples_make_equal_files(folder):
    for name in ("a", "b"):
        write_file(folder / name, mixed_samples(10), np.arange(10))
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


@pytest.mark.parametrize("broken", [b"no image", b"\xff\xd8\xff\xe0 no image either"])
def test_what_is_no_image_is_not_written(folder, broken):
    with pytest.raises(ValueError, match="image"):
        write(folder, [picture(0), broken])


def test_a_full_disk_is_named_with_the_file(folder):
    (folder / "train.beton").symlink_to("/dev/full")
    with pytest.raises(DataError, match=r"train\.beton: .*No space left.*--out"):
        write(folder, [picture(0)])


@pytest.mark.parametrize("kept", [0, 10, 3000, 6000, -1])
def test_a_file_that_was_cut_short_is_named(folder, kept):
    write(folder, [picture(i) for i in range(3)], page_size=4096)
    path = folder / "train.beton"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataError, match=r"train\.beton is not a complete"):
        open_beton(folder, "train", index_of(np.arange(3) * 7))


@pytest.mark.parametrize(
    "content", [encode(picture(0), "PNG"), b"\2\0\2\0" + b"\xff" * 5000, b"\2\0\2\0" + bytes(5000)]
)
def test_a_foreign_file_is_named(folder, content):
    (folder / "train.beton").write_bytes(content)
    with pytest.raises(DataError, match=r"train\.beton is not a complete"):
        open_beton(folder, "train", index_of(np.arange(3)))


@pytest.mark.parametrize(("labels", "found"), [([0, 1, 3], "other labels"), ([0, 1], "3 images")])
def test_labels_other_than_the_index_s_are_refused(folder, labels, found):
    write(folder, [picture(i) for i in range(3)], np.arange(3))
    with pytest.raises(DataError, match=rf"train\.beton .*{found}"):
        open_beton(folder, "train", index_of(labels))


def test_a_missing_file_is_named(folder):
    with pytest.raises(DataError, match=r"train\.beton"):
        open_beton(folder, "train", index_of([0]))


def test_no_ffcv_is_needed(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ffcv", None)
    np.testing.assert_array_equal(write(folder, [picture(0)]).whole(0), picture(0))


def test_ci_installs_the_packages_that_the_manual_names():
    root = Path(__file__).parents[3]
    packages = (root / "docs" / "images.md").read_text().split("apt-get install ")[1].splitlines()[0]
    assert packages in (root / ".ci" / "run").read_text()
