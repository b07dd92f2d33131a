"""Uncompressed zips of class folders: ``train/CLASS/…`` and ``val/CLASS/…`` in one zip, or a zip for each split."""

import zipfile
from pathlib import Path

from imagesets.manifest import SPLITS, Split, split_word
from imagesets.originals.containers import Files, find_files
from imagesets.originals.folders import EXTENSIONS, check_classes
from imagesets.originals.samples import Original, OriginalSamples, class_name, list_some, sort_classes
from suite.base.archives import check_member_name, list_stored_members
from suite.base.errors import DataError
from suite.base.files import open_file

_WORDS: dict[Split, tuple[str, ...]] = {"train": ("train",), "test": ("val", "test")}
_Classes = dict[str, dict[str, tuple[int, int, int]]]  # of each class, its files' names and places


def find_zips(folder: Path, source: Path, chosen: list[Path] | None) -> Files:
    """The zips of each split; the zip that was named, or the only one that is there, may have both."""
    alone = [source] if source.is_file() else sorted(folder.glob("*.zip"))
    if len(alone) == 1 and alone[0].suffix.lower() == ".zip" and split_word(alone[0].name) is None:
        return {"train": alone, "test": alone}
    return find_files(folder, chosen, ".zip")


def open_zips(folder: Path, files: Files, num_kept: int | None) -> Original:
    """The samples of zips, in the order that they would have as folders; ``num_kept`` as of ``folders.open_folders``.
    DataError for a member that is compressed, there twice or leads out, or what ``open_folders`` refuses."""
    paths, passed = sorted({path for found in files.values() for path in found}), list[str]()
    listed = _list_classes(paths, passed)
    found = {split: next((listed[w] for w in words if w in listed), {}) for split, words in _WORDS.items()}
    shown = f" ({list_some(passed, 10)})" if passed else ""
    for split in (split for split in SPLITS if not found[split]):
        where = f"{list_some([str(path) for path in paths])} has no {_WORDS[split][0]}/CLASS/ with images"
        raise DataError(f"{where}, but {len(passed):,} other files{shown}. Unzip it into such folders.")
    classes, tested = (sort_classes(found[split])[:num_kept] for split in SPLITS)
    check_classes({f"train/ in {paths[0]}": classes, f"the test images' folder in {paths[-1]}": tested})
    samples: dict[Split, OriginalSamples] = {}
    for split, of_class in found.items():
        rows = [(name, label, of_class[c][name]) for label, c in enumerate(classes) for name in sorted(of_class[c])]
        samples[split] = OriginalSamples([r[0] for r in rows], [r[1] for r in rows], paths, [r[2] for r in rows])
    notes = [f"warning: passed over {len(passed):,} that are no images in a class folder{shown}"] if passed else []
    return Original(tuple(classes), str(folder), samples, notes)


def _list_classes(paths: list[Path], passed: list[str]) -> dict[str, _Classes]:
    """The images of each class by the word for their split; other files are added to ``passed``."""
    found: dict[str, _Classes] = {}
    for number, path in enumerate(paths):
        try:
            with open_file(path) as file:
                members = list(list_stored_members(file))
        except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
            told = f"{str(error).rstrip('.')}. Bring it again, or unzip it."
            raise DataError(f"{path} cannot be read as an uncompressed zip: {told}") from error
        for name, offset, length in members:
            parts = check_member_name(str(path), name).split("/")
            if any(part.startswith((".", "__MACOSX")) for part in parts):
                continue
            at = next((at for at, part in enumerate(parts[:-1]) if split_word(part, whole=True)), -1)
            word = split_word(parts[at] if at >= 0 else path.name)
            if word is None or len(parts) < at + 3 or not name.lower().endswith(EXTENSIONS):
                passed.append(name)
                continue
            of_class = found.setdefault(word, {}).setdefault(class_name(parts[at + 1]), {})
            place = (number, offset, length)
            if of_class.setdefault("/".join([word, *parts[at + 1 :]]), place) != place:
                raise DataError(f"{path}: {name} is there twice, and nobody knows which counts. Remove one.")
    return found
