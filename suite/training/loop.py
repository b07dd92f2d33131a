"""The training loop: from an experiment to a result, resumable at any step bit by bit."""

import math
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import chain
from math import ceil
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from imagesets.loader import Batch, ImageLoader
from suite.base.errors import RunError
from suite.models.convit.probes import attention_layers
from suite.models.registry import count_parameters
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.heartbeat import Heartbeat
from suite.store.results import PROTOCOL_VERSION, Result, why_void
from suite.store.run_directory import RunDirectory
from suite.training import checkpoint, distributed
from suite.training.accelerator import is_gpu, seed_gpu, wait_for
from suite.training.checkpoint_files import Origin
from suite.training.checkpoint_times import CheckpointTimes
from suite.training.compilation import compile_training, make_code
from suite.training.distillation import Teacher
from suite.training.distributed import Ranks, watch_for_lost_peers
from suite.training.environment import StopRequest
from suite.training.learning_rate import LearningRate
from suite.training.measure import probing
from suite.training.measure.evaluate import Accuracy, evaluate
from suite.training.measure.outcome import make_result
from suite.training.measure.usage import Usage
from suite.training.measure.waiting import Waiting
from suite.training.optim import build_optimizer
from suite.training.start import choose_parent, has_batch_norm, set_memory_format, start_network

_MAX_STEPS_BETWEEN_LOGS = 20  # also between looks at a stop request, which ranks take together


class Interrupted(Exception):
    """Training was asked to stop; its checkpoint is written."""


@dataclass
class Progress:
    """The state that a checkpoint keeps beside weights and optimizer."""

    step: int = 0  # steps done
    train_s: float = 0.0
    best_top1_percent: float = 0.0
    corrupt: list[tuple[str, int]] = field(default_factory=list)  # images that were skipped


class Training:
    """One attempt at a run: built from its experiment, then moved to its newest checkpoint; RunError if that is
    unreadable."""

    def __init__(self, run: RunDirectory, experiment: Experiment, resources: Resources, ranks: Ranks) -> None:
        self.directory, self.experiment, self.resources, self.ranks = run, experiment, resources, ranks
        self.heartbeat = Heartbeat(run if ranks.is_first else None)
        recipe = self.recipe = experiment.recipe
        self.images = ImageLoader(experiment, resources)
        self.num_steps = self.images.num_steps
        num_classes = self.images.info.num_classes
        self.parent = choose_parent(run, experiment)
        self.teacher = None
        if experiment.kind == "distillation":
            self.teacher = Teacher(run, experiment, resources, self.images.info, ranks.device)
        model = start_network(run, experiment, num_classes)
        if resources.zero_stage == 0:  # the others take a weight for one piece of memory in its usual order
            set_memory_format(model, ranks.device)
        if resources.compiled:
            compile_training(model, resources)
        self.num_parameters = count_parameters(model)
        optimizer = build_optimizer(model, recipe, ranks.device, resources.compiled)
        self.learning_rate = LearningRate(optimizer, recipe, self.num_steps)
        self.engine = distributed.initialize(model, optimizer, recipe, resources)
        self.micro_batch, self.accumulation = resources.split_batch(recipe.batch_size)
        self.norm_batch = self.micro_batch if has_batch_norm(model) else 0  # images that its batch norms see at once
        self.origin = Origin(
            experiment=run.id if run.id == experiment.old_id else experiment.id,
            parent=self.parent.experiment.id if self.parent else "",
            parent_sha256=self.parent.weights_sha256 if self.parent else "",
            teacher_sha256=self.teacher.weights_sha256 if self.teacher else "",
        )
        state = checkpoint.load_newest(self.engine, run, ranks, resources, self.origin)
        protocol_version = state.get("protocol_version", PROTOCOL_VERSION)
        self._check_checkpoint(protocol_version, state.get("norm_batch", self.norm_batch))
        self._keep_threads(state.get("threads_per_rank", 0))
        self.progress = Progress(**state.get("progress", {}))
        self.usage = Usage(run, ranks)
        self.probe = None
        self.looked: dict[str, probing.Lines] = {}  # what the probe has measured last
        if ranks.is_first:
            if resources.zero_stage < 3 and attention_layers(model):  # stage 3 cuts weights in pieces: none is whole
                self.probe = probing.AttentionProbe(self.images, ranks.device)
            run.keep_metrics_until(self.progress.step if state else -1)
            print(f"training steps {self.progress.step} to {self.num_steps}", flush=True)

    def _check_checkpoint(self, protocol_version: int, norm_batch: int) -> None:
        """Refuse a checkpoint of another protocol, or with batch norms of another number of images."""
        if reason := why_void(protocol_version):
            raise RunError(
                f"the checkpoint in {self.directory.checkpoint_path} cannot be resumed from: {reason}. "
                "Delete that folder and use --retry-failed to train this run from its start"
            )
        if norm_batch != self.norm_batch:
            raise RunError(
                f"this run was begun with batch norms of {norm_batch} images at once, this attempt has "
                f"{self.norm_batch}: start the grid with its --micro-batch and ranks, or delete the run's checkpoint "
                "and use --retry-failed"
            )
        if 0 < self.norm_batch < self.recipe.batch_size:
            print(f"batch norms see {self.norm_batch} images at once, not the batch of {self.recipe.batch_size}")

    def _keep_threads(self, number: int) -> None:
        """Compute with the checkpoint's number of threads (0 = unknown): another one would round sums otherwise."""
        if number in (0, given := self.resources.threads_per_rank) or is_gpu(self.ranks.device):
            return
        torch.set_num_threads(number)
        self.resources = self.resources.model_copy(threads_per_rank=number)
        if self.ranks.is_first:
            print(f"threads a rank: {number}, as its checkpoint was computed with, not the {given} of this attempt")

    def run(self, stop: StopRequest) -> Result | None:  # noqa: C901  # reads straight down
        """Train to the end; the first rank returns the result, the others None.

        Interrupted where ``stop`` was requested, RunError where the loss is not finite, or a file cannot be written.
        """
        log_every = max(1, min(_MAX_STEPS_BETWEEN_LOGS, self.num_steps // 50))
        evaluations, every_epoch = self.resources.num_evaluations, self.resources.evaluate_every_epoch
        evaluate_at = {self.num_steps * k // evaluations for k in range(1, evaluations + 1)}
        accuracy: Accuracy | None = None
        checkpoints = CheckpointTimes(self.resources.checkpoint_every_s)
        progress = self.progress
        losses: list[Tensor] = []  # since the last metrics line
        window_s = 0.0  # and what these steps took
        batches = self.images.train_batches(
            progress.step, self.num_steps, self.ranks.rank, self.ranks.num_ranks, self.ranks.device
        )
        waiting = Waiting(self.ranks.device)  # for images, within window_s
        if progress.step == 0:
            self._look_at_attention()
            self._locate_heads()
            if self.experiment.kind == "pruning":
                self._log_accuracy()  # what the removal alone costs; no accuracy of this training, so never its best
        self.engine.train()
        if self.resources.compiled and progress.step < self.num_steps:
            first = next(batches)  # for its shape
            make_code(self.engine.module, first.images.split(self.micro_batch)[0], self.recipe, self.ranks)
            batches = chain([first], batches)
        if self.resources.cuda_graphs and progress.step < self.num_steps:
            self._record_passes()
        self.heartbeat.begin()
        while progress.step < self.num_steps:
            started = time.monotonic()
            with waiting:
                batch = next(batches)
            rate = self.learning_rate.set(progress.step)
            losses.append(self.train_step(progress.step, batch))
            progress.step += 1
            self.heartbeat.beat(progress.step)
            log_now = progress.step % log_every == 0 or progress.step == self.num_steps
            evaluate_now = progress.step in evaluate_at or (every_epoch and self._ends_period(progress.step, 1))
            probe_now = self._ends_period(progress.step, ceil(self.recipe.epochs / probing.MAX_EPOCHS))
            locate_now = self._are_heads_located(progress.step)
            loss = self._mean(losses) if log_now else 0.0  # on a GPU, this waits for the device
            if log_now or evaluate_now or probe_now:  # else what follows depends on the rank
                distributed.average_running_statistics(self.engine.module, self.ranks)
            if evaluate_now or probe_now or locate_now:
                wait_for(self.ranks.device)  # else the steps under way would count as time of what comes now
            window_s += time.monotonic() - started
            if log_now:
                self._log(loss, rate, len(losses) / window_s, waiting.take_s() / window_s)
                progress.train_s += window_s
                losses, window_s = [], 0.0
            if evaluate_now:
                with self.heartbeat.during("evaluation"):
                    accuracy = self._evaluate()
            with self.heartbeat.during("probe") if probe_now or locate_now else nullcontext():
                if probe_now:
                    self._look_at_attention()
                if locate_now:
                    self._locate_heads()
            if log_now:  # the only place for a checkpoint: nothing is pending, and the loss is known to be finite
                stopping, saving = self.ranks.agree(bool(stop), checkpoints.is_due)
                if stopping or saving:
                    with self.heartbeat.during("checkpoint"), checkpoints.saving():
                        self._save()
                if stopping:
                    raise Interrupted
        self.heartbeat.end()
        if accuracy is None:  # resumed from a checkpoint after the last step, before which it was logged
            accuracy = self._score()
        return self._finish(accuracy)

    def _record_passes(self) -> None:
        """Have the GPU start the kernels of a pass by itself, before any other thread gives it work."""
        self.resources.check_graphs()
        if self.norm_batch:
            print("training without CUDA graphs, as the network has batch norms", flush=True)
            return
        side = self.experiment.image_size
        try:
            self.engine.record(torch.zeros(self.micro_batch, 3, side, side, device=self.ranks.device))
        except RuntimeError as error:
            raise RunError(f"no CUDA graph can record this network, leave --cuda-graphs out: {error}") from error

    @watch_for_lost_peers()
    def train_step(self, step: int, batch: Batch) -> Tensor:
        """Take one optimizer step on this rank's share of the batch; returns its mean loss, detached."""
        images, labels = batch
        # stochastic depth draws from torch's global state: fixed by step and rank, so nothing has to be saved
        seeds = np.random.SeedSequence([self.experiment.seed, step, self.ranks.rank])
        seed = int(seeds.generate_state(1, np.uint64)[0] >> 1)
        torch.default_generator.manual_seed(seed)  # torch.manual_seed notes a stack for each GPU, used or not
        if is_gpu(self.ranks.device):
            seed_gpu(seed)
        total = torch.zeros((), device=self.ranks.device)
        for micro_images, micro_labels in zip(
            images.split(self.micro_batch), labels.split(self.micro_batch), strict=True
        ):
            logits = self.engine(micro_images).float()
            loss = F.cross_entropy(logits, micro_labels, label_smoothing=self.recipe.label_smoothing)
            if self.teacher is not None:
                loss = self.teacher.loss(micro_images, logits, loss)
            self.engine.backward(loss)
            self.engine.step()
            total += loss.detach() / self.accumulation
        return total

    def _mean(self, losses: list[Tensor]) -> float:
        """Average over steps and ranks."""
        return float(self.ranks.sum(torch.stack(losses).mean()).item() / self.ranks.num_ranks)

    def _log(self, loss: float, rate: float, steps_per_s: float, waiting: float) -> None:
        self._check_finite("training loss", loss, rate)
        images_per_s = steps_per_s * self.recipe.batch_size
        self._append(loss=loss, learning_rate=rate, images_per_s=images_per_s, data_wait_percent=100 * waiting)
        self.usage.look()

    def _check_finite(self, what: str, loss: float, rate: float) -> None:
        if not math.isfinite(loss):
            raise RunError(
                f"the {what} is {loss} at step {self.progress.step} of {self.num_steps} "
                f"(learning rate {rate:.3g}); expected a finite number: lower the recipe's learning rate"
            )

    def _evaluate(self) -> Accuracy:
        accuracy = self._log_accuracy()
        self.progress.best_top1_percent = max(self.progress.best_top1_percent, accuracy.top1_percent)
        return accuracy

    def _log_accuracy(self) -> Accuracy:
        """Log the network's accuracy as it is, without a claim to be the training's."""
        accuracy = self._score()
        self._append(top1_percent=accuracy.top1_percent, top5_percent=accuracy.top5_percent, test_loss=accuracy.loss)
        return accuracy

    def _score(self) -> Accuracy:
        accuracy = evaluate(self.engine.module, self.images, self.ranks, self.recipe.precision)
        self._check_finite("test loss", accuracy.loss, self.learning_rate.current)
        return accuracy

    def _are_heads_located(self, step: int) -> bool:
        """Locate as often as attention is looked at, and in a short training more often."""
        every = min(ceil(self.recipe.epochs / probing.MAX_EPOCHS), self.recipe.epochs / probing.MIN_MOMENTS)
        return self._ends_period(step, every)

    def _ends_period(self, step: int, epochs: float) -> bool:
        """Say whether one of the periods of so many epochs ended within this step, or the training."""
        every, batch = epochs * self.images.num_train, self.recipe.batch_size
        return step == self.num_steps or step * batch // every > (step - 1) * batch // every

    def _look_at_attention(self) -> None:
        """Probe on the first rank alone: the others go on, and wait for it in the next step."""
        if self.probe is not None:
            self.looked = self.probe.measure(self.engine.module)
            self._append(**self.looked)

    def _locate_heads(self) -> None:
        if self.probe is not None and (places := probing.locate_heads(self.engine.module)):
            self._append(**places)

    def _append(self, **values: Any) -> None:
        if self.ranks.is_first:
            step = self.progress.step
            epoch = step * self.recipe.batch_size / self.images.num_train
            self.directory.append_metrics({"step": step, "num_steps": self.num_steps, "epoch": epoch, **values})

    def _save(self) -> None:
        self.progress.corrupt = self._all_corrupt()
        self.usage.record()
        step, progress = self.progress.step, asdict(self.progress)
        state = {"progress": progress, "protocol_version": PROTOCOL_VERSION, "norm_batch": self.norm_batch}
        state["threads_per_rank"] = 0 if is_gpu(self.ranks.device) else self.resources.threads_per_rank
        checkpoint.save(self.engine, self.directory, self.ranks, self.resources, self.origin, step, state)

    def _all_corrupt(self) -> list[tuple[str, int]]:
        """List the images skipped so far, by any rank, in any attempt."""
        known = {(split, index) for split, index in self.progress.corrupt}
        return sorted(self.ranks.union(known | self.images.corrupt))

    def _finish(self, accuracy: Accuracy) -> Result | None:
        corrupt = self._all_corrupt()
        weights = distributed.full_state_dict(self.engine, self.resources.zero_stage)
        self.usage.record()
        if not self.ranks.is_first:
            return None
        weights_sha256 = checkpoint.save_weights(weights, self.directory.weights_path)
        if self.probe is not None and not self.looked:  # resumed from a checkpoint after the last step
            self.looked = self.probe.measure(self.engine.module)
        return make_result(
            run=self.directory,
            experiment=self.experiment,
            resources=self.resources,
            ranks=self.ranks,
            images=self.images,
            network=self.engine.module,
            num_parameters=self.num_parameters,
            accuracy=accuracy,
            parent=self.parent,
            num_steps=self.num_steps,
            train_s=self.progress.train_s,
            best_top1_percent=self.progress.best_top1_percent,
            num_evaluations=len({line["step"] for line in self.directory.read_metrics() if "top1_percent" in line}),
            num_corrupt_images=len(corrupt),
            mean_nonlocality=probing.mean(self.looked.get("nonlocality")),
            mean_gate=probing.mean(self.looked.get("gates")),
            teacher_sha256=self.origin.teacher_sha256,
            weights_sha256=weights_sha256,
        )
