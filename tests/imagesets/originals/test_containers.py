"""Containers as tables of offsets: zips, Parquet, MDS and .betons of other tools, and all that can be wrong."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from imagesets.originals.detect import open_original
from imagesets.originals.samples import Original
from suite.base import parquet_pages
from suite.base.errors import DataError

Run = Callable[..., Any]
MDS = Path(__file__).parent / "fixtures" / "mds"
SPLITS = ("train", "test")


def opened(source: Path, tmp_path: Path, dataset: str = "pets") -> Original:
    return open_original(dataset, str(source), tmp_path / "data")


def images(original: Original, split: str) -> list[Any]:
    samples = original.samples[split]
    return [samples.byte_range(index).read() for index in range(len(samples))]


def assert_same(found: Original, expected: Original) -> None:
    assert found.classes == expected.classes
    for split in SPLITS:
        assert found.samples[split].names == expected.samples[split].names
        assert found.samples[split].labels.tolist() == expected.samples[split].labels.tolist()
        assert images(found, split) == images(expected, split)


# --- zips


def zipped(path: Path, folder: Path, *arguments: str) -> Path:
    """Zip a folder, and add a Mac's hidden files; stored unless told otherwise."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if "deflated" in arguments else zipfile.ZIP_STORED) as archive:
        for file in sorted(folder.rglob("*"), reverse=True):
            archive.write(file, file.relative_to(folder.parent if "with parent" in arguments else folder))
        for name in ("__MACOSX/train/._a.jpg", ".DS_Store", "train/._b.jpg", "README.md"):
            archive.writestr(name, b"x")
    return path


def test_a_zip_gives_what_its_folder_gives(folder: Path, tmp_path: Path) -> None:
    expected = opened(folder, tmp_path)
    (tmp_path / "one").mkdir()
    one = zipped(tmp_path / "one" / "photos.zip", folder)
    assert_same(opened(one, tmp_path), expected)
    assert_same(opened(one.parent, tmp_path), expected)
    assert opened(one, tmp_path).notes[0].endswith("no images in a class folder (README.md)")
    assert_same(opened(zipped(tmp_path / "nested.zip", folder, "with parent"), tmp_path), expected)
    for word, form in itertools.product(("train", "val"), ("with parent", "bare")):
        (tmp_path / form).mkdir(exist_ok=True)
        zipped(tmp_path / form / f"{word}.zip", folder / word, form)
    assert_same(opened(tmp_path / "bare", tmp_path), expected)
    assert_same(opened(tmp_path / "with parent" / "val.zip", tmp_path), expected)


def test_a_zip_of_the_command_zip_is_read(folder: Path, tmp_path: Path, run: Run, stored: Any) -> None:
    if shutil.which("zip") is None:
        pytest.skip("the command zip is not installed")
    subprocess.run(["zip", "-q", "-0", "-r", tmp_path / "photos.zip", "train", "val"], cwd=folder, check=True)
    assert_same(opened(tmp_path / "photos.zip", tmp_path), opened(folder, tmp_path))


def test_a_converted_zip_is_the_converted_folder(folder: Path, tmp_path: Path, run: Run, stored: Any) -> None:
    source = zipped(tmp_path / "photos.zip", folder)
    one, other = stored(run(source=source)), stored(run(out=tmp_path / "other"))
    assert one.files() == other.files()


def test_a_zip_that_cannot_be_read_in_place_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"deflated\.zip .*val/n01484850/.*\.JPEG' is compressed.*zip -0 -r"):
        opened(zipped(tmp_path / "deflated.zip", folder, "deflated"), tmp_path)
    whole = zipped(tmp_path / "whole.zip", folder).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[:-300])
    with pytest.raises(DataError, match=r"cut\.zip cannot be read as an uncompressed zip"):
        opened(tmp_path / "cut.zip", tmp_path)
    (tmp_path / "moved.zip").write_bytes(whole[2000:])
    with pytest.raises(DataError, match=r"moved\.zip cannot be read as an uncompressed zip"):
        opened(tmp_path / "moved.zip", tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../../train/a/evil.jpg", "leads out"),
        ("/train/a/evil.jpg", "leads out"),
        ("train/n01440764/n01440764_0.JPEG", "is there twice"),
        ("train/other/a.jpg", "'other' is only in train/"),
    ],
)
def test_a_zip_s_member_that_does_not_belong_is_named(name: str, message: str, folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(zipped(tmp_path / "photos.zip", folder), "a") as archive:
        archive.writestr(name, b"x")
    with pytest.raises(DataError, match=message):
        opened(tmp_path / "photos.zip", tmp_path)


def test_a_zip_without_class_folders_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no val/CLASS/ with images, but 1 other files .*README\.md.* Unzip it"):
        opened(zipped(tmp_path / "photos.zip", folder / "train", "with parent"), tmp_path)


# --- Parquet

NAMES = ["tench", "goldfish", "shark"]


def rows_of(photos: list[bytes], copies: bool = False) -> list[tuple[bytes, int]]:
    rows = [(data, number % 3) for number, data in enumerate(photos)]
    return [*rows, *rows[:5]] if copies else rows


def table_of(rows: list[tuple[bytes, int]], image: str = "image", label: str = "label", names: Any = NAMES) -> pa.Table:
    """Build it as the hub's library ``datasets`` does: a struct of bytes and path, the classes in the schema's note."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = [pa.array([{"bytes": data, "path": None} for data, _ in rows], kind), pa.array([one for _, one in rows])]
    features = {image: {"_type": "Image"}, label: {"names": names, "_type": "ClassLabel"}}
    note = {"huggingface": json.dumps({"info": {"features": features}})} if names else None
    return pa.Table.from_arrays(columns, names=[image, label]).replace_schema_metadata(note)


def hub_folder(folder: Path, photos: list[bytes], **options: Any) -> Path:
    """The hub's tree: two parts to train on, one to validate, and a test split without labels."""
    (folder / "data").mkdir(parents=True)
    make = {key: options.pop(key) for key in ("image", "label", "names") if key in options}
    rows = rows_of(photos)
    parts = {
        "train-00000-of-00002": rows[:13],
        "train-00001-of-00002": rows[13:21],
        "validation-00000-of-00001": rows[21:],
    }
    for name, some in (parts | {"test-00000-of-00001": [(rows[0][0], -1)]}).items():
        pq.write_table(table_of(some, **make), folder / "data" / f"{name}.parquet", **({"row_group_size": 5} | options))
    return folder


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["snappy", "none", "zstd", "gzip"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_the_hub_s_parquet_is_read_in_place(
    version: str, codec: str, dictionary: bool, photos: list[bytes], tmp_path: Path
) -> None:
    options = {"compression": codec, "use_dictionary": dictionary, "data_page_version": version}
    original = opened(hub_folder(tmp_path / "hub", photos, **options), tmp_path)
    assert original.classes == ("tench", "goldfish", "shark")
    assert images(original, "train") == photos[:21]
    assert images(original, "test") == photos[21:]
    assert original.samples["train"].labels.tolist() == [number % 3 for number in range(21)]
    ranges = [original.samples["train"].byte_range(index) for index in range(21)]
    assert {place.page is None for place in ranges} == {codec == "none"}


def test_a_dictionary_that_overflows_leaves_the_rest_in_plain_pages(photos: list[bytes], tmp_path: Path) -> None:
    rows = [(bytes([number]) + photos[number % 30], number % 3) for number in range(90)]
    options = {"dictionary_pagesize_limit": 8_000, "data_page_size": 4_000, "write_batch_size": 4}
    for name in ("train", "val"):
        pq.write_table(table_of([*rows, *rows]), tmp_path / f"{name}.parquet", **options)
    encodings = pq.ParquetFile(tmp_path / "train.parquet").metadata.row_group(0).column(0).encodings
    assert {"RLE_DICTIONARY", "PLAIN"} <= {*encodings}
    assert images(opened(tmp_path, tmp_path), "train") == [data for data, _ in [*rows, *rows]]


@pytest.mark.parametrize("fragment", [1 << 16, 1000])
def test_one_image_of_a_large_page_is_read_by_itself_where_snappy_s_fragments_allow(
    fragment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_pages, "_FRAGMENT", fragment)  # as another writer might cut
    rng = np.random.default_rng(0)
    data = [
        rng.integers(0, 256 if number % 2 else 3, rng.integers(1, 90_000), np.uint8).tobytes() for number in range(40)
    ]
    for word in ("train", "val"):
        pq.write_table(table_of([(one, 0) for one in data], names=None), tmp_path / f"{word}.parquet")
    original = opened(tmp_path, tmp_path)
    assert images(original, "train") == data
    pages = [original.samples["train"].byte_range(index).page for index in range(40)]
    assert (max(page.length for page in pages if page) < 4 * (1 << 16)) == (fragment == 1 << 16)


def test_cifar_s_columns_and_plain_binary_ones_are_known(photos: list[bytes], tmp_path: Path) -> None:
    coarse = pa.array([0] * 30)
    for form, image in (("img", "img"), ("binary", "image")):
        table = table_of(rows_of(photos), image, "fine_label", names=None).append_column("coarse_label", coarse)
        if form == "binary":
            table = table.set_column(0, image, pa.array(photos, pa.large_binary()))
        (tmp_path / form).mkdir()
        for word in ("train", "test"):
            (tmp_path / form / "cifar100").mkdir(exist_ok=True)
            pq.write_table(table, tmp_path / form / "cifar100" / f"{word}-00000-of-00001.parquet")
        original = opened(tmp_path / form, tmp_path)
        assert original.classes == ("0", "1", "2")
        assert images(original, "test") == photos


def test_a_converted_parquet_set_has_its_images(photos: list[bytes], tmp_path: Path, run: Run, stored: Any) -> None:
    prepared = stored(run(source=hub_folder(tmp_path / "hub", photos), num_workers=2))
    assert prepared.encoded("train") == photos[:21]
    assert prepared.names("train")[13] == "train-00001-of-00002.parquet/000000"


def test_the_hub_s_words_for_imagenet_s_classes_are_accepted(tmp_path: Path, run: Run, photos: list[bytes]) -> None:
    """The words are WordNet's lemmas, which timm has, but for a second crane."""
    timm = Path(importlib.util.find_spec("timm").submodule_search_locations[0]) / "data" / "_info"
    lemmas = dict(line.split("\t", 1) for line in (timm / "imagenet_synset_to_lemma.txt").read_text().splitlines())
    lemmas["n03126707"] = "crane2"
    names = [lemmas[wnid] for wnid in (timm / "imagenet_synsets.txt").read_text().split()]
    rows = [(photos[number % 30], number) for number in range(1000)]
    for word in ("train", "validation"):
        pq.write_table(table_of(rows, names=names), tmp_path / f"{word}.parquet")
    assert run(dataset="imagenet", source=tmp_path).manifest.classes == tuple(names)
    pq.write_table(table_of(rows, names=names[::-1]), tmp_path / "train.parquet")
    pq.write_table(table_of(rows, names=names[::-1]), tmp_path / "validation.parquet")
    with pytest.raises(DataError, match="are not those of that set"):
        run(dataset="imagenet", source=tmp_path, out=tmp_path / "other")


def test_a_parquet_file_that_does_not_fit_is_refused(photos: list[bytes], tmp_path: Path) -> None:
    def refused(table: pa.Table, message: str) -> None:
        pq.write_table(table, tmp_path / "train.parquet")
        with pytest.raises(DataError, match=message):
            opened(tmp_path, tmp_path)

    good = table_of(rows_of(photos))
    pq.write_table(good, tmp_path / "val.parquet")
    null = table_of([*rows_of(photos), (None, 1)])
    refused(null, r"train\.parquet has rows without image or label in row group 0")
    refused(good.set_column(1, "label", pa.array([None, *[1] * 29])), "rows without image or label")
    refused(good.rename_columns(["picture", "label"]), "has columns picture, label; expected one of image or img or x")
    refused(good.append_column("x", good["image"]), "has columns image, label, x; expected one")
    refused(
        good.set_column(0, "image", pa.array(["a"] * 30)), r"image of type string and label of type int64, expected"
    )
    refused(good.set_column(1, "label", pa.array(["a"] * 30)), r"label of type string, expected")
    words = pa.array(["a"] * 30).dictionary_encode()
    refused(good.set_column(1, "label", words), r"label of type dictionary<values=string.*expected")
    refused(table_of([*rows_of(photos), (photos[0], 3)]), r"train\.parquet: image 30 has label 3, expected 0\.\.2")
    refused(table_of([*rows_of(photos), (photos[0], -1)]), r"image 30 has label -1, expected 0\.\.2")
    refused(table_of(rows_of(photos), names=["a", "b", "c"]), r"has other classes than the files before it")
    refused(table_of([(photos[0], 0), (photos[1], 2)]), "class 1 has no images in .*'s train")


def test_a_broken_or_missing_parquet_file_is_named(photos: list[bytes], tmp_path: Path) -> None:
    hub = hub_folder(tmp_path / "hub", photos)
    path = hub / "data" / "train-00001-of-00002.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    with pytest.raises(DataError, match=r"train-00001-of-00002\.parquet cannot be read as Parquet"):
        opened(hub, tmp_path)
    middle = len(whole) // 3
    path.write_bytes(whole[:middle] + bytes(200) + whole[middle + 200 :])
    with pytest.raises(DataError, match=r"train-00001-of-00002\.parquet"):
        opened(hub, tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=r"1 of the train files are missing: .*-00001-of-00002"):
        opened(hub, tmp_path)


def test_several_sets_in_one_folder_are_asked_about(photos: list[bytes], tmp_path: Path) -> None:
    hub = hub_folder(tmp_path / "hub", photos)
    shutil.copytree(hub / "data", hub / "again")
    with pytest.raises(DataError, match=r"has train files of 2 sorts: .*again/train-.*--source"):
        opened(hub, tmp_path)
    shutil.rmtree(hub / "again")
    shutil.copy(hub / "data" / "validation-00000-of-00001.parquet", hub / "data" / "val-00000-of-00001.parquet")
    with pytest.raises(DataError, match=r"has test files of 2 sorts"):
        opened(hub, tmp_path)


def test_a_page_that_changed_since_is_named(photos: list[bytes], tmp_path: Path) -> None:
    hub = hub_folder(tmp_path / "hub", photos)
    place = opened(hub, tmp_path).samples["test"].byte_range(0)
    Path(place.path).write_bytes(b"\xff" * Path(place.path).stat().st_size)
    with pytest.raises(DataError, match=r"validation.*the page at byte \d+ cannot be decompressed"):
        place.read()


def test_without_pyarrow_the_message_says_how_to_install_it(
    photos: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = hub_folder(tmp_path / "hub", photos)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r'pip install "\.\[parquet\]"'):
        opened(hub, tmp_path)


# --- MDS, as MosaicML's own writer wrote it: fixtures/make_mds.py


def digest(image: Any) -> str:
    return hashlib.sha256(image if isinstance(image, bytes) else image.tobytes()).hexdigest()


@pytest.mark.parametrize("name", ["jpeg", "pil", "named"])
def test_mds_is_read_as_mosaicml_s_own_reader_reads_it(name: str, tmp_path: Path) -> None:
    expected = json.loads((MDS / "expected.json").read_text())[name]
    original = opened(MDS / name, tmp_path)
    assert original.classes == ("0", "1", "2")
    for split, word in (("train", "train"), ("test", "val")):
        labels = original.samples[split].labels.tolist()
        assert [[*pair] for pair in zip(labels, map(digest, images(original, split)), strict=True)] == expected[word]


def test_a_converted_mds_set_has_its_images(tmp_path: Path, run: Run, stored: Any) -> None:
    prepared = stored(run(source=MDS / "pil"))
    expected = json.loads((MDS / "expected.json").read_text())["pil"]["train"]
    assert [digest(pixels) for pixels in prepared.decoded("train")] == [found for _, found in expected]
    assert prepared.names("train")[:2] == ["shard.00000.mds/000000", "shard.00000.mds/000001"]


def test_mds_that_cannot_be_read_in_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"shard\.00000\.mds\.zstd is compressed \(zstd\).*zstd -d"):
        opened(MDS / "zstd", tmp_path)
    with pytest.raises(DataError, match=r"shard\.00000\.mds: image 0 is raw in mode b'L.*, expected b'RGB'"):
        opened(MDS / "grey", tmp_path)


def test_broken_mds_is_named(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MDS / "jpeg", tmp_path / "mds"))
    shard, index = folder / "train" / "shard.00001.mds", folder / "train" / "index.json"
    whole, text = shard.read_bytes(), index.read_text()

    def refused(message: str) -> None:
        with pytest.raises(DataError, match=message):
            opened(folder, tmp_path)
        shard.write_bytes(whole)
        index.write_text(text)

    shard.write_bytes(whole[:-1])
    refused(r"shard\.00001\.mds has 2,260 bytes, expected 2,261")
    shard.write_bytes(whole[:8] + b"\xff" + whole[9:])
    refused(r"index\.json cannot be read as an index of MDS shards")
    shard.unlink()
    refused(r"index\.json cannot be read as an index of MDS shards.*shard\.00001\.mds")
    index.write_text(text.replace('"jpeg"', '"pkl"'))
    refused(r"has x as pkl and y as int; expected jpeg, png, bytes or pil, and int")
    index.write_text(text.replace('"x"', '"photo"'))
    refused(r"has columns i, photo, y; expected one of image or img or x")
    index.write_text('{"chunks": []}')
    refused(r"index\.json cannot be read as an index of MDS shards")


# --- .betons of FFCV's own writer


def write_by_ffcv(path: Path, pixels: list[Any], fields: dict[str, Any], **options: Any) -> None:
    from ffcv.writer import DatasetWriter

    rows = [(image, number % 3) for number, image in enumerate(pixels)]
    DatasetWriter(str(path), fields, num_workers=1, **options).from_indexed_dataset(rows)


@pytest.fixture
def ffcv_fields() -> Any:
    if importlib.util.find_spec("ffcv") is None and os.environ.get("CI") != "true":
        pytest.skip("FFCV is not installed: `make ffcv`")
    import torch

    threads = torch.get_num_threads()
    from ffcv import fields

    torch.set_num_threads(threads)
    return fields


@pytest.mark.parametrize(("ending", "page_size"), [("500_0.50_90.ffcv", 1 << 21), ("_small.beton", 1 << 23)])
def test_betons_of_ffcv_imagenet_are_read_as_they_are(
    ending: str, page_size: int, ffcv_fields: Any, photos: list[bytes], tmp_path: Path, run: Run, stored: Any
) -> None:
    pixels = [np.asarray(Image.open(io.BytesIO(photo)).convert("RGB")) for photo in photos]
    image = ffcv_fields.RGBImageField(write_mode="proportion", max_resolution=45, compress_probability=0.5)
    np.random.seed(0)
    for word in ("train", "val"):
        fields = {"image": image, "label": ffcv_fields.IntField()}
        write_by_ffcv(tmp_path / f"{word}_{ending}", pixels, fields, page_size=page_size)
    original = opened(tmp_path, tmp_path)
    from ffcv.reader import Reader

    reader = Reader(str(tmp_path / f"train_{ending}"))
    found = images(original, "train")
    assert {type(one) for one in found} == {bytes, np.ndarray}
    for number, (one, row) in enumerate(zip(found, reader.metadata, strict=True)):
        shape = (int(row["f0"]["height"]), int(row["f0"]["width"]), 3)
        assert max(shape) <= 45
        if isinstance(one, bytes):
            assert np.asarray(Image.open(io.BytesIO(one))).shape == shape
        elif max(pixels[number].shape) <= 45:
            np.testing.assert_array_equal(one, pixels[number])
    assert original.samples["train"].labels.tolist() == reader.metadata["f1"].tolist() == [n % 3 for n in range(30)]
    assert run(source=tmp_path).manifest.num_images == {"train": 30, "test": 30}


def test_betons_of_other_fields_are_refused(ffcv_fields: Any, tmp_path: Path) -> None:
    pixels = [np.zeros((4, 4, 3), np.uint8)] * 3
    image, whole, real = ffcv_fields.RGBImageField(), ffcv_fields.IntField(), ffcv_fields.FloatField()
    for fields, shown in (
        ({"image": image, "label": real}, "image: RGBImageField, label: FloatField"),
        ({"covariate": image, "label": whole}, "covariate: RGBImageField, label: IntField"),
    ):
        write_by_ffcv(tmp_path / "train.beton", pixels, fields)
        with pytest.raises(DataError, match=f"its fields are {shown}, expected image: RGBImageField, label: IntField"):
            opened(tmp_path / "train.beton", tmp_path)
    shutil.copy(tmp_path / "train.beton", tmp_path / "train_again.beton")
    with pytest.raises(DataError, match=r"has train files of 2 sorts: .*/train\.beton, .*/train_again\.beton"):
        opened(tmp_path, tmp_path)


def test_our_own_betons_keep_their_class_names(tmp_path: Path, run: Run, stored: Any) -> None:
    first = run("ffcv")
    second = stored(run(dataset="again", source=first.folder))
    assert second.manifest.classes == first.manifest.classes
    assert second.encoded("train") == stored(run(out=tmp_path / "other")).encoded("train")
