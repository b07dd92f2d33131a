"""Structured initialization, Figs 3 to 6 (arXiv:2404.01139): what does attention look like before and after training?

The averaged attention maps between all patches of ViT-T/h3 on CIFAR-10, in every layer: before training from impulse,
mimetic and random initialization, with the 48x48 upper left corner enlarged (Figs 4 and 5, of which Fig. 3 has three
layers); before and after training from impulse and random initialization (Fig. 6). The paper prints no numbers, so the
table is ours: the accuracies that the same runs reached. The trainings are ``init_datasets``'s.

Where text and code leave room: "random" is Trunc Normal, the start of the ConvNeXt that the captions cite for it. Maps
are averaged over images and a layer's heads. Which layers Fig. 6 shows is not said: all.
"""

from collections.abc import Callable

from suite.papers.structured_init import PAPER, recipes
from suite.spec.experiment import Experiment
from suite.spec.figures import MapsFigure
from suite.spec.profile import Entry, Place
from suite.spec.suite import Headline, Suite, Table

METHODS = {"Impulse (Imp.-3)": "Imp.-3", "Mimetic": "Mimetic", "Random (Trunc Normal)": "Trunc Normal"}


def _entries(make: Callable[[str], Experiment]) -> list[Entry]:
    return [recipes.entry((method,), "top1", make(method).then("maps")) for method in METHODS.values()]


_PLACES = {title: Place(row=(method,), column="top1") for title, method in METHODS.items()}

SUITE = Suite(
    name="init_attention_maps",
    paper=PAPER.title,
    item="Figs 3 to 6",
    question="Does attention that starts from impulses look at neighbours first, and farther once it is trained?",
    tables=(
        Table(
            name="structured_init_attention_maps",
            item="Figs 3 to 6",
            row_keys=("method",),
            columns=("top1",),
            ranked="in_columns",
            decimals=2,
        ),
    ),
    profiles=recipes.profiles(_entries(recipes.laptop_vit), _entries(recipes.vit)),
    headline=Headline(
        text="Imp.-3 over Trunc Normal, the runs whose maps are drawn",
        better=_PLACES["Impulse (Imp.-3)"],
        baseline=_PLACES["Random (Trunc Normal)"],
    ),
    figures=(
        MapsFigure(name="figures3_to_5", item="Figs 3 to 5", what="corner", models=_PLACES, before=True, after=False),
        MapsFigure(
            name="figure6",
            item="Fig. 6",
            what="between",
            models={title: place for title, place in _PLACES.items() if title != "Mimetic"},
            before=True,
        ),
    ),
    footnotes=(
        recipes.RECIPE_NOTE,
        "The paper says that its figures average over CIFAR-10's training images; here it is 100 test images.",
        "Figs 4 and 5 show all twelve layers, and so does the one figure here; Fig. 3 shows its 1st, 6th and 12th.",
        "The paper names neither the impulse's window nor the random initialization: here Imp.-3 and Trunc Normal.",
    ),
)
