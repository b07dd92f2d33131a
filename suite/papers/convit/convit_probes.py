"""ConViT, Figs 3, 5, 6, 7 and 13 to 17 (arXiv:2103.10697): when is attention local, and does it look at position?

For DeiT and ConViT of sizes Ti, S and B, trained as in Table 1: nonlocality (Eq. 8) of each layer and the gates of
each head after every epoch, and attention maps of Ti and S before and after training. Fig. 3 shows networks that
nobody trains: the first layer of a ConViT-Ti without GPSA layers, and with positional attention of two strengths.

Where text and code leave room: attention to the class token counts as no distance. Fig. 15's DeiT has no size; three
heads are drawn, which is Ti. Fig. 3's network has no size either; four heads are Ti, or Ti+. Its positional layers are
vanilla PSA (Eq. 4) started by Eq. 5, but for queries and keys, which are small and random as in every network here:
what they add to the position cannot be seen. Images are of all classes in turn, maps of ImageNet of every tenth
class. On ``laptop`` the models train on a tenth of the images, so that there are epochs to measure after.
"""

from collections.abc import Callable
from typing import Literal

from suite.base.frozen import Scalar
from suite.papers.convit import PAPER, recipes
from suite.papers.shared.deit_recipes import DEIT_NOTES
from suite.spec.experiment import Experiment
from suite.spec.figures import LayerFigure, MapsFigure
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

_SIZES = ("Ti", "S", "B")
_SIZES_WITH_MAPS = ("Ti", "S")
_COLUMNS = {"top1": "top1_percent", "mean_nonlocality": "mean_nonlocality"}
_GATE = {"mean_gate": "mean_gate"}
_MAPS = "convit_attention_maps"
_UNTRAINED: dict[str, dict[str, Scalar]] = {
    "SA": {"num_gpsa_layers": 0},
    "PSA, strength 0.5": {"attention": "summed", "locality_strength": 0.5},
    "PSA, strength 2": {"attention": "summed", "locality_strength": 2.0},
}


def _row(layer: str) -> str:
    return f"untrained, {layer}"


def _untrained(network: Experiment) -> list[Entry]:
    """The maps of this network with the layers of Fig. 3, as initialized."""
    entries = []
    for layer, switches in _UNTRAINED.items():
        options = {**network.model_options, **switches}
        maps = network.model_copy(kind="maps", model_options=options)
        entries.append(Entry(table=_MAPS, row=(_row(layer),), columns={"top1": "top1_percent"}, experiment=maps))
    return entries


def _entries(train: Callable[[recipes.Family, str], Experiment]) -> list[Entry]:
    entries = []
    for size in _SIZES:
        for family, title in recipes.TITLES.items():
            row, trained = (f"{title}-{size}",), train(family, size)
            columns = _COLUMNS | _GATE if family == "convit" else _COLUMNS
            entries.append(Entry(row=row, columns=columns, experiment=trained))
            if size in _SIZES_WITH_MAPS:
                maps = trained.then("maps")
                entries.append(Entry(table=_MAPS, row=row, columns={"top1": "top1_percent"}, experiment=maps))
    return entries


def _both(size: str, table: str = "") -> dict[str, Place]:
    names = [f"{title}-{size}" for title in recipes.TITLES.values()]
    return {name: Place(row=(name,), column="top1", table=table) for name in names}


def _layers(figure: str, quantity: Literal["nonlocality", "gates"], size: str) -> LayerFigure:
    """Fig. 5, 6, 13 or 14: of both models, or the gates that ConViT alone has."""
    models = {name: at for name, at in _both(size).items() if quantity == "nonlocality" or name.startswith("ConViT")}
    return LayerFigure(name=f"figure{figure}", item=f"Fig. {figure}", quantity=quantity, models=models)


SUITE = Suite(
    name="convit_probes",
    paper=PAPER.title,
    item="Figs 3, 5-7, 13-17",
    question="Does ConViT's attention stay more local than DeiT's?",
    tables=(
        Table(
            name="convit_locality_of_attention",
            item="Figs 5, 6, 13, 14, at the end of training",
            row_keys=("model",),
            columns=("top1", "mean_nonlocality", "mean_gate"),
            ranked="in_columns",
            decimals=2,
        ),
        Table(
            name=_MAPS,
            item="Figs 3, 7, 15-17: the networks whose maps are drawn",
            row_keys=("model",),
            columns=("top1",),
            decimals=2,
            ranked="none",
        ),
    ),
    profiles={
        "laptop": Profile.laptop(
            [*_entries(recipes.probed_laptop), *_untrained(recipes.laptop("convit", "Ti"))],
            f"{recipes.LAPTOP_NOTE} on 8 x 8 tokens; a tenth of the images for ten times the epochs",
        ),
        "gpu": Profile.gpu(
            [*_entries(recipes.gpu), *_untrained(recipes.gpu("convit", "Ti"))],
            "CIFAR-10 at 32 pixels, the paper's models with 4x4 patches, 300 epochs",
        ),
        "paper": Profile.paper([*_entries(recipes.paper), *_untrained(recipes.paper("convit", "Ti"))]),
    },
    headline=Headline(
        text="Nonlocality of DeiT-S over ConViT-S, in patches",
        better=Place(row=("DeiT-S",), column="mean_nonlocality"),
        baseline=Place(row=("ConViT-S",), column="mean_nonlocality"),
    ),
    figures=(
        MapsFigure(
            name="figure3",
            item="Fig. 3",
            what="images",
            models={layer: Place(row=(_row(layer),), column="top1", table=_MAPS) for layer in _UNTRAINED},
            before=True,
            layers=(1,),
            num_images=1,
            color_scale="model",
        ),
        _layers("5", "nonlocality", "S"),
        _layers("6", "gates", "S"),
        MapsFigure(name="figure7", item="Figs 7 and 16", what="images", models=_both("Ti", _MAPS)),
        _layers("13a", "nonlocality", "Ti"),
        _layers("13b", "nonlocality", "B"),
        _layers("14a", "gates", "Ti"),
        _layers("14b", "gates", "B"),
        MapsFigure(
            name="figure15",
            item="Fig. 15",
            what="central",
            models={"DeiT-Ti": _both("Ti", _MAPS)["DeiT-Ti"]},
            before=True,
            layers=(1, 10),
        ),
        MapsFigure(
            name="figure17",
            item="Fig. 17",
            what="images",
            models=_both("S", _MAPS),
            layers=(1, 4, 7, 10),
            num_images=1,
        ),
    ),
    footnotes=(
        "The paper draws these quantities and prints none.",
        "Nonlocality is of each layer on its own input; the authors' logging fed the embedded patches to every layer.",
        "Fig. 5 draws DeiT-S between 3 and 7 patches, Fig. 10 the same model between 5.75 and 7.5.",
        "Fig. 16 shows the network of Fig. 7 on other images.",
        "Figs 15 and 17 show layers 1 and 10, and 1, 4, 7 and 10, of twelve; of fewer, those at the same depth.",
        "Fig. 3: nothing is trained, so that top-1 accuracy is chance; colours have a scale for each network.",
        *DEIT_NOTES,
    ),
)
