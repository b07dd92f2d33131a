"""ConViT, Fig. 8 and Fig. 12 left (arXiv:2103.10697): the more convolutional, the better?

ConViT-S+ with 0, 3, 6 and 9 GPSA layers and locality strengths 0.01, 0.1 and 1 trains on the first 100 classes of
ImageNet for 300 epochs. Fig. 8 right shows accuracy on the way, after 20 to 295 epochs, against the number of GPSA
layers; Fig. 12 left the same runs over the epochs.

Where text and code leave room: networks train by the recipe of the "+" models. The one without GPSA layers is a ConViT
whose class token is there from the first block, not a DeiT. The strength of Fig. 8 right and of the curves is not
given; it is 1, the ConViT's own.
"""

from suite.papers.convit import PAPER, recipes
from suite.papers.shared.deit_recipes import DEIT_NOTES
from suite.spec.figures import CurveFigure, HeatmapFigure, ProgressFigure
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

_NUM_LAYERS = ("0", "3", "6", "9")
_STRENGTHS = ("0.01", "0.1", "1")
_PAPER_LAYERS = {layers: int(layers) for layers in _NUM_LAYERS}


def _entries(scale: recipes.Scale, dataset: str, num_layers: dict[str, int]) -> list[Entry]:
    entries = []
    for layers in _NUM_LAYERS:
        for strength in _STRENGTHS:
            options = {} if layers == "0" else {"locality_strength": float(strength)}
            experiment = scale("convit", "S+", num_gpsa_layers=num_layers[layers], **options)
            experiment = experiment.model_copy(dataset=dataset)
            entries.append(Entry(row=(layers, strength), columns={"top1": "top1_percent"}, experiment=experiment))
    return entries


SUITE = Suite(
    name="convit_locality",
    paper=PAPER.title,
    item="Fig. 8, Fig. 12 left",
    question="Is a network better the more of its layers start convolutional, and the more local they are?",
    tables=(
        Table(
            name="convit_figure8",
            item="Fig. 8 left",
            row_keys=("num_gpsa_layers", "locality_strength"),
            columns=("top1",),
            ranked="in_columns",
        ),
    ),
    profiles={
        "laptop": Profile.laptop(
            _entries(recipes.laptop, "cifar10", {"0": 0, **recipes.LAPTOP_LAYERS}),
            f"{recipes.LAPTOP_NOTE}, 0, 1, 2 and 3 of the layers GPSA",
        ),
        "gpu": Profile.gpu(
            _entries(recipes.gpu, "cifar100", _PAPER_LAYERS),
            "CIFAR-100 at 32 pixels, the paper's S+ model with 4x4 patches, 300 epochs",
        ),
        "paper": Profile.paper(_entries(recipes.paper, "imagenet100", _PAPER_LAYERS)),
    },
    headline=Headline(
        text="Nine GPSA layers over none, at strength 1",
        better=Place(row=("9", "1"), column="top1"),
        baseline=Place(row=("0", "1"), column="top1"),
    ),
    figures=(
        HeatmapFigure(
            name="figure8_left",
            item="Fig. 8 left",
            column="top1",
            x_key="locality_strength",
            y_key="num_gpsa_layers",
            x_label="Locality strength",
            y_label="Number of GPSA layers",
            value_label="Top-1 accuracy (%)",
        ),
        ProgressFigure(
            name="figure8_right",
            item="Fig. 8 right",
            x_label="Number of GPSA layers",
            shares=tuple(epochs / 300 for epochs in (20, 75, 130, 185, 240, 295)),
            models={layers: Place(row=(layers, "1"), column="top1") for layers in _NUM_LAYERS},
        ),
        CurveFigure(
            name="figure12_left",
            item="Fig. 12 left",
            panels={
                "Locality strength 1": {
                    f"{layers} GPSA layers": Place(row=(layers, "1"), column="top1") for layers in _NUM_LAYERS
                }
            },
        ),
    ),
    footnotes=(
        "Fig. 8 right: of the evaluations those nearest to the paper's epochs are drawn.",
        "Fig. 8: the paper's text says ConViT-S, its caption ConViT-S+, as Fig. 12's; S+ is trained.",
        "The paper draws these accuracies and prints none.",
        "Without GPSA layers there is no locality strength: the three cells of that row are one run.",
        *DEIT_NOTES,
    ),
)
