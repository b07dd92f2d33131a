"""Li et al., "Can Vision Transformers Perform Convolution?", Fig. 2 and Section 4.3: who needs a warm-up?

The self-attention phase of CMHSA-5 trains with and without its five epochs of warm-up, from the convolution phase and
from a random initialization. The runs with warm-up from the convolution phase are those of ``cmhsa_cifar100``.

Where the paper leaves room: it keeps "all the other hyperparameters", whose learning rate it does not state; here each
of the four searches the paper's grid. All are as long as a phase. Its "validation loss" is ours on the test set.
"""

from suite.papers.cmhsa import PAPER, recipes
from suite.papers.shared.deit_recipes import DEIT_NOTES
from suite.spec.figures import CurveFigure
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

CMHSA_5 = "CMHSA-5 (ours)"
FIGURE = "warmup_and_initialization"
_INITIALIZATIONS = ("convolutional", "random")
_WARMUPS = ("with", "without")


def _starts(scale: recipes.Scale) -> dict[tuple[str, str], recipes.Candidates]:
    """The four curves by initialization and warm-up."""
    two_phases = {w: scale.two_phases(kernel_size=5, with_warmup=w == "with") for w in _WARMUPS}
    random = {w: scale.random_attention(with_warmup=w == "with") for w in _WARMUPS}
    starts = zip(_INITIALIZATIONS, (two_phases, random), strict=True)
    return {(start, warmup): runs[warmup] for start, runs in starts for warmup in _WARMUPS}


def _entries(scale: recipes.Scale) -> list[Entry]:
    starts = _starts(scale)
    in_text = [_entry((CMHSA_5, warmup), starts["convolutional", warmup]) for warmup in _WARMUPS]
    return [*in_text, *(_entry(row, candidates, FIGURE) for row, candidates in starts.items())]


def _entry(row: tuple[str, str], candidates: recipes.Candidates, table: str = "") -> Entry:
    columns = {"top1": "top1_percent", **({"test_loss": "test_loss"} if table else {})}
    return Entry(row=row, columns=columns, experiment=candidates[0], alternatives=candidates[1:], table=table)


SUITE = Suite(
    name="cmhsa_warmup",
    paper=PAPER.title,
    item="Fig. 2, Section 4.3",
    question="Can attention that starts from a trained convolution do without a warm-up?",
    tables=(
        Table(name="cmhsa_warmup_text", item="Section 4.3", row_keys=("model", "warmup"), ranked="in_columns"),
        Table(
            name=FIGURE,
            item="Fig. 2, after the last epoch",
            row_keys=("initialization", "warmup"),
            columns=("top1", "test_loss"),
            decimals=2,
            ranked="none",
        ),
    ),
    profiles={
        "laptop": Profile.laptop(
            [entry.model_copy(num_tries=recipes.NUM_TRIES) for entry in _entries(recipes.LAPTOP)],
            "CIFAR-10 at 16 pixels in patches of 4, three layers of width 48, phases of "
            "0.4 epochs, a tenth of each for the warm-up",
            num_evaluations=5,
        ),
        "gpu": Profile.gpu(_entries(recipes.GPU), recipes.GPU_NOTE, num_evaluations=20),
        "paper": Profile.paper(_entries(recipes.PAPER_SCALE)),
    },
    headline=Headline(
        text="CMHSA-5 without warm-up over with",
        better=Place(row=(CMHSA_5, "without"), column="top1"),
        baseline=Place(row=(CMHSA_5, "with"), column="top1"),
    ),
    figures=(
        CurveFigure(
            name="figure2",
            item="Fig. 2",
            metric="test_loss",
            y_label="Validation loss (nats)",
            panels={
                f"{start.capitalize()} initialization": {
                    f"{warmup} warm-up": Place(row=(start, warmup), column="top1", table=FIGURE) for warmup in _WARMUPS
                }
                for start in _INITIALIZATIONS
            },
        ),
    ),
    footnotes=(
        "Each place and curve has the best rate of its search, in gpu and paper by test accuracy; the paper keeps one.",
        "Images are normalized by ImageNet's mean and deviation, as in DeiT's code; in profile laptop by CIFAR-10's.",
        "The position bias of the transfer starts with M = 10; the paper's M = 40 would freeze attention.",
        "The paper's figure shows the first 100 epochs, ours all 200.",
        *DEIT_NOTES,
    ),
)
