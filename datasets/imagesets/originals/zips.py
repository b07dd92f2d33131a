"""Uncompressed zips of class folders: ``train/CLASS/…`` and ``val/CLASS/…`` in one zip, or a zip for each split."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

from imagesets.manifest import SPLITS, Split, split_word
from imagesets.originals.containers import Files, Options, find_files
from imagesets.originals.folders import EXTENSIONS, check_classes
from imagesets.originals.samples import MemberSamples, Original, OriginalSamples, class_name, list_some, sort_classes
from imagesets.originals.tars import Member, check_name
from suite.base.errors import DataError
from suite.base.files import open_file

_HEADER_BYTES = 30  # of a member's own header, before its name
_WORDS: dict[Split, tuple[str, ...]] = {"train": ("train",), "test": ("val", "test")}
_Classes = dict[str, dict[str, tuple[int, int, int]]]  # of each class, its files' names and places


def find(folder: Path, source: Path, chosen: list[Path] | None) -> Files:
    """The zips of each split; the zip that was named, or the only one that is there, may have both."""
    alone = [source] if source.is_file() else sorted(folder.glob("*.zip"))
    if len(alone) == 1 and alone[0].suffix.lower() == ".zip" and split_word(alone[0].name) is None:
        return {"train": alone, "test": alone}
    return find_files(folder, chosen, ".zip")


def open_files(folder: Path, files: Files, options: Options) -> Original:
    """The samples of zips, in the order that they would have as folders.

    Raises:
        DataError: a member that is compressed, there twice or leads out; what ``folders.open_folders`` refuses.
    """
    paths, passed = sorted({path for found in files.values() for path in found}), list[str]()
    listed = _list_classes(paths, passed)
    found = {split: next((listed[w] for w in words if w in listed), {}) for split, words in _WORDS.items()}
    for split, words in _WORDS.items():
        if not found[split]:
            raise DataError(
                f"{paths[0]} has no {words[0]}/CLASS/ with images{_some(passed)}. Unzip it into such folders."
            )
    classes, tested = (sort_classes(found[split])[: options.num_kept] for split in SPLITS)
    check_classes(classes, tested, f"train/ in {paths[0]}", f"the test images' folder in {paths[-1]}")
    samples: dict[Split, OriginalSamples] = {}
    for split, of_class in found.items():
        rows = [(name, label, of_class[c][name]) for label, c in enumerate(classes) for name in sorted(of_class[c])]
        samples[split] = MemberSamples(paths, [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])
    notes = [f"warning: passed over {len(passed):,} that are no images in a class folder{_some(passed)}"]
    return Original(tuple(classes), str(folder), samples, notes if passed else [])


def _some(passed: list[str]) -> str:
    return f": {list_some(passed, 10)}" if passed else ""


def _list_classes(paths: list[Path], passed: list[str]) -> dict[str, _Classes]:
    """The images of each class by the word for their split; other files are added to ``passed``."""
    found: dict[str, _Classes] = {}
    for number, path in enumerate(paths):
        for member in list_members(path):
            parts = member.name.split("/")
            at = next((at for at, part in enumerate(parts[:-1]) if split_word(part, whole=True)), -1)
            word = split_word(parts[at] if at >= 0 else path.name)
            if word is None or len(parts) < at + 3 or not member.name.lower().endswith(EXTENSIONS):
                passed.append(member.name)
                continue
            of_class = found.setdefault(word, {}).setdefault(class_name(parts[at + 1]), {})
            place = (number, member.offset, member.length)
            if of_class.setdefault("/".join([word, *parts[at + 1 :]]), place) != place:
                raise DataError(f"{path}: {member.name} is there twice, and nobody knows which counts. Remove one.")
    return found


def list_members(path: Path) -> Iterator[Member]:
    """The files in a zip but hidden ones; raise DataError where it is broken, or one is compressed or leads out."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                name = check_name(str(path), info.filename)
                if info.is_dir() or any(part.startswith((".", "__MACOSX")) for part in name.split("/")):
                    continue
                if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                    raise DataError(
                        f"{path}: {name} is compressed or encrypted, so that it cannot be read in place. Unzip it and "
                        "name the folder, or store it uncompressed: zip -0 -r FILE.zip train val"
                    )
                file.seek(info.header_offset)
                header = file.read(_HEADER_BYTES)
                lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
                offset = info.header_offset + _HEADER_BYTES + lengths
                if header[:4] != b"PK\3\4" or offset + info.file_size > archive.start_dir:
                    raise zipfile.BadZipFile(f"the header of {name} contradicts the table at its end")
                yield Member(name, offset, info.file_size)
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as a zip: {error}. It may be cut short: bring it again.") from error
