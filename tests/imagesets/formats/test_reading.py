"""One stream from four formats: the same samples, augmentations and, but for a stored resize, pixels."""

import dataclasses
import hashlib
import json
import shutil

import numpy as np
import pytest
import safetensors.numpy
import torch
from PIL import Image

from imagesets.catalog import CATALOG
from imagesets.fetch import ensure
from imagesets.fetch.storage import open_arrays
from imagesets.loader import ImageLoader
from imagesets.manifest import INDEX, read_manifest, write_manifest
from imagesets.prepare.__main__ import main as prepare
from imagesets.prepared import find_info
from suite.base.errors import DataError, SpecError
from suite.papers.shared.deit_recipes import DEIT
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources

ENCODED = ["folder", "webdataset", "ffcv"]
FORMATS = [*ENCODED, "memory"]
RECIPE = DEIT.model_copy(
    update={"batch_size": 16, "mix_group": 4, "epochs": 3.0, "warmup_epochs": 0.0, "train_interpolation": "random"}
)
formats = pytest.mark.parametrize("storage_format", FORMATS)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """CIFAR-10's sample in every format, and a folder of JPEGs of many sizes, "photos", in every format."""
    out = tmp_path_factory.mktemp("data")
    source = out / "originals"
    arrays = open_arrays(ensure("cifar10_sample"))
    for split, folder in (("train", "train"), ("test", "val")):
        for number, label in enumerate(arrays[f"{split}_labels"][:80]):
            size = (48 + 5 * (number % 7), 40 + 9 * (number % 5))
            image = Image.fromarray(np.array(arrays[f"{split}_images"][number])).resize(size, Image.Resampling.BICUBIC)
            path = source / folder / f"class{label}" / f"{number:03}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path, quality=90)
    for storage_format in FORMATS:
        common = ["--format", storage_format, "--out", str(out)]
        side = ["--max-side", "64"] if storage_format == "memory" else []
        assert prepare(["--dataset", "photos", "--source", str(source), *common, *side]) == 0
        if storage_format != "memory":
            assert prepare(["--dataset", "cifar10_sample", *common]) == 0
    return out


def loader(data_dir, storage_format, dataset="photos", num_workers=2, **changes):
    fields = {"model": "deit_micro", "dataset": dataset, "image_size": 32, "recipe": RECIPE, "seed": 7, **changes}
    resources = Resources(data_dir=str(data_dir), loader=storage_format, num_workers=num_workers)
    return ImageLoader(Experiment(**fields), resources)


def stream(images, steps, num_ranks=1):
    """Batches of the whole step, put together from the ranks' shares."""
    shares = [list(images.train_batches(steps.start, steps.stop, rank, num_ranks)) for rank in range(num_ranks)]
    return [
        tuple(torch.stack([share[k][part] for share in shares], 1).flatten(0, 1) for part in (0, 1))
        for k in range(len(steps))
    ]


@pytest.fixture(scope="module")
def reference(data_dir):
    return stream(loader(data_dir, "folder"), range(8))


@formats
@pytest.mark.parametrize(("num_ranks", "num_workers"), [(1, 4), (2, 2), (4, 1)])
def test_every_format_gives_the_folders_stream_at_any_number_of_ranks_and_workers(
    data_dir, reference, storage_format, num_ranks, num_workers
):
    found = stream(loader(data_dir, storage_format, num_workers=num_workers), range(8), num_ranks)
    for (images, targets), (expected, expected_targets) in zip(found, reference, strict=True):
        assert torch.equal(targets, expected_targets)
        if storage_format == "memory":  # stored at another size: the same pictures, a little blurred
            assert (images - expected).abs().mean() < 0.25
        else:
            assert torch.equal(images, expected)


@formats
def test_a_restart_in_mid_epoch_goes_on_with_the_same_stream(data_dir, reference, storage_format):
    first = loader(data_dir, storage_format)
    expected = stream(first, range(8)) if storage_format == "memory" else reference
    resumed = stream(loader(data_dir, storage_format), range(6, 8))  # 80 images in batches of 16: in the second epoch
    for (images, targets), (wanted, wanted_targets) in zip(resumed, expected[6:], strict=True):
        assert torch.equal(images, wanted)
        assert torch.equal(targets, wanted_targets)


@formats
def test_cifar_is_the_same_bit_by_bit_in_every_format(data_dir, storage_format):
    recipe = RECIPE.model_copy(update={"crop": "pad", "crop_padding": 4})
    changes = {"dataset": "cifar10_sample", "recipe": recipe, "train_fraction": 0.25}
    changes |= {"images_drawn_by_seed": True, "shuffle": "patches", "shuffle_patch_size": 4}
    found, expected = loader(data_dir, storage_format, **changes), loader(None, "memory", **changes)
    assert all(map(torch.equal, found.train_batch(6), expected.train_batch(6)))
    assert all(map(torch.equal, found.test_batch(0, 100), expected.test_batch(0, 100)))


@formats
def test_test_images_are_the_same_in_every_format(data_dir, storage_format):
    found, expected = (loader(data_dir, name).test_batch(0, 80) for name in (storage_format, "folder"))
    assert torch.equal(found.labels, expected.labels)
    assert (found.images - expected.images).abs().mean() < (0.25 if storage_format == "memory" else 1e-9)


@formats
def test_fractions_keep_the_same_images_in_every_format(data_dir, storage_format):
    half = loader(data_dir, storage_format, train_fraction=0.5)
    labels = loader(data_dir, storage_format)
    assert half.num_train < labels.num_train
    assert torch.equal(half.train_batch(0).labels, loader(data_dir, "folder", train_fraction=0.5).train_batch(0).labels)


def corrupt(data_dir, name, split="train"):
    """Break one image of the folder format; returns how to mend it."""
    path = data_dir / "originals" / split / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return lambda: path.write_bytes(whole)


def test_a_corrupt_image_stops_the_stream_with_its_name_or_is_skipped_and_counted(data_dir, reference):
    name = sorted(p.relative_to(data_dir / "originals" / "train") for p in data_dir.glob("originals/train/*/*.jpg"))[0]
    mend = corrupt(data_dir, name)
    try:
        images = loader(data_dir, "folder")
        with pytest.raises(DataError, match=f"{name}.*cannot be decoded.*--skip-corrupt"):
            stream(images, range(8))
        experiment = Experiment(model="deit_micro", dataset="photos", image_size=32, recipe=RECIPE, seed=7)
        skipping = ImageLoader(experiment, Resources(data_dir=str(data_dir), loader="folder", skip_corrupt=True))
        batches = stream(skipping, range(8))
        assert skipping.corrupt == {("train", 0)}
        changed = sum(not torch.equal(a[0], b[0]) for a, b in zip(batches, reference, strict=True))
        assert 1 <= changed < 8
    finally:
        mend()


@formats
def test_images_to_look_at_are_of_all_classes_also_of_a_set_sorted_by_class(data_dir, storage_format):
    images = loader(data_dir, storage_format)
    whole, labels = images.test_batch(0, 80)
    assert labels.tolist() == sorted(labels.tolist())
    shown, shown_labels = images.spread_batch(20)
    assert shown_labels.tolist() == [*range(10), *range(10)]
    first = [(labels == label).nonzero()[turn].item() for turn in range(2) for label in range(10)]
    assert torch.equal(shown, whole[first])
    pixels = images.spread_pixels(20)
    assert (pixels.shape, pixels.dtype) == ((20, 32, 32, 3), torch.uint8)
    mean, std = torch.tensor(images.info.mean), torch.tensor(images.info.std)
    torch.testing.assert_close((pixels / 255 - mean) / std, shown.permute(0, 2, 3, 1), rtol=0, atol=1e-5)
    assert len(images.spread_batch(100).labels) == 80
    assert images.spread_batch(4).labels.tolist() == [0, 2, 5, 7]


def test_a_corrupt_image_gives_its_place_to_the_next_of_its_class(data_dir):
    first, second = sorted(data_dir.glob("originals/val/class3/*.jpg"))[:2]
    mend = corrupt(data_dir, f"class3/{first.name}", "val")
    try:
        with pytest.raises(DataError, match=f"{first.name}.*cannot be decoded"):
            loader(data_dir, "folder").spread_batch(10)
        experiment = Experiment(model="deit_micro", dataset="photos", image_size=32, recipe=RECIPE, seed=7)
        skipping = ImageLoader(experiment, Resources(data_dir=str(data_dir), loader="folder", skip_corrupt=True))
        images, labels = skipping.spread_batch(10)
        assert labels.tolist() == list(range(10))
        paths = sorted(data_dir.glob("originals/val/*/*.jpg"))
        assert torch.equal(images[3], skipping.test_batch(paths.index(second), 1).images[0])
        assert skipping.corrupt == {("test", paths.index(first))}
    finally:
        mend()


def flip_a_bit(root, images):
    """Change one bit in the middle of the first training image, wherever a format keeps it."""
    stored = images._train.read(0)
    stored = stored if isinstance(stored, bytes) else stored.tobytes()
    [path] = [path for path in sorted(root.rglob("*")) if path.is_file() and stored in path.read_bytes()][:1]
    data = bytearray(path.read_bytes())
    data[data.index(stored) + len(stored) // 2] ^= 1
    path.write_bytes(data)


@formats
@pytest.mark.parametrize("dataset", ["photos", "cifar10_sample"])
def test_one_flipped_bit_ends_the_run_when_it_is_read_or_is_skipped_and_counted(
    storage_format, dataset, data_dir, tmp_path
):
    where = ["--dataset", dataset, "--format", storage_format, "--out", str(tmp_path)]
    source = ["--source", str(data_dir / "originals"), "--max-side", "48"] if dataset == "photos" else []
    assert prepare([*where, *source]) == 0
    crop = {} if dataset == "photos" else {"crop": "pad", "crop_padding": 4}
    recipe = RECIPE.model_copy(update={"repeated_augmentation": 1, **crop})
    flip_a_bit(tmp_path / dataset, loader(tmp_path, storage_format, dataset, recipe=recipe))
    with pytest.raises(DataError, match=r"image 0\) cannot be decoded: its bytes have changed since"):
        stream(loader(tmp_path, storage_format, dataset, recipe=recipe), range(20))
    experiment = Experiment(model="deit_micro", dataset=dataset, image_size=32, recipe=recipe, seed=7)
    skipping = ImageLoader(experiment, Resources(data_dir=str(tmp_path), loader=storage_format, skip_corrupt=True))
    stream(skipping, range(20))
    assert skipping.corrupt == {("train", 0)}


@formats
def test_a_set_from_before_there_were_checksums_is_read_as_ever_and_it_is_said(
    storage_format, data_dir, reference, tmp_path
):
    folder = tmp_path / "photos" / storage_format
    shutil.copytree(data_dir / "photos" / storage_format, folder)
    expected = stream(loader(tmp_path, storage_format), range(2))
    if storage_format != "folder":  # which always had them
        arrays = safetensors.numpy.load_file(folder / INDEX)
        without = {name: array for name, array in arrays.items() if not name.endswith("crc32")}
        assert len(without) == len(arrays) - 2
        safetensors.numpy.save_file(without, folder / INDEX)
        manifest = json.loads((folder / "manifest.json").read_text())
        data = (folder / INDEX).read_bytes()
        manifest["files"][INDEX] = {"num_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        del manifest["fingerprints"]["states"]
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.warns(UserWarning, match="prepared without checksums"):
            found = stream(loader(tmp_path, storage_format), range(2))
        assert all(torch.equal(one[0], other[0]) for one, other in zip(found, expected, strict=True))


def test_a_set_in_another_order_than_its_name_says_is_refused_by_readers(data_dir, tmp_path):
    """As an earlier version prepared it: from class folders, under a catalog's name."""
    source, folder = tmp_path / "own", tmp_path / "cifar10_sample" / "folder"
    make_class_folders(source)
    assert prepare(["--dataset", "own", "--source", str(source), "--format", "folder", "--out", str(tmp_path)]) == 0
    shutil.copytree(tmp_path / "own" / "folder", folder)
    write_manifest(folder, read_manifest(folder).model_copy(update={"dataset": "cifar10_sample"}))
    with pytest.raises(DataError, match="its 320 train images are others, or in another order"):
        loader(tmp_path, "folder", dataset="cifar10_sample")


def make_class_folders(source):
    """CIFAR-10's sample as its users keep it."""
    arrays, classes = open_arrays(ensure("cifar10_sample")), CATALOG["cifar10_sample"].class_names
    for split in ("train", "test"):
        for number, label in enumerate(arrays[f"{split}_labels"]):
            path = source / split / classes[label] / f"{number:04}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.array(arrays[f"{split}_images"][number])).save(path)


def test_a_shell_command_is_no_place_to_get_shards_from(tmp_path, capsys):
    options = ["--dataset", "cifar10_sample", "--format", "webdataset", "--out", str(tmp_path)]
    with pytest.raises(SystemExit, match="2"):
        prepare([*options, "--shards-url", "pipe:cat /etc/passwd"])
    assert "never a command" in capsys.readouterr().err


def test_images_stored_smaller_than_the_model_s_are_resized_or_refused(tmp_path):
    for storage_format in ("folder", "memory"):
        where = ["--format", storage_format, "--out", str(tmp_path)]
        assert prepare(["--dataset", "cifar10_sample", *where, "--max-side", "16"]) == 0
        images = loader(tmp_path, storage_format, dataset="cifar10_sample")
        assert images.train_batch(0).images.shape[-1] == images.test_batch(0, 8).images.shape[-1] == 32
        padded = RECIPE.model_copy(update={"crop": "pad", "crop_padding": 4})
        with pytest.raises(SpecError, match=r"expected image_size 32: .*--format memory --max-side 32"):
            loader(tmp_path, storage_format, dataset="cifar10_sample", recipe=padded)


def test_a_folder_under_another_name_is_refused(data_dir, tmp_path):
    shutil.copytree(data_dir / "cifar10_sample", tmp_path / "cifar10")
    with pytest.raises(DataError, match=r"holds cifar10_sample in format folder.*expected cifar10"):
        loader(tmp_path, "folder", dataset="cifar10")


@formats
def test_the_first_classes_of_a_set_are_read_from_it_without_rewriting(data_dir, storage_format, monkeypatch):
    part = dataclasses.replace(find_info("photos", data_dir), name="part", num_classes=4, subset_of="photos")
    monkeypatch.setitem(CATALOG, "part", part)
    images, whole = loader(data_dir, storage_format, dataset="part"), loader(data_dir, storage_format)
    assert 0 < images.num_train < whole.num_train
    labels = images.test_batch(0, 80).labels
    assert set(labels.tolist()) == set(range(4))
    assert images.num_test == len(labels)
    assert images.train_batch(0).labels.shape == (16, 4)


@formats
def test_a_set_that_is_not_there_names_the_command_that_makes_it(tmp_path, storage_format):
    experiment = Experiment(model="deit_micro", dataset="imagenet", image_size=32, recipe=RECIPE)
    with pytest.raises(DataError, match=r"prepare\.py --dataset imagenet"):
        ImageLoader(experiment, Resources(data_dir=str(tmp_path), loader=storage_format))
