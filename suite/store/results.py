"""The outcome of a run as data, in the files of its ``run_directory``: its result, or why it failed."""

import contextlib
from typing import Annotated, Literal, Self, get_args

from pydantic import ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt, field_validator, model_validator

from suite.base.frozen import Frozen
from suite.base.reading import read_json
from suite.spec.experiment import Experiment
from suite.spec.resources import StorageFormat

# Of result.json. Older ones lack: 7 energy and peak memory; 6 staging; 5 predictions, and images that are drawn by
# seeds or shuffled; 4 micro-batches; 3 a seal, always, and threads; 2 compiled steps; 1 a number of its own, digests of
# maps, and foreign models.
RESULT_FORMAT = 8

PROTOCOL_VERSION = 2
"""The version of what a training does: raised, with an entry in the changelog, when an experiment computes something
else than it did and no field shows it, so that results from before and after are never averaged."""

FailureKind = Literal["error", "killed"]
Percent = Annotated[float, Field(ge=0, le=100)]


class Result(Frozen):
    """The outcome of a finished run. Accuracies are of the last weights on the whole test split, in percent.

    Only what a run can have measured is valid: finite numbers of the right type, in range, that fit each other and the
    experiment.
    """

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    format_version: int = Field(1, ge=1, le=RESULT_FORMAT)
    experiment: Experiment
    top1_percent: Percent
    top5_percent: Percent
    test_loss: NonNegativeFloat
    best_top1_percent: Percent  # of all evaluations
    num_evaluations: NonNegativeInt = 0  # during the training, the last one included; 0 = not recorded
    num_parameters: PositiveInt
    num_train_images: PositiveInt
    num_test_images: PositiveInt
    loader: str = "memory"
    num_corrupt_images: NonNegativeInt = 0  # that could not be decoded and were skipped, of both splits
    num_steps: NonNegativeInt
    images_seen: NonNegativeInt
    train_s: NonNegativeFloat  # seconds of training steps over all attempts, without start-up and evaluation
    staging_s: NonNegativeFloat = 0.0  # beside them, in which images were copied to the node's disk
    images_per_s: NonNegativeFloat
    device: str
    num_ranks: PositiveInt
    threads_per_rank: NonNegativeInt = 0  # that computed, on a CPU; 0 = on another device, or not recorded
    micro_batch_size: NonNegativeInt = 0  # images that a rank trained on at once; 0 = on none, or not recorded
    has_batch_norm: bool = False  # whose statistics, in training, are of these images; False also where not recorded
    compiled: bool = False  # its training steps, by torch.compile
    num_nodes: PositiveInt = 1
    num_attempts: NonNegativeInt
    num_requeues: NonNegativeInt = 0  # by SLURM
    num_unusable_checkpoints: NonNegativeInt = 0  # damaged or another run's, and not gone on from
    device_hours: NonNegativeFloat = 0.0  # of all ranks in all attempts, start-up and evaluation included
    energy_kwh: NonNegativeFloat | None = None  # of the same, of their GPUs or processors; None = unknown
    peak_memory_gb: NonNegativeFloat | None = None  # on one GPU, or of one process on a CPU, in 10^9 bytes
    mfu_percent: float | None = Field(None, ge=0)  # model FLOPs over the device's peak; None where that is not known
    inference_images_per_s: NonNegativeFloat = 0.0  # of the last evaluation's forward passes, on one device
    num_macs: NonNegativeInt = 0  # multiply-adds of one image's forward pass
    num_linear_macs: NonNegativeInt = 0  # of these, in linear layers and convolutions
    num_pruned_heads: tuple[NonNegativeInt, ...] = ()  # of each layer; () where nothing was pruned
    lineage_train_s: NonNegativeFloat = 0.0  # ``train_s``, and that of the runs whose weights this one started from
    mean_nonlocality: float | None = Field(None, ge=0)  # over layers and heads, in patches
    mean_gate: float | None = Field(None, ge=0, le=1)  # over GPSA layers and heads
    weights_sha256: str = ""  # of ``weights.safetensors``; "" where nothing was trained, or before this was recorded
    maps_sha256: str = ""  # of ``maps.safetensors``, likewise
    predictions_sha256: str = ""  # of ``predictions.npz``; "" where they were not kept
    plan_sha256: str = ""  # of the frozen plan under which it was trained; "" where there was none
    parent: str = ""  # id of the experiment whose finished run this one took over
    teacher_sha256: str = ""  # of the file of weights that taught this one, where that is no run's
    protocol_version: NonNegativeInt = 1
    commit: str
    finished_at: str  # ISO 8601, UTC

    @field_validator("loader")
    @classmethod
    def _is_a_format(cls, name: str) -> str:
        """Refuse what is no storage format. The schema does not list these, so that a new one leaves it as it is."""
        if name not in get_args(StorageFormat):
            raise ValueError(f"expected one of {', '.join(get_args(StorageFormat))}")
        return name

    @model_validator(mode="after")
    def _fits(self) -> Self:
        num_steps = self.experiment.num_steps(self.num_train_images)
        images_seen = num_steps * self.experiment.recipe.batch_size
        for name, expected in (("num_steps", num_steps), ("images_seen", images_seen)):
            if (found := getattr(self, name)) != expected:
                raise ValueError(f"{name} is {found}, expected {expected} of this experiment")
        for name in ("top5_percent", "best_top1_percent"):
            if (found := getattr(self, name)) < self.top1_percent:
                raise ValueError(f"{name} is {found}, below top1_percent, which is {self.top1_percent}")
        return self


class Failure(Frozen):
    """Why an attempt ended. ``error`` needs ``--retry-failed``; ``killed`` is resumed by the next grid."""

    kind: FailureKind
    reason: str
    log_path: str


def format_of(result: bytes) -> int:
    """The version of a result's form; 0 where it says none."""
    with contextlib.suppress(ValueError):
        found = read_json(result)
        version = found.get("format_version", 0) if isinstance(found, dict) else 0
        return version if type(version) is int else 0
    return 0


def why_void(protocol_version: int) -> str:
    """Why a result, or a checkpoint, of this version of the protocol does not hold; "" where it does."""
    if protocol_version > PROTOCOL_VERSION:
        return f"it was made under protocol {protocol_version}, and this code knows {PROTOCOL_VERSION}: update it"
    if protocol_version < PROTOCOL_VERSION:
        return f"made under protocol {protocol_version}, expected {PROTOCOL_VERSION} (CHANGELOG.md says what changed)"
    return ""
