"""Claims of Li et al., "Can Vision Transformers Perform Convolution?".

Left out are the theorems, which tests prove, the accuracies of models that were pre-trained on 300 million images, and
training times, which are of the authors' GPUs.
"""

from functools import partial

from suite.papers.cmhsa import PAPER, recipes
from suite.papers.cmhsa.cmhsa_cifar100 import rows
from suite.spec.claims import Effect, claim, number, paper_claims

_ROWS = {row[0]: row for row in rows(recipes.PAPER_SCALE)}
"""Table 1's rows by their models."""

_BOTH = ("CMHSA-3 (ours)", "CMHSA-5 (ours)")
_EPOCHS = 200  # of a phase


def _top1(model: str) -> Effect:
    return number("cmhsa_cifar100", _ROWS[model], "top1")


def _loss(start: str, warmup: str, epoch: int) -> Effect:
    """The validation loss on the way, by Fig. 2's axis."""
    row, table = (start, warmup), "warmup_and_initialization"
    return number("cmhsa_warmup", row, "top1", table, metric="test_loss", at=epoch / _EPOCHS)


_claim_of_table_1 = partial(claim, "Sec. 4.2, Table 1")

_TABLE_1 = {
    "deit_over_vit_on_cifar100": _claim_of_table_1(
        "DeiT's augmentation and regularization clearly improve on plain ViT.",
        *(_top1(model) - _top1("ViT-base") for model in ("DeiT-small", "DeiT-base")),
        not_testable={
            "laptop": "The treatment is absent: of DeiT's augmentation and regularization the laptop has "
            "label smoothing and random erasing alone."
        },
    ),
    "two_phases_of_5x5_over_deit_base": claim(
        "Abstract, Sec. 4.2, Table 1",
        "CMHSA-5, trained in two phases, is better than DeiT-base.",
        _top1("CMHSA-5 (ours)") - _top1("DeiT-base"),
        primary="2026-11-25",
    ),
    "two_phases_over_deit": _claim_of_table_1(
        "Trained in two phases, CMHSA does far better than either DeiT; with 5x5 kernels by nearly 9 points.",
        *(_top1(ours) - _top1(model) for ours in _BOTH for model in ("DeiT-small", "DeiT-base")),
    ),
    "attention_phase_adds_to_convolution": _claim_of_table_1(
        "The second phase adds to the first: as many epochs of convolutions alone end lower, 5x5 by 2.62 points.",
        *(_top1(f"CMHSA-{size} (ours)") - _top1(f"CMHSA-{size} (1st phase)") for size in (3, 5)),
    ),
    "convolution_phase_is_crucial": _claim_of_table_1(
        "Without the first phase, from random weights, attention ends much lower.",
        *(_top1(ours) - _top1("CMHSA (2nd phase)") for ours in _BOTH),
    ),
}

_RANDOM_NEEDS_IT = _loss("random", "without", 20) - _loss("random", "with", 20)
"""The positive control of attention that needs no warm-up: from random weights it needs one."""

_claim_of_figure_2 = partial(claim, "Sec. 4.3, Fig. 2", unit="nats")

_WARMUP = {
    "no_warmup_after_convolution": claim(
        "Sec. 4.3",
        "Attention that starts from a trained convolution needs no warm-up: without it ends at 78.90 %, "
        "with at 78.74 %.",
        number("cmhsa_warmup", ("CMHSA-5 (ours)", "without"), "top1")
        - number("cmhsa_warmup", ("CMHSA-5 (ours)", "with"), "top1"),
        control=_RANDOM_NEEDS_IT,
        relation="equal",
    ),
    "same_loss_without_warmup_after_convolution": _claim_of_figure_2(
        "From a trained convolution the validation losses with and without warm-up are alike on the way.",
        *(_loss("convolutional", "without", at) - _loss("convolutional", "with", at) for at in (50, 100)),
        control=_RANDOM_NEEDS_IT,
        relation="equal",
        margin=0.1,  # the paper draws the curves: "similar" is taken for a tenth of a nat
    ),
    "random_attention_needs_warmup": _claim_of_figure_2(
        "From random weights training is slow without warm-up: after 20 epochs its validation loss is higher.",
        _RANDOM_NEEDS_IT,
    ),
    "random_attention_loses_sixty_epochs": _claim_of_figure_2(
        "From random weights it takes almost 80 epochs without warm-up to the loss of epoch 20 with it: "
        "after 60 it is not reached.",
        _loss("random", "without", 60) - _loss("random", "with", 20),
    ),
}

CLAIMS = paper_claims(PAPER, _TABLE_1, _WARMUP)
