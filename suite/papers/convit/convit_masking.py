"""ConViT, Tables 5 and 6 (arXiv:2103.10697): what do trained networks need of position and content?

Nothing is trained but DeiT-Ti and ConViT-Ti of Table 1. At test time the absolute position embedding is masked, or
in the first GPSA layers the gates are set so that attention has no content (1) or no position (0).

Where text and code leave room: a masked embedding is zero; DeiT's includes the class token's. The layers masked are
the first ones, from the input; the text's "first" and "last GPSA layers" can only mean few and all of the ten.
"""

from suite.papers.convit import PAPER, recipes
from suite.papers.shared.deit_recipes import DEIT_NOTES
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

_PARTS = ("content", "position")
_NUM_LAYERS = ("3", "5", "10")
_PAPER_LAYERS = {layers: int(layers) for layers in _NUM_LAYERS}


def _entries(scale: recipes.Scale, num_layers: dict[str, int]) -> list[Entry]:
    trained = {f"{title}-Ti": scale(family, "Ti") for family, title in recipes.TITLES.items()}
    entries = []
    for model, parent in trained.items():
        masked = parent.then("masking", mask="position_embedding")
        entries.append(Entry(row=(model,), columns={"mask_pos_embed": "top1_percent"}, experiment=masked))
        entries.append(Entry(row=(model,), columns={"no_mask": "top1_percent"}, experiment=parent))
    parent = trained["ConViT-Ti"]
    for layers in _NUM_LAYERS:
        columns = {f"mask_{p}": parent.then("masking", mask=p, num_layers=num_layers[layers]) for p in _PARTS}
        entries += [
            Entry(table="convit_table6", row=(layers,), columns={column: "top1_percent"}, experiment=experiment)
            for column, experiment in {**columns, "no_mask": parent}.items()
        ]
    return entries


SUITE = Suite(
    name="convit_masking",
    paper=PAPER.title,
    item="Tables 5 and 6",
    question="Does ConViT need its position embedding less than DeiT, and position less than content?",
    tables=(
        Table(name="convit_table5", item="Table 5", row_keys=("model",), ranked="in_columns"),
        Table(
            name="convit_table6", item="Table 6", row_keys=("num_layers_masked",), ranked="in_rows", baseline="no_mask"
        ),
    ),
    profiles={
        "laptop": Profile.laptop(
            _entries(recipes.laptop, recipes.LAPTOP_LAYERS),
            f"{recipes.LAPTOP_NOTE}; 3, 5 and 10 masked layers are 1, 2 and 3 of three",
        ),
        "desktop": Profile.desktop(
            _entries(recipes.desktop, recipes.LAPTOP_LAYERS),
            f"{recipes.DESKTOP_NOTE}; 3, 5 and 10 masked layers are 1, 2 and 3 of three",
        ),
        "gpu": Profile.gpu(
            _entries(recipes.gpu, _PAPER_LAYERS),
            "CIFAR-10 at 32 pixels, the paper's Ti models with 4x4 patches after 300 epochs",
        ),
        "paper": Profile.paper(_entries(recipes.paper, _PAPER_LAYERS)),
    },
    headline=Headline(
        text="ConViT-Ti over DeiT-Ti without position embedding",
        better=Place(row=("ConViT-Ti",), column="mask_pos_embed"),
        baseline=Place(row=("DeiT-Ti",), column="mask_pos_embed"),
    ),
    footnotes=("Unmasked, the networks are the runs of Table 1.", *DEIT_NOTES),
)
