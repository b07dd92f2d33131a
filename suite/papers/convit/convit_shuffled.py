"""ConViT (arXiv:2103.10697), a control of ours that the paper does not have: does ConViT's gain come from locality?

DeiT and ConViT train and are tested on three kinds of images at 10 % of each class: as they are, with their patches
permuted, and with the pixels permuted within each patch. Each permutation is one for all images, and of the models'
own patches. Both models embed a patch by a linear map of its pixels, so the second permutation takes nothing from them:
it permutes the map's columns, which are random at the start. Nor does the first take anything from DeiT, whose learned
positions are random at the start, too. It takes from ConViT alone that neighbouring patches show neighbouring parts of
the picture. So a gain by locality vanishes with the first, and stays with the second.

Images as they are are the experiments of ``sample_efficiency``, whose runs serve both suites.
"""

from collections.abc import Callable

from suite.papers.convit import PAPER, recipes
from suite.papers.shared.deit_recipes import DEIT_NOTES
from suite.spec.experiment import Experiment, Shuffled
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Gain, Headline, Suite, Table

_FRACTION = 0.1
_IMAGES: dict[str, Shuffled] = {
    "as they are": "none",
    "patches permuted": "patches",
    "pixels permuted within patches": "within_patches",
}


def _entries(make: Callable[..., Experiment], *size: str, patch_size: int) -> list[Entry]:
    entries = []
    for row, shuffle in _IMAGES.items():
        shuffled = {"shuffle": shuffle, "shuffle_patch_size": 0 if shuffle == "none" else patch_size}
        for family in recipes.TITLES:
            experiment = make(family, *size, fraction=_FRACTION).model_copy(update=shuffled)
            entries.append(Entry(row=(row,), columns={f"{family}_top1": "top1_percent"}, experiment=experiment))
    return entries


SUITE = Suite(
    name="convit_shuffled",
    paper=PAPER.title,
    item="a control of ours",
    question="Does ConViT's gain come from locality? (A control of ours, not of the paper's)",
    tables=(
        Table(
            name="convit_shuffled",
            item="Shuffled images, a control of ours",
            row_keys=("images",),
            columns=("deit_top1", "convit_top1", "gain_points"),
            ranked="in_rows",
            derived=(Gain(column="gain_points", better="convit_top1", baseline="deit_top1"),),
        ),
    ),
    profiles={
        "laptop": Profile.laptop(
            _entries(recipes.micro, patch_size=4),
            f"{recipes.LAPTOP_MICRO_LENGTH.images}; {recipes.EIGHTH}",
            num_evaluations=1,
        ),
        "gpu": Profile.gpu(
            _entries(recipes.gpu, "Ti", patch_size=4),
            "CIFAR-10 at 32 pixels, the paper's Ti models with 4x4 patches, 300 epochs of the full set",
        ),
        "paper": Profile.paper(_entries(recipes.paper, "S", patch_size=16)),
    },
    headline=Headline(
        text="ConViT over DeiT on images whose patches are permuted",
        better=Place(row=("patches permuted",), column="convit_top1"),
        baseline=Place(row=("patches permuted",), column="deit_top1"),
    ),
    figures=(recipes.class_figure({row[0].upper() + row[1:]: (row,) for row in _IMAGES}),),
    footnotes=(
        "10 % of the images of each class. Images are permuted after all augmentation, in training and test alike.",
        *DEIT_NOTES,
    ),
)
