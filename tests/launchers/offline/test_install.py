"""A kit is refused by the wrong machine, and its environment sees the packages of the Python that made it."""

import os
import platform
import subprocess
import sys
from dataclasses import replace

import pytest

import launchers.offline.install
from launchers.offline.install import check_machine, make_environment
from launchers.offline.parts import KitError, KitManifest

HERE = KitManifest(
    python=f"{sys.version_info.major}.{sys.version_info.minor}",
    platform=f"{sys.platform}-{platform.machine()}",
    glibc="2.17",
    assumed=("torch", "numpy"),
    image_sets=(),
    parts=(),
)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"python": "3.9"}, "the kit is for Python 3.9"),
        ({"platform": "linux-riscv64"}, "on linux-riscv64: start install with that Python, or pack again"),
        ({"glibc": "2.99"}, "the kit's wheels need 2.99 or newer"),
        ({"assumed": ("torch", "no-such-package")}, "no-such-package cannot be imported by"),
    ],
)
def test_a_kit_for_another_machine_is_refused(change, said):
    check_machine(HERE)
    with pytest.raises(KitError) as error:
        check_machine(replace(HERE, **change))
    assert said in str(error.value)


def test_nothing_but_the_standard_library_is_needed_to_install():
    root = launchers.offline.install._PROJECT
    code = "import sys, launchers.offline.__main__; print({name.partition('.')[0] for name in sys.modules})"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    bare = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment)
    assert bare.returncode == 0, bare.stderr


def test_an_environment_sees_the_packages_of_a_virtual_environment_that_made_it(tmp_path):
    python = make_environment(tmp_path / "venv")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    code = "import sys, filelock; print(sys.prefix, filelock.__file__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, env=environment)
    import filelock

    assert done.stdout.split() == [str(tmp_path / "venv"), filelock.__file__], done.stderr


def test_an_environment_of_another_python_is_made_anew(tmp_path):
    other = tmp_path / "other"
    other.symlink_to("/bin/false")
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").symlink_to(other)
    (tmp_path / "venv/pyvenv.cfg").touch()
    (tmp_path / "venv/left").touch()
    assert make_environment(tmp_path / "venv").samefile(sys.executable)
    assert not (tmp_path / "venv/left").exists()
