"""The lock of hashes holds what the project asks for, in the versions that were tested."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKED = {
    canonicalize_name(name): version
    for name, version in re.findall(r"^(\S+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
}


def test_every_dependency_is_locked_in_a_version_that_the_project_allows():
    asked = [
        *PROJECT["dependencies"],
        *(line for name in ("dev", "docs") for line in PROJECT["optional-dependencies"][name]),
    ]
    for wanted in map(Requirement, asked):
        if wanted.name != PROJECT["name"]:
            assert LOCKED[canonicalize_name(wanted.name)] in wanted.specifier, f"{wanted}: call `make lock`"


def test_the_locked_versions_are_those_that_were_tested():
    pins = (line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    for name, version in pins:
        assert LOCKED.get(canonicalize_name(name), version) == version, f"{name}: call `make lock`"


def test_every_locked_package_has_a_hash():
    text = (ROOT / "requirements.lock").read_text()
    assert len(re.findall(r"^\S+==.*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)) == len(LOCKED)
