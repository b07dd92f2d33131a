"""How a run is carried out, as data: never part of an experiment's identity."""

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveInt

from suite.base.errors import SpecError
from suite.base.frozen import Frozen

StorageFormat = Literal["memory", "ffcv", "webdataset", "folder", "in_place"]  # modules of ``imagesets.formats``
TrackerName = Literal["tensorboard", "trackio", "wandb"]  # packages, and extras, of these names
WAITING_THREADS = ("OMP_WAIT_POLICY", "PASSIVE")


class Resources(Frozen):
    """How a run is carried out. Never part of its identity."""

    device: Literal["cpu", "gpu"] = "cpu"
    num_ranks: PositiveInt = 1
    threads_per_rank: PositiveInt = 1
    micro_batch_size: PositiveInt | None = None  # images a rank holds at once; None = its whole share
    zero_stage: int = Field(0, ge=0, le=3)
    compiled: bool = False  # training steps by torch.compile, and a fused optimizer
    cuda_graphs: bool = False  # a GPU starts the kernels of a pass by itself, and gives the same bits
    checkpoint_every_s: NonNegativeFloat = 300.0  # or less often, where that takes over 1 % of the time
    num_evaluations: PositiveInt = 3  # of the whole test split, evenly spaced; the last one is the result
    evaluate_every_epoch: bool = False  # beside these, for an accuracy that is the best of all epochs
    data_dir: str | None = None
    stage: str | None = None  # a folder of the node's own disk, to which the images are copied; "slurm" = $SLURM_TMPDIR
    loader: StorageFormat | None = None  # None = the format that the images are prepared in, else "memory"
    num_workers: int = Field(0, ge=0)  # threads a rank decodes images with; 0 = as many as it computes with
    skip_corrupt: bool = False  # go on without images that cannot be decoded, and count them
    teacher_weights: str | None = None  # file of a timm teacher's weights, for distillation
    track: tuple[TrackerName, ...] = ()  # what also shows its metrics
    plan_sha256: str = ""  # of the frozen plan that it is part of

    def check_graphs(self) -> None:
        """Raise SpecError where CUDA graphs are asked for of what is no rank alone on a GPU, with its whole batch."""
        is_in_parts = self.num_ranks > 1 or self.zero_stage or self.micro_batch_size
        if self.cuda_graphs and (self.device == "cpu" or is_in_parts or self.compiled):
            raise SpecError(
                "--cuda-graphs goes with runs of one rank on a GPU, and with none of --compile, --zero-stage and "
                "--micro-batch"
            )

    def split_batch(self, batch_size: int) -> tuple[int, int]:
        """Share a batch among all ranks: (images that a rank holds at once, accumulation steps); SpecError for no
        divisors."""
        share, rest = divmod(batch_size, self.num_ranks)
        if rest:
            raise SpecError(f"a batch of {batch_size} cannot be shared by {self.num_ranks} ranks; choose a divisor")
        micro = min(self.micro_batch_size or share, share)
        if share % micro:
            raise SpecError(f"micro-batches of {micro} do not divide a rank's share of {share} images")
        return micro, share // micro
