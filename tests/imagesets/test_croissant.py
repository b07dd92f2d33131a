"""An image set's description in Croissant names its files, digests, classes and, where they can be read, its images."""

import json

import pytest

from imagesets.__main__ import main
from imagesets.catalog import CATALOG, get_info


@pytest.fixture
def describe(tmp_path):
    def call(name):
        assert main([name, "--croissant", str(tmp_path / "set.json")]) == 0
        return json.loads((tmp_path / "set.json").read_text())

    return call


@pytest.mark.parametrize("name", CATALOG)
def test_every_set_is_described_with_what_is_known_and_each_reference_leads_to_a_part(describe, name):
    found = describe(name)
    assert (found["@type"], found["name"]) == ("sc:Dataset", name)
    assert f"{get_info(name).num_train:,} train" in found["description"]
    assert all(part.get("md5") or part.get("sha256") or "containedIn" in part for part in found["distribution"])
    fields = [field for records in found["recordSet"] for field in records["field"]]
    files = {part["@id"] for part in found["distribution"]}
    assert {field["source"]["fileSet"]["@id"] for field in fields if "source" in field} <= files
    named = {field["references"]["field"]["@id"] for field in fields if "references" in field}
    assert named <= {field["@id"] for field in fields}


def test_cifar_has_its_archive_by_digest_its_classes_and_its_images(describe):
    found = describe("cifar100")
    archive, *_ = found["distribution"]
    assert archive["md5"] == "eb9058c3a382ffc7106e4002c42a8d85"
    classes, train, _ = found["recordSet"]
    assert classes["data"][1] == {"classes/label": 1, "classes/name": "aquarium_fish"}
    assert train["field"][1]["source"]["extract"] == {"column": "fine_label"}


def test_a_set_that_is_not_known_is_misuse(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["cifar11", "--croissant", "x.json"])
    assert ended.value.code == 2
    assert "cifar10" in capsys.readouterr().err
