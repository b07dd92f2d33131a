"""ConViT, Figs 5, 6, 7 and 13 to 17 (arXiv:2103.10697): when is attention local, and does it look at position?

For DeiT and ConViT of sizes Ti, S and B, trained as in Table 1: nonlocality (Eq. 8) of each layer and the gates of
each head after every epoch, and attention maps of Ti and S before and after training.

Where text and code leave room: Eq. 8 is measured on each layer's own input, where the authors' logging fed the
embedded patches to every layer; attention to the class token counts as no distance. Fig. 15's DeiT has no size; three
heads are drawn, which is Ti. On ``laptop`` the models train on a tenth of the images, so that there are epochs to
measure after.
"""

from collections.abc import Callable

from suite.protocols.convit import LAPTOP_EVALUATIONS, TITLES, Family, gpu, paper, probed_laptop
from suite.spec import Experiment
from suite.tables import Entry, Headline, LayerFigure, MapsFigure, Place, Profile, Suite, Table

_SIZES = ("Ti", "S", "B")
_SIZES_WITH_MAPS = ("Ti", "S")
_COLUMNS = {"top1": "top1_percent", "mean_nonlocality": "mean_nonlocality"}
_GATE = {"mean_gate": "mean_gate"}
_MAPS = "convit_attention_maps"


def _entries(train: Callable[[Family, str], Experiment]) -> list[Entry]:
    entries = []
    for size in _SIZES:
        for family, title in TITLES.items():
            row, trained = (f"{title}-{size}",), train(family, size)
            columns = _COLUMNS | _GATE if family == "convit" else _COLUMNS
            entries.append(Entry(row=row, columns=columns, experiment=trained))
            if size in _SIZES_WITH_MAPS:
                maps = trained.then("maps")
                entries.append(Entry(table=_MAPS, row=row, columns={"top1": "top1_percent"}, experiment=maps))
    return entries


def _both(size: str, table: str = "") -> dict[str, Place]:
    names = [f"{title}-{size}" for title in TITLES.values()]
    return {name: Place(row=(name,), column="top1", table=table) for name in names}


def _nonlocality(name: str, item: str, size: str) -> LayerFigure:
    return LayerFigure(name=name, item=item, quantity="nonlocality", models=_both(size))


def _gates(name: str, item: str, size: str) -> LayerFigure:
    model = f"ConViT-{size}"
    return LayerFigure(name=name, item=item, quantity="gates", models={model: _both(size)[model]})


SUITE = Suite(
    name="convit_probes",
    paper="ConViT (arXiv:2103.10697)",
    item="Figs 5, 6, 7, 13-17",
    question="When is attention local, and when does it look at position?",
    tables=(
        Table(
            name="convit_locality_of_attention",
            item="Figs 5, 6, 13, 14, at the end of training",
            row_keys=("model",),
            columns=("top1", "mean_nonlocality", "mean_gate"),
            decimals=2,
        ),
        Table(
            name=_MAPS,
            item="Figs 7, 15-17: the networks whose maps are drawn",
            row_keys=("model",),
            columns=("top1",),
            decimals=2,
            ranked="none",
        ),
    ),
    profiles={
        "laptop": Profile.laptop(
            _entries(probed_laptop),
            "a tenth of CIFAR-10 at 32 pixels, four-layer models of an eighth of the width on 4 x 4 tokens, 6 epochs",
            num_evaluations=LAPTOP_EVALUATIONS,
        ),
        "gpu": Profile.gpu(
            _entries(gpu),
            "CIFAR-10 at 32 pixels, the paper's models with 4x4 patches, 300 epochs",
        ),
        "paper": Profile.paper(_entries(paper)),
    },
    headline=Headline(
        text="nonlocality of DeiT-S over ConViT-S, in patches",
        better=Place(row=("DeiT-S",), column="mean_nonlocality"),
        baseline=Place(row=("ConViT-S",), column="mean_nonlocality"),
    ),
    figures=(
        _nonlocality("figure5", "Fig. 5", "S"),
        _gates("figure6", "Fig. 6", "S"),
        MapsFigure(name="figure7", item="Figs 7 and 16", what="images", models=_both("Ti", _MAPS)),
        _nonlocality("figure13a", "Fig. 13a", "Ti"),
        _nonlocality("figure13b", "Fig. 13b", "B"),
        _gates("figure14a", "Fig. 14a", "Ti"),
        _gates("figure14b", "Fig. 14b", "B"),
        MapsFigure(
            name="figure15",
            item="Fig. 15",
            what="central",
            models={"DeiT-Ti": _both("Ti", _MAPS)["DeiT-Ti"]},
            before=True,
        ),
        MapsFigure(name="figure17", item="Fig. 17", what="images", models=_both("S", _MAPS)),
    ),
    footnotes=(
        "The paper draws these quantities and prints none.",
        "Nonlocality is of each layer on its own input; the authors' logging fed the embedded patches to every layer.",
        "Fig. 5 draws DeiT-S between 3 and 7 patches, Fig. 10 the same model between 5.75 and 7.5.",
        "Fig. 16 shows the network of Fig. 7 on other images.",
        "Fig. 17 shows layers 1, 4, 7 and 10; here it is the second and the last GPSA layer, as in Fig. 7.",
    ),
)
