"""Markers are judged for the target's Python, and what is there already is left out, with all it needs."""

import zipfile

import pytest
from packaging.requirements import Requirement

from launchers.offline.parts import KitError
from launchers.offline.wheels import Target, WheelCollection

TARGET = Target("3.12", "x86_64", 28)


def put_wheel(folder, name, *needs, tag="py3-none-any"):
    """A wheel as pip would have brought it."""
    with zipfile.ZipFile(folder / f"{name}-1.0-{tag}.whl", "w") as wheel:
        lines = [
            "Metadata-Version: 2.1",
            f"Name: {name}",
            "Version: 1.0",
            *(f"Requires-Dist: {need}" for need in needs),
        ]
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(lines))


def test_the_walk_takes_what_the_target_needs_and_leaves_out_what_it_has(tmp_path):
    put_wheel(tmp_path, "deepspeed", "torch>=2", "hjson", "winonly; sys_platform == 'win32'", "dev; extra == 'dev'")
    put_wheel(tmp_path, "hjson", "nvidia-ml-py", "backport; python_version < '3.12'")
    wheels = WheelCollection(tmp_path, TARGET, ["torch==2.11.0", "nvidia-*"], tmp_path / "constraints.txt")
    wheels.collect(["deepspeed"])
    assert wheels.assumed == {"torch", "nvidia-ml-py"}


def test_an_extra_brings_what_it_needs(tmp_path):
    put_wheel(tmp_path, "httpx", "h2; extra == 'http2'", "idna")
    put_wheel(tmp_path, "idna")
    wheels = WheelCollection(tmp_path, TARGET, ["h2"], tmp_path / "constraints.txt")
    wheels.collect(["httpx"])
    assert wheels.assumed == set()
    wheels.collect(["httpx[http2]"])
    assert wheels.assumed == {"h2"}


@pytest.mark.parametrize(
    ("marker", "applies"), [("python_version < '3.12'", False), ("platform_machine == 'x86_64'", True)]
)
def test_a_marker_is_judged_for_the_target(marker, applies):
    assert TARGET.needs(Requirement(f"a; {marker}"), []) is applies
    assert Target("3.11", "aarch64", 28).needs(Requirement(f"a; {marker}"), []) is not applies


def test_wheels_for_older_c_libraries_count_as_well():
    options = TARGET.pip_options()
    assert "--platform=manylinux_2_28_x86_64" in options
    assert "--platform=manylinux_2_17_x86_64" in options
    assert "--platform=manylinux_2_29_x86_64" not in options


def test_what_was_compiled_here_is_refused_for_another_python(tmp_path):
    put_wheel(tmp_path, "ffcv", tag="cp311-cp311-linux_x86_64")
    wheels = WheelCollection(tmp_path, TARGET, [], tmp_path / "constraints.txt")
    with pytest.raises(KitError, match=r"no wheel for Python 3\.12 on linux-x86_64"):
        wheels._check_is_pure(tmp_path / "ffcv-1.0-cp311-cp311-linux_x86_64.whl")
    assert list(tmp_path.iterdir()) == []
