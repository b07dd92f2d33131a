"""Where ConViT's gain over DeiT on scarce images is to be seen within minutes on a core: the search for a profile.

    nice -n 15 python benchmarks/laptop_profile.py --stage grids [--results benchmarks/laptop_profile.jsonl]

Every trial trains one network through the suite's own models, loader, optimizer and schedule, without DeepSpeed and
run directories, on the first images of each class of CIFAR-10, and scores it on training images that no trial trains
on: the last 500 of each class. Test images are never seen. Seeds are 1000 and above, never those that are reported.
Both families get the same learning rates, warm-up, length and seeds. A finished trial is a line of the results file,
and is not trained again. What came out is in laptop_profile.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from imagesets.catalog import statistics
from imagesets.loader import ImageLoader
from imagesets.stored_split import open_splits
from suite.base.errors import SpecError
from suite.base.frozen import Scalar
from suite.models.registry import build_model
from suite.papers.convit.recipes import Family
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.training.learning_rate import LearningRate
from suite.training.optim import build_optimizer

NUM_IMAGES = 50_000
NUM_HELD_OUT = 500  # of each class
NUM_SCORES = 2  # evenly spaced, the last one after the last step


@dataclass(frozen=True)
class Setting:
    """One candidate for a profile: the models' shape, the images, and what both families' recipes share."""

    patch_size: int = 4
    dim: int = 32
    num_heads: int = 4
    depth: int = 4
    num_gpsa_layers: int = 2
    locality_strength: float = 1.0
    conv_init: bool = True
    num_images: int = 1_000
    images_seen: int = 64_000
    batch_size: int = 64
    crop_padding: int = 4
    label_smoothing: float = 0.0
    drop_path: float = 0.0
    weight_decay: float = 0.05
    weight_std: float = 0.02  # of linear weights at the start
    warmup_tenths: float = 1.0  # of the training

    def experiment(self, family: Family, learning_rate: float, seed: int) -> Experiment:
        """Make the experiment of one trial.

        Raises:
            SpecError: more images than are left beside those that are held out.
        """
        if self.num_images > NUM_IMAGES - 10 * NUM_HELD_OUT:
            raise SpecError(
                f"num_images is {self.num_images}, expected at most {NUM_IMAGES - 10 * NUM_HELD_OUT}: the others are "
                "held out, to choose by"
            )
        shape: dict[str, Scalar] = {
            "patch_size": self.patch_size,
            "dim": self.dim,
            "num_heads": self.num_heads,
            "depth": self.depth,
        }
        if self.weight_std != 0.02:
            shape["weight_std"] = self.weight_std
        if family == "convit":
            shape |= {"num_gpsa_layers": self.num_gpsa_layers, "locality_strength": self.locality_strength}
            shape |= {} if self.conv_init else {"conv_init": False}
        epochs = self.images_seen / self.num_images
        changes = {
            "batch_size": self.batch_size,
            "learning_rate": learning_rate,
            "crop": "pad" if self.crop_padding else "none",
            "crop_padding": self.crop_padding,
            "label_smoothing": self.label_smoothing,
            "drop_path": self.drop_path,
            "weight_decay": self.weight_decay,
        }
        return Experiment(
            model=f"{family}_micro",
            model_options=shape,
            dataset="cifar10",
            image_size=32,
            train_fraction=self.num_images / NUM_IMAGES,
            recipe=DEIT_LAPTOP.model_copy(update=changes).with_epochs(
                epochs, warmup_epochs=epochs * self.warmup_tenths / 10
            ),
            seed=seed,
        )


@dataclass(frozen=True)
class Trial:
    """One training of a stage."""

    setting: Setting
    family: Family
    learning_rate: float
    seed: int

    @property
    def experiment(self) -> Experiment:
        return self.setting.experiment(self.family, self.learning_rate, self.seed)


def compare(
    *settings: Setting, rates: tuple[float, ...] = (2e-3,), seeds: tuple[int, ...] = (1000,)
) -> Iterator[Trial]:
    """Both families at every rate and seed of each setting."""
    for seed in seeds:
        for setting in settings:
            for rate in rates:
                yield from (Trial(setting, family, rate, seed) for family in ("deit", "convit"))


_BASE = Setting()
_NINE = Setting(dim=54, num_heads=9, depth=5, num_gpsa_layers=3, images_seen=16_000, weight_std=0.08)
_LONGER = replace(_NINE, images_seen=32_000)
_SHORTER = replace(_NINE, images_seen=24_000)
_NARROW = replace(_LONGER, dim=36)
_SHORT = replace(_NINE, images_seen=18_000)
CHOSEN = replace(_SHORT, num_images=500)
"""The setting of ``suite.papers.convit.recipes.micro`` on the smallest share of its images."""
_TENTH = replace(_NARROW, num_images=2_000)
_TABLE_3 = replace(_TENTH, images_seen=24_000)
"""S+ of ``suite.papers.convit.recipes.laptop`` on a tenth of its images."""
_TABLE_1 = replace(_TABLE_3, num_images=20_000)
_RATES = (1e-3, 2e-3, 4e-3)
_EIGHT = tuple(range(1000, 1008))
STAGES: dict[str, list[Trial]] = {
    "four_heads": list(compare(_BASE)),
    "fine_grid": list(compare(Setting(patch_size=2, dim=24, images_seen=16_000, batch_size=32))),
    "weight_std": list(compare(*(replace(_BASE, images_seen=24_000, weight_std=std) for std in (0.02, 0.06, 0.12)))),
    "longer": list(compare(replace(_BASE, weight_std=0.06))),
    "more_images": list(compare(replace(_BASE, num_images=2_500, crop_padding=0, images_seen=24_000, weight_std=0.06))),
    "deep": list(
        compare(
            replace(
                _BASE, depth=8, num_gpsa_layers=6, num_images=2_500, crop_padding=0, images_seen=24_000, weight_std=0.08
            )
        )
    ),
    "strength": [
        Trial(replace(_BASE, images_seen=24_000, weight_std=std, locality_strength=2.0), "convit", 2e-3, 1000)
        for std in (0.06, 0.12)
    ],
    "nine_heads": list(compare(_NINE, seeds=(1000, 1001, 1002))),
    "nine_longer": list(compare(_LONGER, seeds=_EIGHT)),
    "nine_longer_rates": list(compare(_LONGER, rates=(1e-3, 4e-3))),
    "nine_longer_narrow": list(compare(_NARROW, seeds=(1000, 1001, 1002))),
    "narrow_rates": list(compare(_NARROW, rates=(1e-3, 4e-3))),
    "narrow_many": list(compare(replace(_NARROW, num_images=20_000), seeds=(1000, 1001))),
    "narrow_fewer": list(compare(replace(_NARROW, num_images=500), seeds=(1000, 1001))),
    "narrow_shorter": list(compare(replace(_NARROW, images_seen=20_000), seeds=(1000, 1001))),
    "nine_longer_many": list(compare(replace(_LONGER, num_images=20_000), seeds=_EIGHT)),
    "nine_shorter": list(compare(_SHORTER, rates=_RATES)),
    "nine_longer_500": list(compare(replace(_LONGER, num_images=500), seeds=_EIGHT[:6])),
    "nine_longer_250": list(compare(replace(_LONGER, num_images=250), seeds=_EIGHT[:2])),
    "nine_short": list(compare(_SHORT, seeds=_EIGHT[:4])),
    "nine_short_rates": list(compare(_SHORT, rates=(1e-3, 4e-3), seeds=_EIGHT[:2])),
    "nine_short_warmup": list(
        compare(*(replace(_SHORT, warmup_tenths=tenths) for tenths in (0.5, 2.0)), seeds=_EIGHT[:2])
    ),
    "nine_short_many": list(compare(replace(_SHORT, num_images=20_000), seeds=_EIGHT[:4])),
    "nine_short_250": list(compare(replace(_SHORT, num_images=250), seeds=_EIGHT[:4])),
    "nine_short_500": list(compare(CHOSEN, seeds=_EIGHT)),
    "nine_short_500_rates": list(compare(CHOSEN, rates=(1e-3, 4e-3), seeds=_EIGHT[:2])),
    "tenth_12000": list(compare(replace(_TENTH, images_seen=12_000), seeds=_EIGHT[:4])),
    "tenth_15000": list(compare(replace(_TENTH, images_seen=15_000), seeds=_EIGHT[:4])),
    "table_1_rates": list(compare(_TABLE_1, rates=_RATES, seeds=_EIGHT[:2])),
    "table_3_rates": list(compare(_TABLE_3, rates=_RATES, seeds=_EIGHT[:2])),
}


class HeldOut:
    """The last training images of each class."""

    def __init__(self, images: ImageLoader) -> None:
        split = open_splits(images.info, "memory")["train"]
        index = np.sort(np.concatenate([np.flatnonzero(split.labels == c)[-NUM_HELD_OUT:] for c in range(10)]))
        pixels = np.stack([split.whole(int(stored)) for stored in index])
        mean, std = (torch.tensor(values).reshape(3, 1, 1) for values in statistics(images.info, "own"))
        self._images = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255 - mean) / std
        self._labels = torch.from_numpy(split.labels[index])

    @torch.no_grad()
    def score(self, model: nn.Module) -> float:
        """Accuracy in percent; the model goes on training."""
        model.eval()
        logits = torch.cat([model(batch) for batch in self._images.split(250)])
        model.train()
        return 100 * (logits.argmax(1) == self._labels).double().mean().item()


def train(experiment: Experiment) -> dict[str, Any]:
    """Train as ``suite.training.loop`` does, step by step; returns what a line of results says."""
    images = ImageLoader(experiment)
    held_out = HeldOut(images)
    recipe = experiment.recipe
    torch.manual_seed(experiment.seed)
    options: dict[str, Any] = dict(experiment.model_options)
    if recipe.drop_path:
        options["drop_path"] = recipe.drop_path
    model = build_model(experiment.model, num_classes=10, image_size=experiment.image_size, **options)
    optimizer = build_optimizer(model, recipe)
    learning_rate = LearningRate(optimizer, recipe, images.num_steps)
    score_at = {images.num_steps * k // NUM_SCORES for k in range(1, NUM_SCORES + 1)}
    scores, losses = [], []
    model.train()
    cpu_s = 0.0
    for step, batch in enumerate(images.train_batches(0, images.num_steps)):
        started = time.process_time()
        learning_rate.set(step)
        seeds = np.random.SeedSequence([experiment.seed, step, 0])
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0] >> 1))
        loss = F.cross_entropy(model(batch.images), batch.labels, label_smoothing=recipe.label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        cpu_s += time.process_time() - started
        if step + 1 in score_at:
            scores.append(round(held_out.score(model), 2))
    return {"held_out_top1": scores, "train_loss": round(_end(losses), 3), "train_cpu_s": round(cpu_s, 1)}


def _end(losses: list[Tensor]) -> float:
    """Mean loss of the last twentieth of the steps."""
    return float(torch.stack(losses[-max(1, len(losses) // 20) :]).mean())


def run(stage: str, results: Path) -> None:
    """Train what the results file lacks, one line each."""
    for trial in STAGES[stage]:
        done = (
            {json.loads(line)["id"] for line in results.read_text(encoding="utf-8").splitlines()}
            if results.exists()
            else set()
        )
        key = trial.experiment.id
        if key in done:
            continue
        default = asdict(Setting())
        setting = {key: value for key, value in asdict(trial.setting).items() if value != default[key]}
        line: dict[str, Any] = {"stage": stage, "id": key, "family": trial.family, "setting": setting}
        line |= {"learning_rate": trial.learning_rate, "seed": trial.seed, **train(trial.experiment)}
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--stage", nargs="+", choices=STAGES, required=True)
    parser.add_argument("--results", type=Path, default=Path("benchmarks/laptop_profile.jsonl"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    for stage in arguments.stage:
        run(stage, arguments.results)


if __name__ == "__main__":
    main()
