"""The options of ``grid.py`` as frozen data, and the resources that they give each run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from launchers.command.address import Address
from launchers.command.site_file import Site
from leaderboards.significance.rules import FIRST_LOOK
from suite.base.errors import SpecError
from suite.papers import are_shown_with_best, get_suite
from suite.spec.profile import Profile
from suite.spec.resources import Resources, StorageFormat, TrackerName
from suite.spec.tuning import TUNED
from suite.store.frozen_plan import MOST_LOOKS, read_plan

Cluster = Literal["local", "slurm"]


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """One grid: which runs, from which images, how they are trained, and where.

    The command line describes each. ``until`` is the half-width, in points, to which the headline is to be known;
    ``seeds`` are then those of the first look. ``custom_models`` and ``check`` are words as ``parse_custom_model``
    reads them. Options that do not go together are a SpecError, and so is a file of weights that is not there. ``site``
    is what SLURM and containers are told, in part by the file of ``site_path``.
    """

    suite: str | None = None
    profile: str = "laptop"
    dataset: str | None = None
    custom_models: tuple[tuple[str, ...], ...] = ()
    check: tuple[str, ...] = ()
    tune: int | None = None
    seeds: range = range(1)
    until: float | None = None
    max_seeds: int = 30
    freeze: Path | None = None
    looks: tuple[int, ...] = ()
    only: tuple[str, ...] = ()
    runs: Path = Path("runs")
    data_dir: Path | None = None
    stage: str | None = None
    loader: StorageFormat | None = None
    workers: int | None = None
    skip_corrupt: bool = False
    max_parallel: int | None = None
    runs_per_gpu: int | None = None
    ranks_per_node: int | None = None
    micro_batch: int | None = None
    zero_stage: int = 0
    compiled: bool = False
    cuda_graphs: bool = False
    teacher_weights: Path | None = None
    device: Literal["cpu", "gpu"] | None = None
    precision: Literal["fp32", "bf16"] | None = None
    retry_failed: bool = False
    dry_run: bool = False
    json: bool = False
    list_suites: bool = False
    show: bool = False
    cluster: Cluster = "local"
    status: bool = False
    watch: bool = False
    cancel: bool = False
    serve: Address | None = None
    track: tuple[TrackerName, ...] = ()
    detach: bool = False
    site: Site = field(default_factory=Site)
    site_path: Path | None = None
    site_check: bool = False

    def __post_init__(self) -> None:
        waits, freezes, serves = self.until is not None, self.freeze is not None, self.serve is not None
        only_looks = self.list_suites or self.show or self.dry_run or bool(self.check)
        shares_gpus_elsewhere = self.cluster == "slurm" or self.max_parallel or (self.ranks_per_node or 1) > 1
        looks, num_seeds, weights = sorted(set(self.looks)), len(self.seeds), self.teacher_weights
        refusals = {
            "--watch goes with --status": self.watch and not self.status,
            "--json goes with one look: --list, --show, --dry-run, --status without --watch, or --check":
                self.json and (not (only_looks or self.status) or self.watch or self.cancel or freezes),
            "--cancel ends all jobs of a suite's profile: it takes no --status, --show, --dry-run or --only":
                self.cancel and (self.status or self.show or self.dry_run or self.only),
            "--serve shows a grid at work: it goes with training, or with --status":
                serves and (self.json or only_looks or self.cancel),
            "--tune goes without --serve, whose page would not show the tries: serve it later": self.tune and serves,
            "--tune goes with a profile that is not tuned, and a fixed number of --seeds":
                self.tune and (waits or TUNED in self.profile),
            "--seeds until=… trains all configurations of the headline together: it takes no --only":
                waits and self.only,
            f"--max-seeds {self.max_seeds}: --seeds until=… first looks at {FIRST_LOOK}; expected more":
                waits and self.max_seeds < FIRST_LOOK,
            "--freeze writes down all of a profile: it takes no --only": freezes and self.only,
            "--freeze writes a plan, once: it takes no --dry-run, --show, --list, --check, --status or --cancel":
                freezes and (only_looks or self.status or self.cancel),
            "--looks goes with --freeze and a fixed number of --seeds": looks and (not freezes or waits),
            f"--looks: expected at most {MOST_LOOKS} rising numbers of seeds, the last of them {num_seeds}":
                looks and (list(self.looks) != looks or looks[-1] != num_seeds or len(looks) > MOST_LOOKS),
            "--runs-per-gpu is for runs of one rank on this machine, as many at once as the GPUs take: "
            "it goes with none of --cluster slurm, --max-parallel, --ranks-per-node":
                self.runs_per_gpu and shares_gpus_elsewhere,
            "--compile goes with --zero-stage 0, 1 or 2: stage 3 gathers weights layer by layer":
                self.compiled and self.zero_stage == 3,
            f"--teacher-weights {weights}: there is no such file": weights is not None and not weights.is_file(),
        }  # fmt: skip
        for words, holds in refusals.items():
            if holds:
                raise SpecError(words)

    @property
    def profile_name(self) -> str:
        """The profile as it was asked for: in a precision, on another image set, such as ``laptop-bf16@flowers``."""
        name = f"{self.profile}-{self.precision}" if self.precision else self.profile
        name = f"{name}@{self.dataset}" if self.dataset else name
        return f"{name}{TUNED}{self.tune}" if self.tune else name

    @property
    def starts_nothing(self) -> bool:
        """Whether runs are only looked at, or ended."""
        return self.dry_run or self.show or self.status or self.cancel or self.freeze is not None


def make_resources(options: GridOptions, profile: Profile, num_ranks: int, threads_per_rank: int) -> Resources:
    """Work out the resources that one run may use.

    Args:
        profile: profile, which gives device, evaluations, and the batches that the ranks must share evenly.
        num_ranks: number of ranks of one run, over all its nodes.
        threads_per_rank: number of threads that compute.

    Raises:
        SpecError: the ranks or micro-batches do not share a batch evenly, or no CUDA graph can record a run.
    """
    weights, stage = options.teacher_weights, options.stage
    if stage and stage != "slurm" and "$" not in stage:  # else only the node knows it
        stage = str(Path(stage).expanduser().absolute())
    plan = read_plan(options.runs, get_suite(options.suite).name, options.profile_name) if options.suite else None
    resources = Resources(
        device=profile.device,
        num_ranks=num_ranks,
        threads_per_rank=threads_per_rank,
        micro_batch_size=options.micro_batch,
        zero_stage=options.zero_stage,
        compiled=options.compiled,
        cuda_graphs=options.cuda_graphs,
        checkpoint_every_s=profile.checkpoint_every_s,
        num_evaluations=profile.num_evaluations,
        evaluate_every_epoch=profile.device == "gpu" and are_shown_with_best(profile.experiments()),
        data_dir=str(options.data_dir.absolute()) if options.data_dir else None,
        stage=stage,
        loader=options.loader,
        num_workers=options.workers or 0,
        skip_corrupt=options.skip_corrupt,
        teacher_weights=str(weights.absolute()) if weights else None,
        track=tuple(dict.fromkeys(options.track)),
        plan_sha256=plan.sha256 if plan else "",
    )
    resources.check_graphs()
    for batch_size in sorted({experiment.recipe.batch_size for experiment in profile.experiments()}):
        resources.split_batch(batch_size)
    return resources
