"""Image sets of one's own: offered by an installed distribution, or prepared in a format that is named."""

import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from imagesets.loader import ImageLoader
from imagesets.prepared import find_info
from launchers.grid import main
from suite.base.errors import SpecError
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources

TULIPS = """
from imagesets.catalog import ImageSetInfo

HALF = (0.5, 0.5, 0.5)
TULIPS = ImageSetInfo("tulips", "Tulips", 17, 64, 1360, 340, HALF, HALF)
"""


def test_an_installed_plug_in_s_image_set_is_found_by_a_fresh_process(tmp_path):
    (tmp_path / "garden.py").write_text(TULIPS)
    info = tmp_path / "garden-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: garden\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[convolutional_prior.image_sets]\ntulips = garden:TULIPS\n")
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    grid = ["--suite", "sample_efficiency", "--dataset", "tulips", "--show", "--only", "train_fraction=0.2"]
    command = [sys.executable, "-m", "launchers.grid", *grid]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "profile laptop@tulips: 2 runs" in done.stdout


def test_a_set_that_is_there_in_another_format_says_which(run, tmp_path):
    run("folder")
    assert find_info("pets", tmp_path / "data", "folder").num_classes == 3
    told = r"pets is prepared in .*data/pets for --loader folder, not for memory: choose --loader folder, or prepare"
    with pytest.raises(SpecError, match=told):
        find_info("pets", tmp_path / "data", "memory")
    with pytest.raises(SpecError, match="unknown dataset 'pest'"):
        find_info("pest", tmp_path / "data", "memory")


PADDED = Recipe(
    name="padded", epochs=1, batch_size=6, learning_rate=0.1, crop="pad", crop_padding=0, flip_probability=0
)


def padded_loader(tmp_path, storage_format):
    experiment = Experiment(model="deit_micro", dataset="pets", image_size=32, recipe=PADDED)
    return ImageLoader(experiment, Resources(data_dir=str(tmp_path / "data"), loader=storage_format))


def test_images_that_were_made_squares_of_a_suite_s_size_are_used_as_they_are_stored(run, tmp_path):
    prepared, images = run("memory", max_side=32), padded_loader(tmp_path, "memory")
    train, test = (np.load(prepared.folder / f"{split}.npy") for split in ("train", "test"))
    mean, std = (np.array(numbers)[:, None, None] for numbers in (images.info.mean, images.info.std))
    expected = (train[images.samples(0).index].transpose(0, 3, 1, 2) / 255 - mean) / std
    np.testing.assert_allclose(images.train_batch(0).images.numpy(), expected, atol=1e-4)
    np.testing.assert_array_equal(images.spread_pixels(3).numpy(), test[::2])


@pytest.mark.parametrize("storage_format", ["folder", "webdataset", "memory"])
def test_squares_that_were_stored_smaller_are_used_as_they_are_stored(storage_format, folder, run, tmp_path):
    for path in folder.rglob("*.JPEG"):
        Image.new("RGB", (48, 48), (200, 100, 50)).save(path)
    run(storage_format, max_side=32)
    images = padded_loader(tmp_path, storage_format)
    assert images.train_batch(0).images.shape == (6, 3, 32, 32)
    assert images.spread_pixels(1)[0].float().mean((0, 1)).tolist() == pytest.approx([200, 100, 50], abs=2)


@pytest.mark.parametrize(("storage_format", "found"), [("webdataset", "which differ"), ("folder", "48")])
def test_images_of_another_size_are_refused_where_the_grid_is_planned(
    storage_format, found, folder, run, tmp_path, capsys
):
    if found == "48":
        for path in folder.rglob("*.JPEG"):
            Image.new("RGB", (48, 48)).save(path)
    run(storage_format)
    grid = ["--suite", "sample_efficiency", "--dataset", "pets", "--data-dir", str(tmp_path / "data")]
    grid += ["--runs", str(tmp_path / "runs"), "--dry-run"]
    assert main([*grid, "--loader", storage_format]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert (
        f"of their own size, {found}; expected image_size 32: prepare pets with --format memory --max-side 32" in said
    )
    run("memory", max_side=32)
    assert main(grid) == 0
