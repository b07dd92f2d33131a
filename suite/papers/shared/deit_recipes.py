"""Training recipes of the papers as data, and what smaller scales leave out of them."""

from typing import Any

from suite.spec.recipe import Recipe

DEIT = Recipe(
    name="deit",
    epochs=300,
    batch_size=1024,
    optimizer="adamw",
    learning_rate=1e-3,  # 5e-4 * batch / 512
    weight_decay=0.05,
    schedule="cosine",
    schedule_unit="epoch",
    warmup_epochs=5,
    warmup_learning_rate=1e-6,
    schedule_lag_epochs=1,
    min_learning_rate=1e-5,
    label_smoothing=0.1,
    drop_path=0.1,
    crop="random_resized",
    flip_probability=0.5,
    rand_augment="rand-m9-mstd0.5-inc1",
    color_jitter=0.4,
    random_erasing=0.25,
    mixup=0.8,
    cutmix=1.0,
    mix_switch_probability=0.5,
    mix_group=256,  # 4 processes
    repeated_augmentation=3,
    precision="bf16",
)
"""DeiT's recipe (arXiv:2012.12877, Table 9), which ConViT takes over unchanged (arXiv:2103.10697, Sec. 3).

What only DeiT's code says: the schedule is stepped after each epoch with that epoch's number, so that the rate lags one
epoch; each process draws mixup and cutmix for its own images, and its README trains on four processes of 256.

Differs: mixed precision is bf16 autocast, where the authors' code used fp16 with loss scaling. An image is mixed with
the one half a batch away; timm pairs the first of a process with its last.
"""

DEIT_NOTES = (
    "Recipe, gpu and paper: bf16 autocast, where the authors' code used fp16 with loss scaling.",
    "Recipe, paper: mixup and cutmix pair images half a batch apart, timm's code the first of a process with its last.",
    "Recipe, paper: training uses every image; the authors' code drops the last, partial batch of each epoch.",
)
"""Footnotes of every board that trains by ``DEIT``: where it differs from the authors' code."""

BEST_NOTE = "Best accuracy: the maximum over a run's evaluations; in gpu and paper these follow every epoch."

WITHOUT_AUGMENTATION: dict[str, Any] = {
    "rand_augment": "",
    "color_jitter": 0.0,
    "random_erasing": 0.0,
    "mixup": 0.0,
    "cutmix": 0.0,
    "mix_switch_probability": 0.0,
    "mix_group": 0,
    "repeated_augmentation": 1,
}

DEIT_CIFAR = DEIT.model_copy(
    name="deit_cifar",
    crop="pad",
    crop_padding=4,
    schedule_unit="step",
    schedule_lag_epochs=0,
    **WITHOUT_AUGMENTATION,
)
"""DeiT's recipe for CIFAR at 32 pixels.

Left out: RandAugment, colour jitter, random erasing, mixup, cutmix, repeated augmentation.
Changed: a padded crop for the random resized one; the learning rate moves every step, not every epoch, and without
DeiT's lag.
"""

DEIT_LAPTOP = DEIT_CIFAR.model_copy(
    name="deit_laptop",
    batch_size=64,
    learning_rate=6e-3,
    crop="none",
    crop_padding=0,
    label_smoothing=0.0,
    drop_path=0.0,
    precision="fp32",
)
"""``DEIT_CIFAR`` for a run of under a minute on one core.

Left out beside that recipe's: the crop, label smoothing and stochastic depth, which slow the first steps.
Changed: batch 64 at learning rate 6e-3; fp32, the faster one for small matrices on a CPU.
"""

DEIT_SCARCE = DEIT_LAPTOP.model_copy(name="deit_scarce", learning_rate=2e-3, crop="pad", crop_padding=4)
"""``DEIT_LAPTOP`` for many epochs of few images: ``DEIT_CIFAR``'s padded crop, and a third of the learning rate."""

DEIT_SMALL_IMAGES = DEIT.model_copy(
    name="deit_small_images",
    batch_size=64,
    mix_group=16,
    learning_rate=DEIT_SCARCE.learning_rate,
    drop_path=0.0,
    schedule_unit="step",
    schedule_lag_epochs=0,
    precision="fp32",
)
"""DeiT's whole augmentation on CIFAR's images of 32 pixels, for a CPU.

Left out: stochastic depth, which served DeiT and cost ConViT (``benchmarks/searches/drop_path.csv``). Changed: batch
64, in four groups of mixup as the paper's; ``DEIT_SCARCE``'s learning rate; the rate moves every step, without DeiT's
lag; fp32.
"""
