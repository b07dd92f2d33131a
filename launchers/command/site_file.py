"""A site as data: how its jobs are asked for, and what surrounds a run there. ``site.toml`` and options -> ``Site``.

The file is the one that ``--site`` names, else ``site.toml`` in the working folder, else in the user's configuration
folder. Options of the command line win.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field, PositiveInt, ValidationError, model_validator

from suite.base.arguments import COMMAND
from suite.base.errors import SpecError, unknown_name
from suite.base.frozen import Frozen
from suite.base.reading import describe

_VALUE = re.compile(r"[\w.,:;=+@%/()|&*!<>#\[\]-]+")
_GPUS = re.compile(r"(?:[\w.-]*[A-Za-z][\w.-]*:)?([1-9]\d{0,5})|[\w.-]*[A-Za-z][\w.-]*")  # 4, h100:4, 1g.10gb:2, h100
_PATHS = ("runs", "data_dir", "container", "container_mounts")  # a variable in them is the login node's
_GPU_REQUESTS = ("gpus_per_node", "gres", "gpus", "implied_gpus")
_OWN_FIELDS = {"gpus-per-node": "gpus_per_node", "gres": "gres", "gpus": "gpus", "container-image": "container"}
_FLAGS = ("exclusive", "nice", "use-min-nodes")  # of these, what may stand without a value
_ALLOWED = (  # sbatch's long options that --slurm may name; none of them runs or reads a file
    "begin", "clusters", "comment", "core-spec", "cpus-per-gpu", "deadline", "distribution", "exclude", "exclusive",
    "export", "gpu-bind", "gres-flags", "hint", "licenses", "mail-type", "mail-user", "mem-per-cpu", "mem-per-gpu",
    "mincpus", "network", "nice", "nodelist", "prefer", "priority", "reservation", "switches", "threads-per-core",
    "tmp", "use-min-nodes", "wckey", *_OWN_FIELDS,
)  # fmt: skip


def sbatch_value(text: str) -> str:
    """A value that may stand in a batch script; a SpecError for characters that none of sbatch's lists needs."""
    if not _VALUE.fullmatch(text):
        raise SpecError(f"{text!r} cannot be passed to sbatch: expected no spaces, quotes, line breaks or $")
    return text


def _spell(value: object) -> object:
    return str(value) if type(value) is int else value


_Value = Annotated[str, BeforeValidator(_spell), AfterValidator(sbatch_value)]
_Lines = tuple[Annotated[str, Field(pattern=r"^[^\n]+$")], ...]


class Site(Frozen):
    """How one cluster runs jobs; each field is a key of ``site.toml``, and one with a description an option of grid.py.

    None leaves it to the profile or the cluster. Of the four requests for GPUs a site has one.

    Args:
        concurrency: jobs that run at once.
        requeue: whether a job may put itself back into the queue.
        setup: lines of shell before each job's processes.
        container_python: the Python in the image ``container``.
        sbatch: more of sbatch's options by their long names.
    """

    partition: _Value | None = Field(None, description="as sbatch's")
    account: _Value | None = Field(None, description="as sbatch's")
    qos: _Value | None = Field(None, description="as sbatch's")
    constraint: _Value | None = Field(None, description="as sbatch's")
    nodes: PositiveInt = Field(1, description="nodes of one run (default 1)")
    gpus_per_node: _Value | None = Field(None, description="on GPUs, as many ranks (default 1): 4, h100:4, 1g.10gb:2")
    gres: _Value | None = Field(None, description="in place of that, such as gpu:h100:4")
    gpus: _Value | None = Field(None, description="in place of that, on all nodes together")
    implied_gpus: PositiveInt | None = Field(None, description="GPUs that the partition gives each node unasked")
    cpus_per_task: PositiveInt | None = Field(None, description="cores of a rank (default 1; with GPUs 8)")
    mem_gb: PositiveInt | None = Field(None, description="memory of a node")
    time_min: PositiveInt = Field(60, description="a job's time limit (default 60); longer runs are requeued and go on")
    runs_per_job: PositiveInt = Field(1, description="runs that one job trains in turn (default 1)")
    concurrency: PositiveInt | None = None
    requeue: bool = True
    chain: PositiveInt = Field(1, description="jobs in a row for a run, where a job may not requeue itself (default 1)")
    max_arrays: PositiveInt | None = Field(None, description="arrays in the queue at once; others follow as they end")
    setup: _Lines = ()
    container: str | None = Field(None, description="image to train in; on this machine by Apptainer or Docker")
    container_runtime: Literal["apptainer", "docker", "pyxis", "singularity"] | None = None
    container_mounts: _Lines = ()
    container_options: _Lines = ()
    container_python: str = "python3"
    runs: Path | None = None
    data_dir: Path | None = None
    stage: str | None = None
    sbatch: dict[str, str | bool] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _check_more(cls, given: Any) -> Any:
        """Check sbatch's options by their names, and put one that has a field of its own there."""
        if not isinstance(given, dict) or not isinstance(more := given.get("sbatch"), dict):
            return given
        for key, value in more.items():
            if key not in _ALLOWED:
                raise unknown_name("key of --slurm or [sbatch]", key, _ALLOWED)
            if isinstance(value, bool) and key not in _FLAGS:
                raise SpecError(f"--slurm {key!r}: expected KEY=VALUE")
        more = {key: value is True or sbatch_value(str(value)) for key, value in more.items() if value is not False}
        moved: dict[str, Any] = {_OWN_FIELDS[key]: more[key] for key in more if key in _OWN_FIELDS}
        moved |= {"container_runtime": "pyxis"} if "container" in moved else {}
        return given | moved | {"sbatch": {key: more[key] for key in more if key not in _OWN_FIELDS}}

    @model_validator(mode="after")
    def _check_gpus(self) -> Self:
        asked = [name for name in _GPU_REQUESTS if self._count(name)]
        if len(asked) > 1:
            raise ValueError(f"{' and '.join(asked)} both ask for GPUs: expected one of them")
        if self._count("gpus") % self.nodes:
            raise ValueError(f"gpus {self.gpus} cannot be shared by {self.nodes} nodes: expected as many on each")
        return self

    @property
    def node_gpus(self) -> int:
        """How many GPUs the request gives each node; 0 where there is none."""
        return sum(self._count(name) // (self.nodes if name == "gpus" else 1) for name in _GPU_REQUESTS)

    def _count(self, name: str) -> int:
        value, total = getattr(self, name), 0
        parts = [] if value is None else str(value).split(",")
        if name == "gres":
            parts = [part.partition(":")[2] or "1" for part in parts if part.partition(":")[0] == "gpu"]
        for part in parts:
            if (found := _GPUS.fullmatch(part)) is None:
                raise ValueError(f"{name} asks for {part!r}: expected a number, or TYPE:NUMBER such as h100:4")
            total += int(found[1] or 1)
        return total


def find_site(named: Path | None) -> Path | None:
    """The site file that is named or, else, found."""
    places = [Path("site.toml"), platformdirs.user_config_path(COMMAND) / "site.toml"]
    return named or next((place for place in places if os.path.isfile(place)), None)  # noqa: PTH113  # no PermissionError


def read_site(path: Path | None, given: Mapping[str, Any]) -> Site:
    """The site of a file, with what the command line gives in place of its values.

    Raises:
        SpecError: a file that cannot be read, a key that there is not, or a value that cannot be, with the file's name.
    """
    known = _make_site(_read(path), str(path)).model_dump(exclude_unset=True) if path else {}
    if _make_site(given, "command line").node_gpus:
        known = {key: value for key, value in known.items() if key not in _GPU_REQUESTS}
    return _make_site({**known, **given, "sbatch": known.get("sbatch", {}) | given.get("sbatch", {})}, "command line")


def _make_site(fields: Mapping[str, Any], where: str) -> Site:
    try:
        return Site.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "extra_forbidden":
            raise unknown_name(f"key of {where}:", str(first["loc"][0]), Site.model_fields) from error
        words = describe(error).replace("Value error, ", "").replace("Input should be", "expected")
        raise SpecError(f"{where}: {words.replace('tuple', 'list')}") from error


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
