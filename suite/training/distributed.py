"""Ranks and DeepSpeed: the only module that imports deepspeed.

A run has one process per rank. RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which one this is
(torchrun's names); where they are missing the process is alone.
"""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from timm.utils import distribute_bn
from torch import Tensor, nn

from suite.errors import RunError
from suite.spec import Recipe, Resources


@dataclass(frozen=True)
class Ranks:
    """This process among those of its run."""

    rank: int
    num_ranks: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """The sum of ``values`` over all ranks."""
        if self.num_ranks > 1:
            dist.all_reduce(values)
        return values

    def agree(self, flag: bool) -> bool:
        """Whether any rank says so."""
        return bool(self.sum(torch.tensor(float(flag), device=self.device)) > 0)

    def union(self, items: set[Any]) -> set[Any]:
        """The items that any rank has."""
        if self.num_ranks == 1:
            return items
        gathered: list[set[Any]] = [set() for _ in range(self.num_ranks)]
        dist.all_gather_object(gathered, items)
        return set().union(*gathered)

    def barrier(self) -> None:
        if self.num_ranks > 1:
            dist.barrier()


def preload(resources: Resources) -> None:
    """Import DeepSpeed ahead of the first use, for a process that forks others: none may touch a GPU before."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asks the driver for GPUs without starting CUDA
    if resources.device == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    import deepspeed  # noqa: F401


def is_lost_peer(error: Exception) -> bool:
    """Whether an error only says that another rank is gone, or could not be met."""
    words = ("gloo", "nccl", "connection", "broken pipe", "address already in use")
    of_torch = isinstance(error, (dist.DistError, RuntimeError))
    return of_torch and (isinstance(error, dist.DistError) or any(word in str(error).lower() for word in words))


def start(resources: Resources) -> Ranks:
    """Set the process up: threads, determinism, device, process group.

    Raises:
        RunError: if a GPU is asked for and there is none.
    """
    if resources.device == "gpu" and not torch.cuda.is_available():
        raise RunError("this run needs a GPU, and torch sees none; use --profile laptop, or a machine with a GPU")
    torch.set_num_threads(resources.threads_per_rank)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # needed by deterministic cuBLAS
    torch.use_deterministic_algorithms(True)  # not warn_only: with it fused attention stays non-deterministic
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # a debugging aid that costs time
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("MASTER_PORT", str(_free_port()))
    if resources.device == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
        device = torch.device("cpu")
    else:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    _connect(device)
    return Ranks(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device)


def _connect(device: torch.device) -> None:
    """Form the process group, which DeepSpeed asks for also of one rank: gloo between CPUs, NCCL between GPUs."""
    import deepspeed
    from deepspeed.ops import __compatible_ops__

    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    __compatible_ops__["deepspeed_shm_comm"] = False  # else gloo compiles a C++ extension at start
    deepspeed.init_distributed("gloo" if device.type == "cpu" else "nccl", verbose=False)


def initialize(model: nn.Module, optimizer: torch.optim.Optimizer, recipe: Recipe, resources: Resources) -> Any:
    """The DeepSpeed engine around model and optimizer.

    bf16 is torch autocast, since DeepSpeed's own bf16 with ZeRO stage 0 takes a phantom first step.

    Raises:
        RunError: a layer without weights, as pruning may leave one, in stage 3, which never finds it whole.
    """
    empty = [name for name, parameter in model.named_parameters() if not parameter.numel()]
    if empty and resources.zero_stage == 3:
        raise RunError(
            f"{empty[0]} is empty, its layer has lost all heads: DeepSpeed's ZeRO stage 3 expects weights in each; "
            "use --zero-stage 2 or less"
        )
    import deepspeed

    micro, accumulation = resources.split_batch(recipe.batch_size)
    config = {
        "train_batch_size": recipe.batch_size,
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": accumulation,
        "gradient_clipping": recipe.clip_grad_norm,
        "zero_optimization": {"stage": resources.zero_stage},
        "zero_allow_untested_optimizer": True,
        "torch_autocast": {"enabled": recipe.precision == "bf16", "dtype": "bfloat16"},
        "steps_per_print": 10**9,
    }
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config, dist_init_required=True)
    return engine


def average_running_statistics(model: nn.Module, ranks: Ranks) -> None:
    """Give all ranks the mean of BatchNorm's running means and variances, which each takes from its own images.

    DeepSpeed leaves buffers alone, so that without this each rank would score another network. The mean takes the
    place of each rank's own, at steps that no clock has a say in: a checkpoint written then holds the state of every
    rank. Training does not read these buffers, and a mean of means is the mean: doing it often changes rounding only.
    Other buffers, constants and counts, are the same everywhere and stay.
    """
    if ranks.num_ranks > 1:
        distribute_bn(model, ranks.num_ranks, reduce=True)


def full_state_dict(engine: Any, zero_stage: int) -> dict[str, Tensor]:
    """The whole model's state on the CPU, whatever the ZeRO stage. All ranks call it; the first one's is complete."""
    import deepspeed

    parameters = list(engine.module.parameters()) if zero_stage == 3 else []
    with deepspeed.zero.GatheredParameters(parameters, enabled=zero_stage == 3):
        return {name: value.detach().cpu().contiguous() for name, value in engine.module.state_dict().items()}


def stop() -> None:
    """Leave the process group, so that no rank complains at exit."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
