"""An image set carried as strips comes out bit by bit."""

import pytest

from imagesets import fetch
from imagesets.catalog import get_info
from imagesets.fetch import storage
from imagesets.strips import main, read_strips, write_strips

NAME = "cifar10_sample"


@pytest.fixture(scope="module")
def strips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strips")
    write_strips(NAME, folder)
    return folder


def test_strips_give_the_arrays_of_the_catalog_in_less_room(strips, tmp_path):
    path, original = read_strips(NAME, strips, tmp_path), fetch.ensure(NAME)
    found, expected = storage.open_arrays(path), storage.open_arrays(original)
    assert all((found[name] == expected[name]).all() for name in storage.ARRAY_NAMES)
    assert storage.compute_sha256(found) == get_info(NAME).sha256
    assert sum(path.stat().st_size for path in strips.iterdir()) < 0.62 * original.stat().st_size


@pytest.mark.parametrize("spoil", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:900])])
def test_a_strip_that_is_missing_or_cut_is_refused_and_no_set_is_made(tmp_path, spoil, capsys):
    folder = tmp_path / "strips"
    write_strips(NAME, folder)
    spoil(folder / "test_images-000.webp")
    assert main([NAME, str(folder), "--data-dir", str(tmp_path)]) == 1
    assert "does not hold CIFAR-10, the first images of each class as strips" in capsys.readouterr().err
    assert list(tmp_path.glob("*.safetensors")) == []


def test_strips_of_another_set_are_refused_by_their_checksum(strips, tmp_path, capsys):
    labels = strips / "train_labels.u8"
    kept = labels.read_bytes()
    labels.write_bytes(kept[:-1] + bytes([(kept[-1] + 1) % 10]))
    assert main([NAME, str(strips), "--data-dir", str(tmp_path)]) == 1
    labels.write_bytes(kept)
    assert "train_labels has SHA-256" in capsys.readouterr().err
