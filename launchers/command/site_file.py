"""A site as data: how its jobs are asked for, and what surrounds a run there. ``site.toml`` and options -> ``Site``.

The file is the one that ``--site`` names, else ``site.toml`` in the working folder, else in the user's configuration
folder. Options of the command line win.
"""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import platformdirs
from pydantic import Field, PositiveInt, ValidationError, field_validator, model_validator

from suite.base.arguments import COMMAND
from suite.base.errors import SpecError, unknown_name
from suite.base.frozen import Frozen

FILE = "site.toml"
_VALUE = re.compile(r"[\w.,:;=+@%/()|&*!<>#\[\]-]+")
_GPUS = re.compile(r"(?:[\w.-]*[A-Za-z][\w.-]*:)?([1-9]\d{0,5})|[\w.-]*[A-Za-z][\w.-]*")  # 4, h100:4, 1g.10gb:2, h100
_PATHS = ("runs", "data_dir", "container", "container_mounts")  # a variable in them is the login node's
_GPU_REQUESTS = ("gpus_per_node", "gres", "gpus", "implied_gpus")
_OWN_FIELDS = {  # by sbatch's names
    "gpus-per-node": "gpus_per_node", "gres": "gres", "gpus": "gpus", "container-image": "container",
    "container-mounts": "container_mounts",
}  # fmt: skip
_FLAGS = ("exclusive", "nice", "use-min-nodes")  # of these, what may stand without a value
_ALLOWED = (  # sbatch's long options that --slurm may name; none of them runs or reads a file
    "begin", "clusters", "comment", "container-image", "container-mounts", "core-spec", "cpus-per-gpu", "deadline", "distribution", "exclude",
    "exclusive", "export", "gpu-bind", "gpus", "gpus-per-node", "gres", "gres-flags", "hint", "licenses", "mail-type",
    "mail-user", "mem-per-cpu", "mem-per-gpu", "mincpus", "network", "nice", "nodelist", "prefer", "priority",
    "reservation", "switches", "threads-per-core", "tmp", "use-min-nodes", "wckey",
)  # fmt: skip


class Site(Frozen):
    """How one cluster runs jobs; each field is a key of ``site.toml``. None leaves one to the profile or to the cluster.

    Args:
        gpus_per_node, gres, gpus, implied_gpus: the request for GPUs, one of these four: as sbatch's options of these
            names, or the number that a partition gives each node unasked.
        runs_per_job: runs that one job trains in turn.
        concurrency: jobs that run at once.
        requeue: whether a job may put itself back into the queue.
        chain: jobs in a row, each after the end of the one before, that go on with the same runs.
        max_arrays: arrays that may be in the queue at once; the grid submits the next as they leave it.
        setup: lines of shell before each job's processes.
        container: an image to run in, by ``container_runtime``, with the folders of ``container_mounts`` beside ours,
            further options of the runtime, and the image's Python.
        runs, data_dir, stage: as the options of these names.
        sbatch: more of sbatch's options by their long names.
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    nodes: PositiveInt = 1
    gpus_per_node: str | None = None
    gres: str | None = None
    gpus: str | None = None
    implied_gpus: PositiveInt | None = None
    cpus_per_task: PositiveInt | None = None
    mem_gb: PositiveInt | None = None
    time_min: PositiveInt = 60
    runs_per_job: PositiveInt = 1
    concurrency: PositiveInt | None = None
    requeue: bool = True
    chain: PositiveInt = 1
    max_arrays: PositiveInt | None = None
    setup: tuple[str, ...] = ()
    container: str | None = None
    container_runtime: Literal["apptainer", "docker", "pyxis", "singularity"] | None = None
    container_mounts: tuple[str, ...] = ()
    container_options: tuple[str, ...] = ()
    container_python: str = "python3"
    runs: Path | None = None
    data_dir: Path | None = None
    stage: str | None = None
    sbatch: dict[str, str | bool] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _move(cls, given: Any) -> Any:
        """What has a field of its own stands there, also where it is given as one of sbatch's options."""
        if not isinstance(given, dict) or not isinstance(given.get("sbatch"), dict):
            return given
        more = dict(given["sbatch"])
        moved = {name: more.pop(key) for key, name in _OWN_FIELDS.items() if key in more}
        if "container" in moved:
            moved["container_runtime"] = "pyxis"
        if isinstance(mounts := moved.get("container_mounts"), str):
            moved["container_mounts"] = mounts.split(",")
        return given | moved | {"sbatch": more}

    @field_validator("gpus_per_node", "gpus", "gres", mode="before")
    @classmethod
    def _spell(cls, value: object) -> object:
        return str(value) if type(value) is int else value

    @field_validator("partition", "account", "qos", "constraint", "gpus_per_node", "gpus", "gres")
    @classmethod
    def _check_value(cls, value: str | None) -> str | None:
        return None if value is None else sbatch_value(value)

    @field_validator("setup", "container_options", "container_mounts")
    @classmethod
    def _check_lines(cls, lines: tuple[str, ...]) -> tuple[str, ...]:
        if any("\n" in line for line in lines):
            raise ValueError("expected a list of single lines")
        return lines

    @field_validator("sbatch", mode="before")
    @classmethod
    def _check_more(cls, given: Any) -> Any:
        return check_more(given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _check_gpus(self) -> Self:
        asked = [name for name in _GPU_REQUESTS if self._count(name)]
        if len(asked) > 1:
            raise ValueError(f"{' and '.join(asked)} both ask for GPUs: expected one of them")
        if self.gpus and self._count("gpus") % self.nodes:
            raise ValueError(f"gpus {self.gpus} cannot be shared by {self.nodes} nodes: expected as many on each")
        return self

    @property
    def node_gpus(self) -> int:
        """How many GPUs the request gives each node; 0 where there is none."""
        counts = {name: self._count(name) for name in _GPU_REQUESTS}
        return sum(counts.values()) if not self.gpus else counts["gpus"] // self.nodes

    def _count(self, name: str) -> int:
        value = getattr(self, name)
        if value is None or name == "implied_gpus":
            return value or 0
        parts = value.split(",")
        if name == "gres":
            parts = [part.partition(":")[2] or "1" for part in parts if part.partition(":")[0] == "gpu"]
        return sum(_number_of_gpus(name, part) for part in parts)


def _number_of_gpus(name: str, request: str) -> int:
    if (found := _GPUS.fullmatch(request)) is None:
        raise ValueError(f"{name} asks for {request!r}: expected a number, or TYPE:NUMBER such as h100:4")
    return int(found[1] or 1)


def sbatch_value(text: str) -> str:
    """A value that may stand in a batch script; a SpecError for characters that none of sbatch's lists needs."""
    if not _VALUE.fullmatch(text):
        raise SpecError(f"{text!r} cannot be passed to sbatch: expected no spaces, quotes, line breaks or $")
    return text


def parse_more(pairs: Sequence[str]) -> dict[str, str | bool]:
    """``--slurm KEY=VALUE`` pairs; True in place of a value for a KEY that stands alone. A SpecError for any others."""
    return check_more(
        {key: value if separator else True for key, separator, value in (p.partition("=") for p in pairs)}
    )


def check_more(given: Mapping[str, Any]) -> dict[str, str | bool]:
    """Check sbatch's options by their names; a SpecError for one that cannot be carried into a job."""
    for key, value in given.items():
        if key not in _ALLOWED:
            raise unknown_name("key of --slurm", key, _ALLOWED)
        if isinstance(value, bool) and key not in _FLAGS:
            raise SpecError(f"--slurm {key!r}: expected KEY=VALUE")
    return {
        key: value if value is True else sbatch_value(str(value)) for key, value in given.items() if value is not False
    }


def find_site(named: Path | None) -> Path | None:
    """The site file that is named or, else, found."""
    places = [Path(FILE), platformdirs.user_config_path(COMMAND) / FILE]
    return named or next((place for place in places if place.is_file()), None)


def read_site(path: Path | None, given: Mapping[str, Any]) -> Site:
    """The site of a file, with what the command line gives in place of its values.

    Raises:
        SpecError: a file that cannot be read, a key that there is not, or a value that cannot be, with the file's name.
    """
    known = _make_site(_read(path), str(path)).model_dump(exclude_unset=True) if path else {}
    if _make_site(given, "command line").node_gpus:
        known = {key: value for key, value in known.items() if key not in _GPU_REQUESTS}
    return _make_site(known | given | {"sbatch": known.get("sbatch", {}) | given.get("sbatch", {})}, "command line")


def _make_site(fields: Mapping[str, Any], where: str) -> Site:
    try:
        return Site.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise unknown_name(f"key of {where}:", name, Site.model_fields) from error
        words = (
            first["msg"].removeprefix("Value error, ").replace("Input should be", "expected").replace("tuple", "list")
        )
        found = (
            f"{name} is {first['input']!r}: " if name and first["type"] != "value_error" else f"{name}: " * bool(name)
        )
        raise SpecError(f"{where}: {found}{words}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SpecError(f"{path}: cannot be read: {reason}; expected a site file in TOML (docs/cluster.md)") from error
    return {name: _expand(value, f"{path}: {name}") if name in _PATHS else value for name, value in fields.items()}


def _expand(value: Any, where: str) -> Any:
    """A path, or each of a list, with this machine's variables and home folder."""
    if isinstance(value, list):
        return [_expand(one, where) for one in value]
    if not isinstance(value, str):
        return value
    if "$" in (found := os.path.expandvars(value)):
        raise SpecError(f"{where} is {value!r}: a variable in it is not set here; set it, or write the path")
    return os.path.expanduser(found)  # noqa: PTH111  # pathlib's raises for a user that is not there
