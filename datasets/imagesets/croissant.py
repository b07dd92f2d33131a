"""The catalog's facts of an image set -> Croissant: JSON-LD that search engines and data loaders read.

Files are described with the addresses and digests that the catalog has; records only of sets that the Hugging Face hub
has as parquet, since Croissant cannot say how a pickle or a ``.mat`` file is read.
"""

import json
from collections.abc import Iterator
from typing import Any

from imagesets.catalog import ImageSetInfo

VERSION = "1.0"
_TERMS = """citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes isLiveDataset
jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source subField
transform"""
_CONTEXT = {  # as the standard has it
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
_UNHASHED = "https://github.com/mlcommons/croissant/issues/80"  # what the hub writes as a repository's SHA-256


def render_croissant(info: ImageSetInfo) -> str:
    """Describe an image set as JSON-LD: its files, its classes and, where they can be read, its images and labels."""
    counts = f"{info.num_train:,} train and {info.num_test:,} test images of {info.num_classes} classes"
    size = f"{info.image_size} x {info.image_size} pixels"
    described: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": f"http://mlcommons.org/croissant/{VERSION}",
        "name": info.name,
        "alternateName": info.title,
        "description": f"{info.title}: {counts}, {size}.",
        "distribution": list(_files(info)),
        "recordSet": list(_records(info)),
    }
    if info.parquet:
        described["url"] = f"https://huggingface.co/datasets/{info.parquet.hub_id}"
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def _files(info: ImageSetInfo) -> Iterator[dict[str, Any]]:
    if archive := info.archive:
        place = {"contentUrl": archive.url, "encodingFormat": "application/gzip"}
        yield _node("FileObject", archive.file_name, **place, md5=archive.md5, sameAs=list(archive.mirrors))
    if mat := info.mat_files:
        for name, md5 in {**mat.train_md5, **mat.test_md5}.items():
            place = {"contentUrl": f"{mat.url}/{name}", "encodingFormat": "application/x-matlab-data"}
            yield _node("FileObject", name, **place, md5=md5)
    if parquet := info.parquet:
        place = {"contentUrl": f"https://huggingface.co/datasets/{parquet.hub_id}", "encodingFormat": "git+https"}
        yield _node("FileObject", "hub", **place, sha256=_UNHASHED)
        for split in ("train", "test"):
            names = f"{parquet.url.rpartition('/')[2]}/{split}-*.parquet"
            form = {"encodingFormat": "application/x-parquet", "includes": names}
            yield _node("FileSet", f"{split}-files", **form, containedIn={"@id": "hub"})


def _records(info: ImageSetInfo) -> Iterator[dict[str, Any]]:
    """The names of the classes in the order of the labels, and the images, as far as the catalog has them."""
    label = {"@id": "classes/label"}
    if info.class_names:
        fields = [_node("Field", "classes/label", dataType="sc:Integer")]
        fields.append(_node("Field", "classes/name", dataType="sc:Text"))
        data = [{"classes/label": i, "classes/name": name} for i, name in enumerate(info.class_names)]
        yield _node("RecordSet", "classes", dataType="sc:Enumeration", key=label, field=fields, data=data)
    for split in ("train", "test") if info.parquet else ():
        assert info.parquet is not None
        files = {"fileSet": {"@id": f"{split}-files"}}
        pixels = {**files, "extract": {"column": "img"}, "transform": {"jsonPath": "bytes"}}
        labels = {**files, "extract": {"column": info.parquet.label}}
        image = _node("Field", f"{split}/image", dataType="sc:ImageObject", source=pixels)
        named = _node("Field", f"{split}/label", dataType="sc:Integer", source=labels, references={"field": label})
        yield _node("RecordSet", split, field=[image, named])


def _node(kind: str, name: str, **more: object) -> dict[str, Any]:
    """A part of the description, without what is empty."""
    return {"@type": f"cr:{kind}", "@id": name, "name": name, **{key: value for key, value in more.items() if value}}
