"""ConViT, Fig. 9 (arXiv:2103.10697): what becomes of the convolutional start without gates?

ConViT-B with vanilla positional self-attention, which adds content and position before one softmax, beside DeiT-B,
on ImageNet for 300 epochs. It should lead early and fall behind late, staying local.

Where text and code leave room: the authors' code has no vanilla PSA. It starts convolutional by Eq. 5 with strength 1.
"""

from suite.papers.convit import PAPER, recipes
from suite.papers.shared.deit_recipes import BEST_NOTE, DEIT_NOTES
from suite.spec.figures import CurveFigure
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

_COLUMNS = {"top1": "top1_percent", "best_top1": "best_top1_percent", "mean_nonlocality": "mean_nonlocality"}
_PSA = "ConViT-B, vanilla PSA"
_DEIT = "DeiT-B"


def _entries(scale: recipes.Scale) -> list[Entry]:
    experiments = {_PSA: scale("convit", "B", attention="summed"), _DEIT: scale("deit", "B")}
    return [Entry(row=(model,), columns=_COLUMNS, experiment=e) for model, e in experiments.items()]


SUITE = Suite(
    name="convit_psa",
    paper=PAPER.title,
    item="Fig. 9",
    question="Does a convolutional start without gates lead early, and fall behind later?",
    tables=(
        Table(name="convit_figure9", item="Fig. 9", row_keys=("model",), columns=tuple(_COLUMNS), ranked="in_columns"),
    ),
    profiles={
        "laptop": Profile.laptop(_entries(recipes.laptop), recipes.LAPTOP_NOTE),
        "gpu": Profile.gpu(
            _entries(recipes.gpu), "CIFAR-10 at 32 pixels, the paper's B models with 4x4 patches, 300 epochs"
        ),
        "paper": Profile.paper(_entries(recipes.paper)),
    },
    headline=Headline(
        text="ConViT-B with vanilla PSA over DeiT-B",
        better=Place(row=(_PSA,), column="top1"),
        baseline=Place(row=(_DEIT,), column="top1"),
    ),
    figures=(
        CurveFigure(
            name="figure9",
            item="Fig. 9",
            panels={
                "ConViT-B without gates": {
                    "ConViT - vanilla PSA": Place(row=(_PSA,), column="top1"),
                    "DeiT": Place(row=(_DEIT,), column="top1"),
                }
            },
        ),
    ),
    footnotes=(
        "Vanilla PSA: queries and keys start random; at zero, as in Eq. 5, both would have no gradient for ever.",
        "The paper draws the curves and prints no accuracy.",
        BEST_NOTE,
        *DEIT_NOTES,
    ),
)
