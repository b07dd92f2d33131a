"""A kit's parts -> a virtual environment on top of the Python that runs this, and the images where they are looked for.

The last step of a kit's way. Nothing but the standard library here: pip itself comes out of the kit.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from launchers.offline.parts import KitError, KitManifest, join

_PROJECT = Path(__file__).resolve().parents[2]


def install(kit: Path, folder: Path, data_dir: Path | None) -> None:
    """Install a kit into the virtual environment ``folder``; done again, it mends what was left half done.

    Args:
        data_dir: where image sets are kept; None is where the project looks by itself.

    Raises:
        KitError: the kit is not whole or not for this machine, or pip does not take it.
    """
    manifest = KitManifest.read(kit)
    check_machine(manifest)
    with tempfile.TemporaryDirectory(dir=folder.absolute().parent) as unpacked:  # the kit may lie on a read-only disk
        print(f"putting {len(manifest.parts)} parts together", flush=True)
        join(kit, manifest.parts, Path(unpacked))
        python = make_environment(folder)
        _install_wheels(python, Path(unpacked) / "wheels")
        for name in manifest.image_sets:
            print(f"reading the images of {name}", flush=True)
            _run([python, "-m", "imagesets.strips", name, Path(unpacked) / name], data_dir)
    (folder / "installed").touch()  # so that make takes the environment for its own


def check_machine(manifest: KitManifest) -> None:
    """Hold this machine against what the kit was packed for.

    Raises:
        KitError: another Python or system, or an older C library; or a package is not here that was left out.
    """
    found = (".".join(platform.python_version_tuple()[:2]), f"{sys.platform}-{platform.machine()}")
    expected = (manifest.python, manifest.platform)
    if found != expected:
        raise KitError(
            f"this is Python {found[0]} on {found[1]}, the kit is for Python {expected[0]} on {expected[1]}: start "
            f"install with that Python, or pack again with --python {found[0]} --processor {platform.machine()}"
        )
    name, glibc = platform.libc_ver()
    if name == "glibc" and _numbers(glibc) < _numbers(manifest.glibc):
        raise KitError(
            f"the C library here is {glibc}, the kit's wheels need {manifest.glibc} or newer: pack again with "
            f"--glibc {glibc.partition('.')[2]}"
        )
    missing = [package for package in manifest.assumed if not _is_installed(package)]
    if missing:
        raise KitError(
            f"{', '.join(missing)} cannot be imported by {sys.executable}, and the kit was packed without: start "
            "install with the Python that has PyTorch, or pack again with an --assume-installed that leaves it out"
        )


def make_environment(folder: Path) -> Path:
    """A virtual environment that also sees what this Python sees, also where that is a virtual environment itself,
    whose packages ``--system-site-packages`` would leave out. Returns its Python."""
    python = folder.absolute() / "bin" / "python"
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    if python.resolve() != Path(sys.executable).resolve() or not packages.is_dir():  # another Python's is of no use
        print(f"making {folder}", flush=True)
        venv.EnvBuilder(with_pip=False, symlinks=True, clear=(folder / "pyvenv.cfg").exists()).create(folder)
    seen = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    lines = [f"import site; site.addsitedir({path!a})\n" for path in seen if Path(path) != packages.absolute()]
    (packages / "packages_of_the_machine.pth").write_text("".join(lines), encoding="utf-8")
    return python


def _install_wheels(python: Path, wheels: Path) -> None:
    """All wheels of the kit, each at its own version, also over another one that is there; then the project."""
    paths = sorted(wheels.glob("*.whl"))
    pip = next(path for path in paths if path.name.startswith("pip-"))
    print(f"installing {len(paths)} packages", flush=True)
    # --isolated: no setting of this machine may send pip to an index
    command: list[str | Path] = [python, "-c", _RUN_PIP, pip, "install", "--isolated", "--quiet", "--no-index"]
    command += ["--no-cache-dir", "--no-compile", "--disable-pip-version-check"]
    _run([*command, "--find-links", wheels, *paths])
    _run([*command, "--no-deps", "--no-build-isolation", "--editable", _PROJECT])


_RUN_PIP = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('pip', run_name='__main__')"


def _run(command: Sequence[str | Path], data_dir: Path | None = None) -> None:
    """Run a step; what it says is shown where it fails."""
    options = ["--data-dir", str(data_dir.absolute())] if data_dir else []
    words = [*map(str, command), *options]
    done = subprocess.run(
        words, cwd=_PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        raise KitError(f"`{' '.join(words[:6])} …` ended with status {done.returncode}:\n{done.stdout}")


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(".") if number.isdigit())
