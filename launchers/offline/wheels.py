"""The project's requirements -> those wheels of them that another machine lacks. The first step of packing a kit.

pip alone cannot do this: it judges by the Python that it runs on which packages another Python needs, and cannot be
told what is there already. So the walk over the requirements is ours; pip fetches each wheel, or builds it.
"""

from __future__ import annotations

import fnmatch
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from launchers.offline.parts import KitError

_LEGACY_TAGS = ("manylinux2014", "manylinux2010", "manylinux1")
_OLDEST_GLIBC = 5  # of any manylinux tag: 2.5
_FETCHED_AT_ONCE = 8  # an index takes its time to answer


@dataclass(frozen=True)
class Target:
    """The machine without a network. ``glibc`` is the minor version of its C library: 28 stands for 2.28."""

    python: str
    processor: str
    glibc: int

    @property
    def platform(self) -> str:
        return f"linux-{self.processor}"

    def pip_options(self) -> list[str]:
        """Which wheels run there, as pip wants it said: it takes each tag alone, not the older ones that it implies."""
        tags = [f"manylinux_2_{minor}" for minor in range(self.glibc, _OLDEST_GLIBC - 1, -1)]
        platforms = [f"{tag}_{self.processor}" for tag in (*tags, *_LEGACY_TAGS)]
        options = ["--only-binary=:all:", "--implementation=cp", f"--python-version={self.python}"]
        return [*options, *(f"--platform={platform}" for platform in platforms)]

    def needs(self, requirement: Requirement, extras: Sequence[str]) -> bool:
        """Whether a requirement applies there, of a package that is wanted with ``extras``."""
        if requirement.marker is None:
            return True
        facts = {
            "implementation_name": "cpython",
            "os_name": "posix",
            "platform_machine": self.processor,
            "platform_python_implementation": "CPython",
            "platform_system": "Linux",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": "linux",
        }
        return any(requirement.marker.evaluate({**facts, "extra": extra}) for extra in (extras or [""]))


class WheelCollection:
    """The wheels that ``collect`` has brought into a folder.

    Attributes:
        assumed: names of what was needed and is to be there already.
    """

    def __init__(self, folder: Path, target: Target, assume_installed: Sequence[str], constraints: Path) -> None:
        self.assumed: set[str] = set()
        self._folder, self._target, self._constraints = folder, target, constraints
        self._patterns = [canonicalize_name(pattern.partition("==")[0].strip()) for pattern in assume_installed]

    def collect(self, requirements: Sequence[str]) -> None:
        """Bring the wheels of ``requirements``, and of all that these need.

        Raises:
            KitError: there is none for that machine, and none can be built.
        """
        wanted, seen = {Requirement(text) for text in requirements}, set[str]()
        with ThreadPoolExecutor(_FETCHED_AT_ONCE) as threads:
            while wanted:
                level = [one for one in sorted(wanted, key=str) if not self._is_there(one)]
                list(threads.map(self._fetch, {canonicalize_name(one.name): one for one in level}.values()))
                seen |= {str(one) for one in level}
                wanted = {one for parent in level for one in self._needs_of(parent) if str(one) not in seen}

    def _is_there(self, requirement: Requirement) -> bool:
        name = canonicalize_name(requirement.name)
        if any(fnmatch.fnmatch(name, pattern) for pattern in self._patterns):
            self.assumed.add(name)
            return True
        return False

    def _needs_of(self, requirement: Requirement) -> list[Requirement]:
        wheel = self._find(canonicalize_name(requirement.name))
        assert wheel is not None, "it was just fetched"
        return [one for one in _read_requirements(wheel) if self._target.needs(one, sorted(requirement.extras))]

    def _find(self, name: str) -> Path | None:
        return next((path for path in self._folder.glob("*.whl") if parse_wheel_filename(path.name)[0] == name), None)

    def _fetch(self, requirement: Requirement) -> None:
        """Bring a wheel from the index; of a package that comes as source alone, one that is built here."""
        name = canonicalize_name(requirement.name)
        if self._find(name) is not None:  # for another of its extras
            return
        wanted = f"{requirement.name}{requirement.specifier}"
        print(f"  {wanted}", flush=True)
        refused = self._pip("download", "--dest", *self._target.pip_options(), wanted=wanted)
        if self._find(name) is not None:
            return
        refused += self._pip("wheel", "--wheel-dir", wanted=wanted)
        if (built := self._find(name)) is None:
            raise KitError(f"pip finds no wheel of {wanted} and cannot build one:\n{refused}")
        self._check_is_pure(built)

    def _pip(self, verb: str, where: str, *options: str, wanted: str) -> str:
        """Run pip; its complaint, "" if it has none."""
        command = [sys.executable, "-m", "pip", verb, "--quiet", "--no-deps", "--disable-pip-version-check"]
        command += ["--constraint", str(self._constraints), where, str(self._folder), *options, wanted]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
        return done.stderr if done.returncode else ""

    def _check_is_pure(self, wheel: Path) -> None:
        """Refuse a wheel that was compiled here, which would not run there."""
        if all(tag.platform == "any" and tag.abi == "none" for tag in parse_wheel_filename(wheel.name)[3]):
            return
        wheel.unlink()
        raise KitError(
            f"{wheel.name} was compiled for this machine, and there is no wheel for Python {self._target.python} on "
            f"{self._target.platform}: install that package there otherwise, and name it after --assume-installed"
        )


def read_dependencies(project: Path) -> list[str]:
    """Read from ``pyproject.toml`` what the project needs."""
    with (project / "pyproject.toml").open("rb") as file:
        dependencies: list[str] = tomllib.load(file)["project"]["dependencies"]
    return dependencies


def _read_requirements(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(
            name for name in archive.namelist() if name.endswith(".dist-info/METADATA") and name.count("/") == 1
        )
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    return [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
