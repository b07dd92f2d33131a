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
        "recordSet": list(_record_sets(info)),
    }
    if info.parquet:
        described["url"] = f"https://huggingface.co/datasets/{info.parquet.hub_id}"
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def _files(info: ImageSetInfo) -> Iterator[dict[str, Any]]:
    if archive := info.archive:
        same = {"sameAs": list(archive.mirrors)} if archive.mirrors else {}
        yield _file(archive.file_name, archive.url, "application/gzip", md5=archive.md5, **same)
    if mat := info.mat_files:
        for name, md5 in {**mat.train_md5, **mat.test_md5}.items():
            yield _file(name, f"{mat.url}/{name}", "application/x-matlab-data", md5=md5)
    if parquet := info.parquet:
        yield _file("hub", f"https://huggingface.co/datasets/{parquet.hub_id}", "git+https", sha256=_UNHASHED)
        folder = parquet.url.rpartition("/")[2]
        for split in ("train", "test"):
            held = {"containedIn": {"@id": "hub"}, "encodingFormat": "application/x-parquet"}
            yield _named("cr:FileSet", f"{split}-files", includes=f"{folder}/{split}-*.parquet", **held)


def _named(kind: str, name: str, **more: object) -> dict[str, Any]:
    return {"@type": kind, "@id": name, "name": name, **more}


def _file(name: str, url: str, form: str, **more: object) -> dict[str, Any]:
    return _named("cr:FileObject", name, contentUrl=url, encodingFormat=form, **more)


def _record_sets(info: ImageSetInfo) -> Iterator[dict[str, Any]]:
    """The names of the classes in the order of the labels, where the catalog has them, and the images of each split."""
    if info.class_names:
        fields = [_field("classes/label", "sc:Integer"), _field("classes/name", "sc:Text")]
        data = [{"classes/label": i, "classes/name": name} for i, name in enumerate(info.class_names)]
        about = {"dataType": "sc:Enumeration", "key": {"@id": "classes/label"}, "field": fields, "data": data}
        yield _named("cr:RecordSet", "classes", **about)
    if parquet := info.parquet:
        for split in ("train", "test"):
            pixels = _column(split, "img") | {"transform": {"jsonPath": "bytes"}}
            image = _field(f"{split}/image", "sc:ImageObject", source=pixels)
            label = {"source": _column(split, parquet.label), "references": {"field": {"@id": "classes/label"}}}
            yield _named("cr:RecordSet", split, field=[image, _field(f"{split}/label", "sc:Integer", **label)])


def _field(name: str, data_type: str, **more: object) -> dict[str, Any]:
    return _named("cr:Field", name, dataType=data_type, **more)


def _column(split: str, column: str) -> dict[str, Any]:
    return {"fileSet": {"@id": f"{split}-files"}, "extract": {"column": column}}
