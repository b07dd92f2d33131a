"""Every format, from an image folder and from arrays of pixels."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from imagesets import fetch
from imagesets.fetch import storage
from imagesets.formats import ffcv
from imagesets.manifest import read_index
from imagesets.prepare import work
from suite.base.errors import DataError, SpecError

Run = Callable[..., Any]


def test_plain_webdataset_reads_the_same_images_and_labels_from_our_shards(folder: Path, run: Run) -> None:
    import webdataset

    prepared = run()
    shards = [str(prepared.folder / name) for name in prepared.manifest.shards("train")]
    assert [Path(shard).name for shard in shards] == [f"train-{number:06d}.tar" for number in range(5)]
    samples = list(webdataset.WebDataset(shards, shardshuffle=False).decode("rgb8").to_tuple("jpg", "cls"))
    files = sorted((folder / "train").rglob("*.JPEG"))
    assert [label for _, label in samples] == [0] * 6 + [1] * 6 + [2] * 6
    for (image, _), file in zip(samples, files, strict=True):
        np.testing.assert_array_equal(image, np.asarray(Image.open(file)))


def test_jpegs_keep_their_bytes_and_the_index_finds_them(folder: Path, run: Run, stored: Any) -> None:
    prepared = stored(run())
    for split, name in (("train", "train"), ("test", "val")):
        files = sorted((folder / name).rglob("*.JPEG"))
        assert prepared.encoded(split) == [file.read_bytes() for file in files]
        assert prepared.names(split) == [file.relative_to(folder).as_posix() for file in files]
        assert prepared.sizes(split) == [list(Image.open(file).size[::-1]) for file in files]
    manifest = prepared.manifest
    assert manifest.num_images == {"train": 18, "test": 6}
    assert manifest.classes == ("n01440764", "n01443537", "n01484850")
    assert manifest.source == str(folder)
    assert "webdataset 1." in manifest.made_by
    assert sorted(path.name for path in prepared.folder.parent.iterdir()) == [".webdataset.lock", "webdataset"]


def test_max_side_bounds_the_longer_side_and_leaves_smaller_images_alone(folder: Path, run: Run, stored: Any) -> None:
    prepared, originals = stored(run(max_side=50)), sorted((folder / "train").rglob("*.JPEG"))
    for data, file in zip(prepared.encoded("train"), originals, strict=True):
        width, height = Image.open(file).size
        if max(width, height) <= 50:
            assert data == file.read_bytes()
        else:
            found = Image.open(io.BytesIO(data))
            assert found.format == "JPEG"
            assert found.size == (50, round(height * 50 / width))
    assert prepared.sizes("train") == [list(Image.open(file).size[::-1]) for file in originals]
    assert (prepared.manifest.max_side, prepared.manifest.quality) == (50, 90)


def test_quality_encodes_every_jpeg_again(folder: Path, run: Run, stored: Any) -> None:
    smaller, files = stored(run(quality=20)), sorted((folder / "train").rglob("*.JPEG"))
    assert all(len(data) < file.stat().st_size for data, file in zip(smaller.encoded("train"), files, strict=True))


def test_memory_holds_squares_and_the_index_the_original_sizes(folder: Path, run: Run, stored: Any) -> None:
    prepared = stored(run("memory", max_side=24))
    images = np.load(prepared.folder / "train.npy", mmap_mode="r")
    assert images.shape == (18, 24, 24, 3)
    first = sorted((folder / "train").rglob("*.JPEG"))[0]
    expected = Image.open(first).resize((24, 24), Image.Resampling.BICUBIC)
    np.testing.assert_allclose(images[0].astype(int), np.asarray(expected).astype(int), atol=2)
    assert prepared.sizes("train")[0] == list(Image.open(first).size[::-1])
    assert list(read_index(prepared.folder, "train").places) == ["crc32"]


def test_memory_without_max_side_refuses_images_of_several_sizes(run: Run) -> None:
    with pytest.raises(DataError, match=r"n01440764_0\.JPEG.* is 40 x 30 pixels, expected 30 x 30.*--max-side"):
        run("memory")


def test_a_folder_is_indexed_where_it_is(folder: Path, run: Run, stored: Any) -> None:
    prepared = stored(run("folder"))
    assert prepared.manifest.root == str(folder)
    assert sorted(path.name for path in prepared.folder.iterdir()) == ["index.safetensors", "manifest.json"]
    assert prepared.encoded("test") == [file.read_bytes() for file in sorted((folder / "val").rglob("*.JPEG"))]
    assert stored(run("folder", dataset="small", max_side=20)).manifest.root is None


@pytest.mark.parametrize("storage_format", ["webdataset", "folder"])
def test_arrays_become_lossless_pngs_in_the_data_sets_own_order(storage_format: str, run: Run, stored: Any) -> None:
    prepared = stored(run(storage_format, dataset="cifar10_sample", source=None, samples_per_shard=100))
    arrays = storage.open_arrays(fetch.ensure("cifar10_sample"))
    for split in ("train", "test"):
        np.testing.assert_array_equal(np.stack(prepared.decoded(split)), arrays[f"{split}_images"])
        assert prepared.labels(split) == arrays[f"{split}_labels"].tolist()
    assert prepared.manifest.classes[:2] == ("airplane", "automobile")
    assert prepared.names("test")[0].startswith(f"test/{prepared.manifest.classes[prepared.labels('test')[0]]}/")


def test_arrays_in_memory_are_the_arrays(run: Run) -> None:
    prepared = run("memory", dataset="cifar10_sample", source=None, samples_per_shard=100)
    images = storage.open_arrays(fetch.ensure("cifar10_sample"))["train_images"]
    np.testing.assert_array_equal(np.load(prepared.folder / "train.npy"), images)


def test_any_number_of_workers_makes_the_same_bytes(
    run: Run, stored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_MIN_IMAGES_PER_WORKER", 1)
    one = stored(run(max_side=32))
    two = stored(run(max_side=32, num_workers=2, out=tmp_path / "other"))
    assert one.files() == two.files()


def test_other_formats_become_pngs_and_other_files_are_ignored(folder: Path, run: Run, stored: Any) -> None:
    first = folder / "train" / "n01440764"
    pixels = np.asarray(Image.open(next(first.iterdir())))
    Image.fromarray(pixels).save(first / "a.webp", lossless=True)
    (first / "notes.txt").write_text("no image")
    (first / "._a.jpg").write_bytes(b"resource fork")
    prepared = stored(run())
    assert prepared.manifest.num_images["train"] == 19
    [place] = [place for place, name in enumerate(prepared.names("train")) if name.endswith("a.webp")]
    assert prepared.encoded("train")[place].startswith(b"\x89PNG")
    np.testing.assert_array_equal(prepared.decoded("train")[place], pixels)


def test_sizes_and_pixels_are_those_before_an_exif_rotation(folder: Path, run: Run, stored: Any) -> None:
    file = folder / "train" / "n01440764" / "a.JPEG"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 20)).save(file, exif=exif)
    assert stored(run()).sizes("train")[0] == [20, 40]


def test_the_same_command_again_changes_nothing_and_other_settings_are_refused(run: Run) -> None:
    first = run()
    again = run()
    assert again.was_there
    assert again.manifest == first.manifest
    with pytest.raises(DataError, match=r"other settings \(--max-side None, --quality None\)"):
        run(max_side=20)


def test_foreign_files_in_the_target_are_left_alone(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "data" / "pets" / "webdataset" / "thesis.tex"
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work")
    with pytest.raises(DataError, match="it was not made here"):
        run()
    assert mine.exists()


def test_a_quality_for_pixels_is_misuse(run: Run) -> None:
    with pytest.raises(SpecError, match="--quality is about JPEGs"):
        run("memory", quality=50)


@pytest.mark.parametrize("options", [{}, {"max_side": 50}])
def test_ffcv_gets_the_images_of_our_shards(
    options: dict[str, Any], run: Run, stored: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare what goes into the file; that FFCV reads it is tested beside its writer."""
    given: dict[str, list[Any]] = {"train": [], "test": []}
    real = ffcv.BetonFile.append

    def append(file: Any, samples: Any) -> Any:
        given[file.path.stem] += (pairs := list(samples))
        return real(file, pairs)

    monkeypatch.setattr(ffcv.BetonFile, "append", append)
    made, shards = stored(run("ffcv", **options)), stored(run(**options))
    for split in ("train", "test"):
        assert given[split] == list(zip(shards.labels(split), shards.encoded(split), strict=True))
        assert made.sizes(split) == shards.sizes(split)
    assert sorted(made.files()) == ["index.safetensors", "test.beton", "train.beton"]
