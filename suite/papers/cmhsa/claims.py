"""Claims of Li et al., "Can Vision Transformers Perform Convolution?".

Left out are the theorems, which tests prove, the accuracies of models that were pre-trained on 300 million images, and
training times, which are of the authors' GPUs.
"""

from __future__ import annotations

from suite.papers.cmhsa import PAPER
from suite.spec.claims import Claim, Effect, NotJudged, PaperClaims, number
from suite.spec.composed_effects import logged

_ROWS = {
    "ViT-base": ("12", "12", "768", "3072"),
    "DeiT-small": ("12", "6", "384", "1536"),
    "DeiT-base": ("12", "12", "768", "3072"),
    "CMHSA-3 (1st phase)": ("6", "", "768", "3072"),
    "CMHSA-5 (1st phase)": ("6", "", "768", "3072"),
    "CMHSA (2nd phase)": ("6", "9", "768", "3072"),
    "CMHSA-3 (ours)": ("6", "9", "768", "3072"),
    "CMHSA-5 (ours)": ("6", "9", "768", "3072"),
}
"""Table 1's models, and the sizes with which it names their rows."""

_BOTH = ("CMHSA-3 (ours)", "CMHSA-5 (ours)")
_EPOCHS = 200  # of a phase


def _top1(model: str) -> Effect:
    return number("cmhsa_cifar100", (model, *_ROWS[model]), "top1")


def _loss(start: str, warmup: str, epoch: int) -> Effect:
    """The validation loss on the way, by Fig. 2's axis."""
    row, table = (start, warmup), "warmup_and_initialization"
    return logged("cmhsa_warmup", row, "top1", "test_loss", at=epoch / _EPOCHS, table=table)


_TABLE_1 = (
    Claim(
        name="deit_over_vit_on_cifar100",
        section="Sec. 4.2, Table 1",
        statement="DeiT's augmentation and regularization clearly improve on plain ViT.",
        effects=tuple(_top1(model) - _top1("ViT-base") for model in ("DeiT-small", "DeiT-base")),
    ),
    Claim(
        name="two_phases_over_deit",
        section="Sec. 4.2, Table 1",
        statement="Trained in two phases, CMHSA does far better than either DeiT; with 5x5 kernels by nearly 9 points.",
        effects=tuple(_top1(ours) - _top1(model) for ours in _BOTH for model in ("DeiT-small", "DeiT-base")),
    ),
    Claim(
        name="attention_phase_adds_to_convolution",
        section="Sec. 4.2, Table 1",
        statement="The second phase adds to the first: as many epochs of convolutions alone end lower, 5x5 by 2.62 "
        "points.",
        effects=tuple(_top1(f"CMHSA-{size} (ours)") - _top1(f"CMHSA-{size} (1st phase)") for size in (3, 5)),
    ),
    Claim(
        name="convolution_phase_is_crucial",
        section="Sec. 4.2, Table 1",
        statement="Without the first phase, from random weights, attention ends much lower.",
        effects=tuple(_top1(ours) - _top1("CMHSA (2nd phase)") for ours in _BOTH),
    ),
)

_WARMUP = (
    Claim(
        name="no_warmup_after_convolution",
        section="Sec. 4.3",
        statement="Attention that starts from a trained convolution needs no warm-up: without it ends at 78.90 %, "
        "with at 78.74 %.",
        effects=(
            number("cmhsa_warmup", ("CMHSA-5 (ours)", "without"), "top1")
            - number("cmhsa_warmup", ("CMHSA-5 (ours)", "with"), "top1"),
        ),
        relation="equal",
    ),
    Claim(
        name="same_loss_without_warmup_after_convolution",
        section="Sec. 4.3, Fig. 2",
        statement="From a trained convolution the validation losses with and without warm-up are alike on the way.",
        effects=tuple(_loss("convolutional", "without", at) - _loss("convolutional", "with", at) for at in (50, 100)),
        relation="equal",
        margin=0.1,  # the paper draws the curves: "similar" is taken for a tenth of a nat
        unit="nats",
    ),
    Claim(
        name="random_attention_needs_warmup",
        section="Sec. 4.3, Fig. 2",
        statement="From random weights training is slow without warm-up: after 20 epochs its validation loss is "
        "higher.",
        effects=(_loss("random", "without", 20) - _loss("random", "with", 20),),
        unit="nats",
    ),
    Claim(
        name="random_attention_loses_sixty_epochs",
        section="Sec. 4.3, Fig. 2",
        statement="From random weights it takes almost 80 epochs without warm-up to the loss of epoch 20 with it: "
        "after 60 it is not reached.",
        effects=(_loss("random", "without", 60) - _loss("random", "with", 20),),
        unit="nats",
    ),
)

_PROVEN = "A theorem: tests/models/test_theorems.py checks it."

_NOT_JUDGED = (
    NotJudged(
        section="Sec. 1",
        statement="Pre-trained on JFT-300M, ViT-L/16 reaches 85.6 % on ImageNet, and ResNet-152x2 83.3 %.",
        reason="Speaks of another paper's models, and needs JFT-300M.",
    ),
    NotJudged(
        section="Sec. 1, 5.2",
        statement="On small sets, and on ImageNet alone, ViT does worse than a CNN.",
        reason="Speaks of other papers' numbers; no CNN stands in this paper's table.",
    ),
    NotJudged(
        section="Sec. 3, Theorem 1, Corollaries 3 and 4",
        statement="Nine heads on patches, or as many as the kernel has entries on pixels, express any convolution.",
        reason=_PROVEN,
    ),
    NotJudged(
        section="Sec. 3.2, Theorems 5 and 6",
        statement="Fewer do not: on pixels a 5x5 kernel takes 25 heads, on patches 9.",
        reason=_PROVEN,
    ),
    NotJudged(
        section="App. A.1",
        statement="A bias of 40 attends to one offset up to machine precision.",
        reason=_PROVEN,
    ),
    NotJudged(
        section="Sec. 4.2, Table 1",
        statement="Accuracies from 60.90 to 78.74 %.",
        reason="By themselves: the board says of each cell whether the paper's number is reached.",
    ),
    NotJudged(
        section="Sec. 4.2, Table 1",
        statement="The convolution phase is cheap: 400 epochs in two phases take less time than DeiT-base's, and no "
        "other model of comparable time is as good.",
        reason="About speed of their GPUs; the board has the same ratio on the machine at hand.",
    ),
    NotJudged(
        section="Sec. 4.3",
        statement="Without warm-up there is less to tune.",
        reason="Nothing counts the tuning.",
    ),
)

CLAIMS = PaperClaims(
    name=PAPER.name,
    title=PAPER.title,
    claims=(*_TABLE_1, *_WARMUP),
    not_judged=_NOT_JUDGED,
)
