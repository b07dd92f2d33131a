"""ConViT, Table 2 and Fig. 2a (arXiv:2103.10697): does a convolutional prior help more when data are scarce?

DeiT and ConViT of the same size train on the first 5, 10, 30, 50 and 100 % of each class, for as many epochs more
as there are fewer images, so that every run sees the same number of images.

Where text and code leave room: warm-up stays at 5 epochs for every fraction, as in the authors' code (the laptop
profile, of little over an epoch, warms up over a tenth of its steps); the last weights are evaluated.
"""

from suite.recipes import DEIT, DEIT_CIFAR, DEIT_LAPTOP
from suite.spec import Entry, Experiment, LineFigure, Profile, Recipe, RelativeGain, Suite

FRACTIONS = {"5": 0.05, "10": 0.1, "30": 0.3, "50": 0.5, "100": 1.0}
LAPTOP_EPOCHS = 1.2


def _laptop_recipe(fraction: float) -> Recipe:
    epochs = LAPTOP_EPOCHS / fraction
    return DEIT_LAPTOP.with_epochs(epochs, warmup_epochs=epochs / 10)


def _entries(experiments: dict[tuple[str, str], Experiment]) -> tuple[Entry, ...]:
    """Table 2's cells from the experiment of each (family, row)."""
    return tuple(
        Entry(row=(row,), columns={f"{family}_top1": "top1_percent", f"{family}_top5": "top5_percent"}, experiment=e)
        for (family, row), e in experiments.items()
    )


_CELLS = [(family, row, fraction) for row, fraction in FRACTIONS.items() for family in ("deit", "convit")]

_LAPTOP = {
    (family, row): Experiment(
        model=f"{family}_micro", dataset="cifar10", image_size=32, train_fraction=f, recipe=_laptop_recipe(f)
    )
    for family, row, f in _CELLS
}
_GPU = {
    (family, row): Experiment(
        model=f"{family}_ti",
        model_options={"patch_size": 4},
        dataset="cifar10",
        image_size=32,
        train_fraction=f,
        recipe=DEIT_CIFAR.with_epochs(DEIT_CIFAR.epochs / f),
    )
    for family, row, f in _CELLS
}
_PAPER = {
    (family, row): Experiment(
        model=f"{family}_s",
        dataset="imagenet",
        image_size=224,
        train_fraction=f,
        recipe=DEIT.with_epochs(DEIT.epochs / f),
    )
    for family, row, f in _CELLS
}

SUITE = Suite(
    name="sample_efficiency",
    paper="ConViT (arXiv:2103.10697)",
    item="Table 2, Fig. 2a",
    question="How much does a convolutional prior help when labels are scarce?",
    table="convit_table2",
    row_keys=("train_size_percent",),
    profiles={
        "laptop": Profile(
            entries=_entries(_LAPTOP),
            scale_note="CIFAR-10 at 32 pixels, three-layer models, 1.2 epochs of the full set",
            device="cpu",
            sustained_flops=15e9,
            checkpoint_every_s=5,
        ),
        "gpu": Profile(
            entries=_entries(_GPU),
            scale_note="CIFAR-10 at 32 pixels, the paper's Ti models with 4x4 patches, 300 epochs of the full set",
            device="gpu",
            sustained_flops=40e12,
            num_evaluations=30,
        ),
        "paper": Profile(
            entries=_entries(_PAPER), scale_note="", device="gpu", sustained_flops=100e12, num_evaluations=100
        ),
    },
    derived=(
        RelativeGain(column="top1_gap_percent", better="convit_top1", baseline="deit_top1"),
        RelativeGain(column="top5_gap_percent", better="convit_top5", baseline="deit_top5"),
    ),
    figure=LineFigure(
        x_key="train_size_percent",
        x_label="Images in training set (%)",
        y_label="Top-1 accuracy (%)",
        lines={"ConViT": "convit_top1", "DeiT": "deit_top1"},
        gain_column="top1_gap_percent",
        gain_label="Relative gain of ConViT (%)",
        log_x=True,
    ),
    footnotes=(
        "10 %: the paper's text says 46.5 and 59.5, its table 48.0 and 59.6.",
        "100 %: the paper's Table 1 says 79.8 and 81.3, its Table 2 79.9 and 81.4.",
    ),
)
