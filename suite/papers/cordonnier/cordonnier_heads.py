"""Cordonnier et al., Figs 3 to 6, 10, 12 and 14 (arXiv:1911.03584): where do heads learn to look?

Networks of six attention layers train on CIFAR-10, and their heads' attention is drawn: the centers and widths of
quadratic encodings with 9 and 16 heads, isotropic and of any covariance, before and after training, with the fourth
layer's also half-way (Fig. 3) and the paths of all layers' centers, which are logged after each epoch; the maps around
the central pixel of learned encodings; with content averaged over 100 test images, for other queries too as the slides
ask (with which the profiles shift), and on single ones. The table is ours, as the paper only draws. The networks with
nine heads are those of ``cordonnier_cifar10``, and trained once for both.

Where text and code leave room: the 16 heads are isotropic, as in the authors' code; the encoding with content is that
of their later code, of a query with keys and with offsets. Which figure 10 is of the published paper is not said in the
arXiv text at hand, which numbers them otherwise (16 heads are its Fig. 10): content on single images is taken for it.
"""

from suite.papers.cordonnier import PAPER, recipes
from suite.spec.experiment import Experiment
from suite.spec.figures import CentersFigure, MapsFigure, PathsFigure
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

QUADRATIC, QUADRATIC_16 = "SA quadratic, 9 heads", "SA quadratic, 16 heads"
GENERALIZED, LEARNED, CONTENT = "SA quadratic generalized", "SA learned", "SA learned with content"
_MEASURED = {"mean_nonlocality": "mean_nonlocality", "params_m": "num_parameters_millions"}


def _networks(scale: recipes.Scale) -> dict[str, Experiment]:
    return {
        QUADRATIC: scale.network("sa_quadratic"),
        QUADRATIC_16: scale.network("sa_quadratic", num_heads=16),
        GENERALIZED: scale.network("sa_quadratic_generalized"),
        LEARNED: scale.network("sa_learned"),
        CONTENT: scale.network("sa_learned_content"),
    }


def _entries(scale: recipes.Scale) -> list[Entry]:
    """The accuracy is that of the run which draws the maps and evaluates the network again, the rest the training's."""
    entries = []
    for row, network in _networks(scale).items():
        entries.append(Entry(row=(row,), columns={"top1": "top1_percent"}, experiment=network.then("maps")))
        entries.append(Entry(row=(row,), columns=_MEASURED, experiment=network))
    return entries


def _maps(*rows: str) -> dict[str, Place]:
    return {row: Place(row=(row,), column="top1") for row in rows}


def _trained(*rows: str) -> dict[str, Place]:
    return {row: Place(row=(row,), column="mean_nonlocality") for row in rows}


SUITE = Suite(
    name="cordonnier_heads",
    paper=PAPER.title,
    item="Figs 3 to 6, 10, 12, 14",
    question="Do heads that are free to look anywhere look nearby in the first layers, as a convolution does?",
    tables=(
        Table(
            name="networks",
            item="The networks whose heads are drawn",
            row_keys=("model",),
            columns=("top1", *_MEASURED),
            ranked="none",
        ),
    ),
    profiles={
        "laptop": Profile.laptop(_entries(recipes.LAPTOP), recipes.LAPTOP_NOTE, num_evaluations=5),
        "gpu": Profile.gpu(_entries(recipes.PAPER_SCALE), "", num_evaluations=100),
        "paper": Profile.paper(_entries(recipes.PAPER_SCALE)),
    },
    headline=Headline(
        text="16 quadratic heads over 9",
        better=_maps(QUADRATIC_16)[QUADRATIC_16],
        baseline=_maps(QUADRATIC)[QUADRATIC],
    ),
    figures=(
        PathsFigure(name="figure3", item="Fig. 3, heads during training", models=_trained(QUADRATIC), layer=4),
        PathsFigure(
            name="figure3_paths",
            item="Fig. 3, for all layers and encodings",
            models=_trained(QUADRATIC, GENERALIZED, QUADRATIC_16),
        ),
        CentersFigure(name="figure4", item="Fig. 4, nine heads", models=_maps(QUADRATIC), before=True),
        MapsFigure(name="figure5", item="Fig. 5, learned", what="around", models=_maps(LEARNED)),
        MapsFigure(name="figure6", item="Fig. 6, learned with content", what="central", models=_maps(CONTENT)),
        MapsFigure(name="figure6_queries", item="Fig. 6 for other queries", what="queries", models=_maps(CONTENT)),
        MapsFigure(name="figure10", item="Fig. 10, content on images", what="images", models=_maps(CONTENT)),
        CentersFigure(name="figure12", item="Fig. 12, any covariance", models=_maps(GENERALIZED), before=True),
        CentersFigure(name="figure14", item="Fig. 14, sixteen heads", models=_maps(QUADRATIC_16), before=True),
    ),
    footnotes=(
        "Images are normalized as in the authors' code, by deviations of 0.20 where CIFAR-10's own are 0.25.",
        "The table is ours: the paper gives no numbers for 16 heads nor for content.",
        "Circles hold 50 % and 90 % of a head's attention.",
        "Fig. 3 is of the paper's layer 4; a shallower network shows its last. Half-way: the paper does not say when.",
        "Fig. 6 for other queries: the slides say that the profiles shift with the query; which they show is not said.",
        "The paper's text and its slides number the figures differently; here it is the slides' numbering.",
    ),
)
