"""A name of the catalog stands for its images in its order: what differs is refused, or told."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from imagesets import fetch
from imagesets.catalog import CATALOG
from imagesets.fetch import storage
from imagesets.manifest import SPLITS
from imagesets.prepared import check_order
from suite.base.errors import DataError

Run = Callable[..., Any]
NAME = "cifar10_sample"
OTHERS = "images are others, or in another order.*--dataset NAME"


def make_shards(folder: Path, order: NDArray[np.int64], form: str = "png") -> Path:
    """The sample's training images in this order, and all its test images, as shards made elsewhere."""
    folder.mkdir()
    arrays = storage.open_arrays(fetch.ensure(NAME))
    for split, prefix, chosen in (("train", "train", order), ("test", "val", np.arange(100))):
        with tarfile.open(folder / f"{prefix}-000000.tar", "w") as tar:
            for number, index in enumerate(chosen.tolist()):
                image = io.BytesIO()
                Image.fromarray(np.array(arrays[f"{split}_images"][index])).save(
                    image, "JPEG" if form == "jpg" else form
                )
                label = str(arrays[f"{split}_labels"][index]).encode()
                for extension, data in ((form, image.getvalue()), ("cls", label)):
                    member = tarfile.TarInfo(f"{number:06}.{extension}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    return folder


def swap_two_of_one_class() -> NDArray[np.int64]:
    labels, order = storage.open_arrays(fetch.ensure(NAME))["train_labels"], np.arange(320)
    first, second = np.flatnonzero(labels == labels[0])[:2]
    order[[first, second]] = second, first
    return order


@pytest.mark.parametrize(
    ("order", "form"),
    [
        (np.random.default_rng(0).permutation(320), "png"),
        (swap_two_of_one_class(), "png"),
        (np.arange(32), "png"),
        (np.arange(320), "jpg"),
    ],
    ids=["shuffled", "two of a class swapped", "fewer", "other pixels"],
)
def test_what_is_not_the_named_set_is_refused(order: NDArray[np.int64], form: str, run: Run, tmp_path: Path) -> None:
    source = make_shards(tmp_path / "shards", order, form)
    with pytest.raises(DataError, match=OTHERS):
        run(dataset=NAME, source=source)
    assert run(dataset="mine", source=source).manifest.num_images["train"] == len(order)


def test_the_named_set_from_somebody_elses_shards_is_the_named_set(run: Run, stored: Any, tmp_path: Path) -> None:
    found = stored(run(dataset=NAME, source=make_shards(tmp_path / "shards", np.arange(320))))
    own = stored(run(dataset=NAME, source=None, out=tmp_path / "own"))
    for split in SPLITS:
        assert found.labels(split) == own.labels(split)
        np.testing.assert_array_equal(np.stack(found.decoded(split)), np.stack(own.decoded(split)))


def test_class_folders_under_a_fetched_set_s_name_are_refused(run: Run) -> None:
    """CIFAR-100's checksums are not known here, but that it is not sorted by class."""
    labels = np.repeat(np.arange(100), 5)
    with pytest.raises(DataError, match=f"folders is not CIFAR-100.*{OTHERS}"):
        check_order("cifar100", "folders", CATALOG["cifar100"].class_names, {"train": labels, "test": labels})
    assert not check_order("cifar100", "shards", (), {"train": labels[::-1], "test": labels})
    assert not check_order("mine", "folders", (), {"train": labels, "test": labels})


def test_imagenet_s_classes_are_those_that_timm_lists() -> None:
    [place] = find_spec("timm").submodule_search_locations or ()  # type: ignore[misc]
    synsets = tuple((Path(place) / "data" / "_info" / "imagenet_synsets.txt").read_text().split())
    for name, classes in (("imagenet", synsets), ("imagenet100", synsets[:100])):
        labels: Any = {"train": np.arange(len(classes)), "test": np.arange(len(classes))}
        assert not check_order(name, "folders", classes, labels)
        assert not check_order(name, "shards", tuple(str(label) for label in range(len(classes))), labels)
        for others in ((*classes[1:], classes[0]), ("n90000000", *classes[1:])):
            with pytest.raises(DataError, match=r"its classes, n.* are not those of that set"):
                check_order(name, "folders", others, labels)
        shuffled = {"train": labels["train"][::-1], "test": labels["test"]}
        [note] = check_order(name, "shards", classes, shuffled)
        assert "not sorted by class" in note
