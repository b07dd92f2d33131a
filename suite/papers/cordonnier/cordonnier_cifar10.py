"""Cordonnier et al., both tables and the slides' Fig. 2 (arXiv:1911.03584): is attention by position as good as a CNN?

Networks of six attention layers, whose nine heads look by position alone, train on CIFAR-10 beside ResNet18; of the
generalized quadratic network the degenerate heads are then removed, and the rest is trained on. One leaderboard holds
the main text's table and the appendix's, which repeats it. Profile ``gpu`` is the paper's protocol: one GPU carries it.

Where text and code leave room: heads are pruned by the paper's limits, a condition number of 1e5 and an eigenvalue of
1e-5. Centers start from the paper's N(0, 2 I), spreads with its variance of 0.01. Each layer has a learned encoding of
its own, as only that fits the published size. Float32 throughout. The last weights are evaluated. What the authors'
code says of learning rates and normalization stands in ``recipes`` and ``shared.resnet``.
"""

from suite.papers.cordonnier import PAPER, recipes
from suite.spec.experiment import Experiment
from suite.spec.figures import CurveFigure
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

_COLUMNS = {"accuracy": "top1_fraction", "params_m": "num_parameters_millions", "flops_b": "linear_gflops"}
_OF_TABLE = ("ResNet18", "SA quadratic", "SA learned", "SA quadratic generalized")
_CURVES = {
    **{name: Place(row=(name,), column="accuracy") for name in _OF_TABLE},
    "SA quadratic generalized, pruned": Place(row=("SA quadratic generalized pruned",), column="accuracy"),
    "SA learned with content": Place(row=("SA learned with content",), column="accuracy", table="slides_figure2"),
}


def _rows(scale: recipes.Scale) -> dict[str, Experiment]:
    """The appendix's table, in its order."""
    return {
        "ResNet18": scale.resnet(),
        "SA quadratic": scale.network("sa_quadratic"),
        "SA quadratic generalized": scale.network("sa_quadratic_generalized"),
        "SA quadratic generalized pruned": scale.pruned(),
        "SA learned": scale.network("sa_learned"),
    }


def _pruned_heads(scale: recipes.Scale) -> Entry:
    """Of as many layers as the network has."""
    depth = int(scale.attention.get("depth", 6))
    columns = {f"layer_{number}": f"num_pruned_heads_layer_{number}" for number in range(1, depth + 1)}
    row = ("SA quadratic generalized pruned",)
    return Entry(row=row, columns=columns, experiment=scale.pruned(), table="cordonnier_pruned_heads")


def _entries(scale: recipes.Scale) -> list[Entry]:
    in_table = [Entry(row=(row,), columns=_COLUMNS, experiment=e) for row, e in _rows(scale).items()]
    content = scale.network("sa_learned_content")
    only_drawn = Entry(row=("SA learned with content",), columns=_COLUMNS, experiment=content, table="slides_figure2")
    return [*in_table, only_drawn, _pruned_heads(scale)]


SUITE = Suite(
    name="cordonnier_cifar10",
    paper=PAPER.title,
    item="Tables of Section 4 and Appendix A.1, Fig. 2 of the slides",
    question="Does attention that looks by position alone do as well as a small ResNet?",
    tables=(
        Table(
            name="cordonnier_table",
            item="Tables of Section 4.2 and Appendix A.1",
            row_keys=("model",),
            ranked="in_columns",
        ),
        Table(
            name="slides_figure2",
            item="Fig. 2 of the slides, the model that no table has",
            row_keys=("model",),
            columns=tuple(_COLUMNS),
            decimals=3,
            ranked="none",
        ),
        Table(
            name="cordonnier_pruned_heads",
            item="Appendix A.1, heads pruned in each layer",
            row_keys=("model",),
            ranked="none",
        ),
    ),
    profiles={
        "laptop": Profile.laptop(_entries(recipes.LAPTOP), recipes.LAPTOP_NOTE, num_evaluations=5),
        "desktop": Profile.desktop(_entries(recipes.DESKTOP), recipes.DESKTOP_NOTE),
        "gpu": Profile.gpu(_entries(recipes.PAPER_SCALE), "", num_evaluations=100),
        "paper": Profile.paper(_entries(recipes.PAPER_SCALE)),
    },
    headline=Headline(
        text="Quadratic attention over ResNet18",
        better=Place(row=("SA quadratic",), column="accuracy"),
        baseline=Place(row=("ResNet18",), column="accuracy"),
    ),
    figures=(
        CurveFigure(
            name="test_accuracy",
            item="Fig. 2 of the slides, with Appendix A.1's networks",
            y_label="Test accuracy (%)",
            panels={"CIFAR-10": _CURVES},
            after_parents=True,
        ),
    ),
    footnotes=(
        "Images are normalized as in the authors' code, by deviations of 0.20 where CIFAR-10's own are 0.25.",
        "Pruned: beyond a condition number of 1e5 by the paper (laptop: 2), of 1000 by its code.",
        "Heads pruned: a profile of fewer layers stands beside the paper's first ones; laptop has three of six.",
        "Pruned: its curve begins at the last epoch of the network that it was cut from, evaluated before any step.",
        'Pruned: the text says that it saves "a fourth" of parameters and FLOPs, by its table it is a fifth.',
        "flops_b: two per multiplication of linear layers, as the paper counts; attention times values is left out.",
        "SA learned: embeddings of the text's 200 per axis make 12.2 million parameters, of the code's 400 the 12.3.",
        "The paper's offset is query - key in Eq. 8 and key - query in Section 4.3; here it is the latter.",
    ),
)
