"""Structured initialization, Table 1 (arXiv:2404.01139): which position encoding and which pooling suit a small ViT?

ViT-T on CIFAR-10 with a learned or a fixed sinusoidal position encoding, and with a class token or the mean over all
patches. All later tables use the best of the four.

Where text and code leave room: Trunc Normal is the default of timm, with which the authors train; so the best cell is
the same experiment as Table 2's Trunc Normal on CIFAR-10. A class token has no position of its own, as in the authors'
command.
"""

from collections.abc import Callable

from suite.papers.structured_init import PAPER, recipes
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Place
from suite.spec.suite import Headline, Suite, Table

POSITIONS = {"Learnable PE": "learned", "Sinusoidal PE": "sinusoidal"}
POOLINGS = {"classification_token": "class_token", "average_pooling": "average"}


def _entries(make: Callable[..., Experiment]) -> list[Entry]:
    return [
        recipes.entry((row,), column, make("Trunc Normal", position=position, pooling=pooling))
        for row, position in POSITIONS.items()
        for column, pooling in POOLINGS.items()
    ]


SUITE = Suite(
    name="init_position",
    paper=PAPER.title,
    item="Table 1",
    question="Do sinusoidal positions and average pooling suit a small ViT best?",
    tables=(Table(name="structured_init_table1", item="Table 1", row_keys=("position_encoding",), ranked="in_table"),),
    profiles=recipes.profiles(_entries(recipes.laptop_vit), _entries(recipes.vit)),
    headline=Headline(
        text="Sinusoidal encoding and average pooling over learned encoding and class token",
        better=Place(row=("Sinusoidal PE",), column="average_pooling"),
        baseline=Place(row=("Learnable PE",), column="classification_token"),
    ),
    footnotes=(
        recipes.RECIPE_NOTE,
        "The paper does not say which initialization this table uses; here it is Trunc Normal.",
        "Sinusoidal PE, average pooling: 85.30; for it Table 2 has 88.63 (Trunc Normal) and 86.36 (Kaiming Uniform).",
    ),
)
