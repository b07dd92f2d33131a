"""The teacher of a hard distillation (arXiv:2012.12877, Eq. 3), as ConViT's Table 4 uses it.

    loss = 1/2 CE(logits, label) + 1/2 CE(logits, argmax of the teacher's logits)

without a distillation token: Table 4's DeiT rows are those of the DeiT paper without it. The teacher sees the same
augmented images, normalized as those that it was trained on.
"""

from pathlib import Path

import timm
import torch
import torch.nn.functional as F
from timm.models import load_checkpoint
from torch import Tensor, nn

from imagesets.catalog import ImageSetInfo, statistics
from suite.base.errors import DataError, missing_weights
from suite.base.files import sha256_of
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.training.checkpoint_files import UNREADABLE
from suite.training.start import choose_parent, set_memory_format, trained_network


class Teacher:
    """A trained network whose answers a student learns beside the labels.

    SpecError without a timm teacher's weights, DataError where they do not fit, RunError where a parent's are gone.
    """

    def __init__(
        self, run: RunDirectory, experiment: Experiment, resources: Resources, info: ImageSetInfo, device: torch.device
    ) -> None:
        self.weights_sha256 = ""  # of a file that is no run's
        parent = choose_parent(run, experiment)
        if parent is not None:
            network = trained_network(parent.run, parent.experiment, info.num_classes)
            if parent.experiment.normalization != experiment.normalization:
                network = nn.Sequential(_Renormalize(info, experiment, parent.experiment), network)
        else:
            network = _from_timm(str(experiment.kind_options["teacher"]), resources.teacher_weights, info.num_classes)
            self.weights_sha256 = sha256_of(Path(str(resources.teacher_weights)))
        self._network = set_memory_format(network.to(device), device).eval().requires_grad_(False)
        self._autocast = experiment.recipe.precision == "bf16"

    @torch.no_grad()
    def labels(self, images: Tensor) -> Tensor:
        """(B, 3, S, S) -> (B,), the most likely classes."""
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self._autocast):
            labels: Tensor = self._network(images).argmax(-1)
        return labels

    def loss(self, images: Tensor, logits: Tensor, label_loss: Tensor) -> Tensor:
        """Eq. 3 from the loss by the labels alone."""
        return 0.5 * label_loss + 0.5 * F.cross_entropy(logits, self.labels(images))


class _Renormalize(nn.Module):
    """From a student's normalization of images to its teacher's."""

    scale_C11: Tensor
    shift_C11: Tensor

    def __init__(self, info: ImageSetInfo, student: Experiment, teacher: Experiment) -> None:
        super().__init__()
        mean, std = torch.tensor(statistics(info, student.normalization))
        teachers_mean, teachers_std = torch.tensor(statistics(info, teacher.normalization))
        self.register_buffer("scale_C11", (std / teachers_std)[:, None, None])
        self.register_buffer("shift_C11", ((mean - teachers_mean) / teachers_std)[:, None, None])

    def forward(self, images: Tensor) -> Tensor:
        return images * self.scale_C11 + self.shift_C11


def _from_timm(name: str, weights: str | None, num_classes: int) -> nn.Module:
    if weights is None:
        raise missing_weights(name)
    network: nn.Module = timm.create_model(name, num_classes=num_classes)
    try:
        load_checkpoint(network, weights, weights_only=True)
    except UNREADABLE as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DataError(
            f"{weights} are no weights of {name} for {num_classes} classes: {reason}. Expected a state dict in a .pth "
            "or .safetensors file, as timm's own"
        ) from error
    return network
