"""Ranks and their engine: DeepSpeed's, or plain PyTorch for a rank alone.

The only module that imports deepspeed.
A run has one process per rank. RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which one this is
(torchrun's names); where they are missing the process is alone.
"""

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from timm.utils import distribute_bn
from torch import Tensor, nn

from suite.base.errors import LostPeerError, RunError
from suite.cost.known_flops import read_shipped
from suite.spec.model_options import read_options
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.training.accelerator import device_of, missing_gpu, num_gpus, take_gpu
from suite.training.checkpoint_files import HashedFiles
from suite.training.environment import commit, keep_freed_memory
from suite.training.optim import clip_before_steps
from suite.training.plain_engine import PlainEngine

_LOST_PEER_ERRORS = ("gloo", "nccl", "connection", "broken pipe", "address already in use")


@contextlib.contextmanager
def watch_for_lost_peers() -> Iterator[None]:
    """Raise LostPeerError, in a run of several ranks, where torch says that another one is gone.

    Torch has a type of its own for some of these errors only.
    """
    try:
        yield
    except RuntimeError as error:  # as all of torch.distributed's are
        is_named = any(word in str(error).lower() for word in _LOST_PEER_ERRORS)
        if int(os.environ.get("WORLD_SIZE", "1")) > 1 and (isinstance(error, dist.DistError) or is_named):
            raise LostPeerError(
                f"another rank is gone, or could not be met: {type(error).__name__}: {error}; "
                "the same command goes on from the newest checkpoint"
            ) from error
        raise


@dataclass(frozen=True)
class Ranks:
    """This process among those of its run, and what they tell each other.

    Methods that wait for the others raise LostPeerError when one of them is gone.
    """

    rank: int
    num_ranks: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @watch_for_lost_peers()
    def sum(self, values: Tensor) -> Tensor:
        """Add ``values`` up over all ranks, in place."""
        if self.num_ranks > 1:
            dist.all_reduce(values)
        return values

    def agree(self, *flags: bool) -> list[bool]:
        """Say of each flag whether any rank has raised it; a rank alone asks no device."""
        if self.num_ranks == 1:
            return list(flags)
        return [count > 0 for count in self.sum(torch.tensor(flags, dtype=torch.float32, device=self.device)).tolist()]

    def hear_first(self, number: int) -> int:
        """Tell all ranks the first one's number."""
        mine = number if self.is_first else 0
        return int(self.sum(torch.tensor(mine, device=self.device)).item()) if self.num_ranks > 1 else number

    @watch_for_lost_peers()
    def union(self, items: set[Any]) -> set[Any]:
        """Collect the items that any rank has."""
        if self.num_ranks == 1:
            return items
        gathered: list[set[Any]] = [set() for _ in range(self.num_ranks)]
        dist.all_gather_object(gathered, items)
        return set().union(*gathered)

    @watch_for_lost_peers()
    def barrier(self) -> None:
        if self.num_ranks > 1:
            dist.barrier()


def preload(resources: Resources) -> None:
    """Import early what else is imported late, for a process that forks others: none may touch a GPU before.

    The others run the code that is loaded here, so they say the commit, and count by the source, that are read here.
    """
    commit()
    read_shipped()
    read_options()
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asks the driver for GPUs without starting CUDA
    if resources.device == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    if _needs_deepspeed(resources):
        import deepspeed  # noqa: F401


def _needs_deepspeed(resources: Resources) -> bool:
    """Whether there is anything to share or to shard; a step of plain PyTorch costs less, and gives the same."""
    return resources.num_ranks > 1 or resources.zero_stage > 0


def check_device(resources: Resources) -> None:
    """Raise RunError where a GPU is asked for, and torch sees none."""
    if resources.device == "gpu" and (problem := missing_gpu()):
        raise RunError(problem)


def start(resources: Resources) -> Ranks:
    """Set the process up: threads, determinism, precision, device and, where there is one, process group.

    Products and convolutions of fp32 are IEEE's on GPUs too, as on CPUs: torch itself would round the inputs of
    convolutions, and of nothing else, to TF32.

    Raises:
        RunError: if a GPU is asked for and there is none for this rank.
        LostPeerError: if the other ranks cannot be met.
    """
    check_device(resources)
    keep_freed_memory()
    torch.set_num_threads(resources.threads_per_rank)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # needed by deterministic cuBLAS
    torch.use_deterministic_algorithms(True)  # not warn_only: with it fused attention stays non-deterministic
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # a debugging aid that costs time
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("MASTER_PORT", str(free_port()))
    if resources.device == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
        device = torch.device("cpu")
    else:
        device = take_gpu(_choose_gpu())
    if _needs_deepspeed(resources):
        _connect(device)
    return Ranks(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device)


def _choose_gpu() -> int:
    """Choose the GPU of this rank's number, or the only one it sees, where a site binds each process to its own.

    LOCAL_RANK then says so, since DeepSpeed goes by it.
    """
    num_seen, local_rank = num_gpus(), int(os.environ["LOCAL_RANK"])
    if num_seen == 1:
        local_rank = 0
    if local_rank >= num_seen:
        raise RunError(
            f"rank {local_rank} of this machine sees {num_seen} GPUs; expected one for each rank, or its own alone: "
            "start fewer ranks a machine, or give the job more GPUs"
        )
    os.environ["LOCAL_RANK"] = str(local_rank)
    return local_rank


@watch_for_lost_peers()
def _connect(device: torch.device) -> None:
    """Form the process group, which ZeRO asks for also of one rank: gloo between CPUs, NCCL between GPUs."""
    import deepspeed

    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    if device.type == "cpu":  # looking at it alone tries to build every operator that DeepSpeed has for GPUs
        from deepspeed.ops import __compatible_ops__

        __compatible_ops__["deepspeed_shm_comm"] = False  # else gloo compiles a C++ extension at start
    deepspeed.init_distributed("gloo" if device.type == "cpu" else "nccl", verbose=False)


def initialize(model: nn.Module, optimizer: torch.optim.Optimizer, recipe: Recipe, resources: Resources) -> Any:
    """Put an engine around model and optimizer: DeepSpeed's, or for a rank alone at ZeRO stage 0 plain PyTorch.

    Args:
        model: the network, which is moved to this rank's device.
        optimizer: an optimizer that at stage 0 clips the gradients, too.

    Raises:
        RunError: a layer without weights, as pruning may leave one, in stage 3, which never finds it whole.
        LostPeerError: another rank is gone.
    """
    if resources.zero_stage == 0 and recipe.clip_grad_norm:  # each rank has all gradients, and the optimizer is ours
        clip_before_steps(optimizer, model, recipe.clip_grad_norm)
    if _needs_deepspeed(resources):
        return wrap_in_deepspeed(model, optimizer, recipe, resources)
    _, accumulation = resources.split_batch(recipe.batch_size)
    return PlainEngine(model, optimizer, accumulation, recipe.precision == "bf16", device_of(resources.device))


@watch_for_lost_peers()
def wrap_in_deepspeed(model: nn.Module, optimizer: torch.optim.Optimizer, recipe: Recipe, resources: Resources) -> Any:
    """Put the DeepSpeed engine around model and optimizer.

    bf16 is torch autocast, since DeepSpeed's own bf16 with ZeRO stage 0 takes a phantom first step. Weights and
    gradients pass between ranks in fp32: ZeRO would round those of linear layers and convolutions. Stage 3 computes by
    torch's linear, since DeepSpeed's own rounds once more. The gradients of several ranks are added up after the
    backward pass: at stage 0 DeepSpeed has no other way, and from stage 1 on its buckets, of 5e8 elements unless told
    otherwise, hold more than any model here.

    Args:
        model: the network, on the device where it is trained.

    Raises: as ``initialize``.
    """
    empty = [name for name, parameter in model.named_parameters() if not parameter.numel()]
    if empty and resources.zero_stage == 3:
        raise RunError(
            f"{empty[0]} is empty, its layer has lost all heads: DeepSpeed's ZeRO stage 3 expects weights in each; "
            "use --zero-stage 2 or less"
        )
    import deepspeed
    from deepspeed.runtime.fp16.loss_scaler import LossScaler
    from deepspeed.runtime.zero.config import ZeroStageEnum
    from deepspeed.utils.tensor_fragment import fragment_address

    (micro, accumulation), is_bf16 = resources.split_batch(recipe.batch_size), recipe.precision == "bf16"
    config = {
        "train_batch_size": recipe.batch_size,
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": accumulation,
        "gradient_clipping": 0.0 if resources.zero_stage == 0 else recipe.clip_grad_norm,
        "zero_optimization": {"stage": resources.zero_stage, "memory_efficient_linear": False},
        "zero_allow_untested_optimizer": True,
        "torch_autocast": {"enabled": is_bf16, "dtype": "bfloat16", "lower_precision_safe_modules": []},
        "timers": {"throughput": {"enabled": False}},  # it waits for the device twice in each micro-step
        "steps_per_print": 10**9,
    }
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config, dist_init_required=True)
    files, engines = HashedFiles((LossScaler, ZeroStageEnum, fragment_address)), engine.checkpoint_engine
    engines.save, engines.load, engines.digests = files.save, files.load, files.digests  # its own unpickles any code
    engine._copy_recovery_script = lambda folder: None  # checkpoints are data alone
    return engine


@watch_for_lost_peers()
def average_running_statistics(model: nn.Module, ranks: Ranks) -> None:
    """Give all ranks the mean of BatchNorm's running means and variances, which each takes from its own images.

    DeepSpeed leaves buffers alone, so that without this each rank would score another network. The mean takes the
    place of each rank's own, at steps that no clock has a say in: a checkpoint written then holds the state of every
    rank. Training does not read these buffers, and a mean of means is the mean: doing it often changes rounding only.
    Other buffers, constants and counts, are the same everywhere and stay.
    """
    if ranks.num_ranks > 1:
        distribute_bn(model, ranks.num_ranks, reduce=True)


@watch_for_lost_peers()
def full_state_dict(engine: Any, zero_stage: int) -> dict[str, Tensor]:
    """Gather the model's state on the CPU, whatever the ZeRO stage. All ranks call it; the first's is complete."""
    gathered: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if zero_stage == 3:
        import deepspeed

        gathered = deepspeed.zero.GatheredParameters(list(engine.module.parameters()))
    with gathered:
        return {name: value.detach().cpu().contiguous() for name, value in engine.module.state_dict().items()}


def stop() -> None:
    """Leave the process group, so that no rank complains at exit."""
    if dist.is_initialized():
        dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
