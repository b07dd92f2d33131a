"""ConViT, Fig. 11a (arXiv:2103.10697): does the convolutional prior help on CIFAR-100, and more in larger models?

The "+" models of both families train on CIFAR-100 upsampled to 224 pixels for 3000 epochs, all else as on ImageNet.
The figure draws accuracy over the epochs, and how much the best of ConViT exceeds the best of DeiT.

Where text and code leave room: upsampling is done by the random resized crop; test images go to 256 pixels and lose a
border of 16, as in DeiT's code; the laptop shows whole images in training and test. Warm-up stays at 5 epochs.
"""

from suite.papers.convit import PAPER, recipes
from suite.papers.shared.deit_recipes import BEST_NOTE, DEIT_NOTES
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table


def _laptop(family: recipes.Family, size: str) -> Experiment:
    experiment = recipes.laptop(family, size, patch_size=8)
    recipe = experiment.recipe.model_copy(crop="none", crop_padding=0, test_crop=1.0)
    return experiment.model_copy(image_size=64, recipe=recipe)


def _gpu(family: recipes.Family, size: str) -> Experiment:
    return recipes.gpu(family, size).model_copy(dataset="cifar100")


def _paper(family: recipes.Family, size: str) -> Experiment:
    experiment = recipes.paper(family, size)
    recipe = experiment.recipe.with_epochs(3000)
    return experiment.model_copy(dataset="cifar100", normalization="imagenet", recipe=recipe)


def _fill(size: str, family: recipes.Family, experiment: Experiment) -> Entry:
    columns = {f"{family}_top1": "top1_percent", f"{family}_best_top1": "best_top1_percent"}
    return Entry(row=(size,), columns=columns, experiment=experiment)


_CELLS = [(size, family) for size in recipes.PLUS_SIZES for family in recipes.TITLES]

SUITE = Suite(
    name="convit_cifar100",
    paper=PAPER.title,
    item="Fig. 11a",
    question="Does the convolutional prior help on a small data set, and more in larger models?",
    tables=(
        Table(
            name="convit_figure11a",
            item="Fig. 11a",
            row_keys=("size",),
            ranked="in_rows",
            derived=(recipes.BEST_GAIN,),
        ),
    ),
    profiles={
        "laptop": Profile.laptop(
            [_fill(size, family, _laptop(family, size)) for size, family in _CELLS],
            f"{recipes.LAPTOP_NOTE}, upsampled to 64 pixels",
        ),
        "gpu": Profile.gpu(
            [_fill(size, family, _gpu(family, size)) for size, family in _CELLS],
            "CIFAR-100 at 32 pixels, the paper's models with 4x4 patches, 300 epochs",
        ),
        "paper": Profile.paper([_fill(size, family, _paper(family, size)) for size, family in _CELLS]),
    },
    headline=Headline(
        text="ConViT-B+ over DeiT-B+, best accuracy of each",
        better=Place(row=("B+",), column="convit_best_top1"),
        baseline=Place(row=("B+",), column="deit_best_top1"),
    ),
    figures=(recipes.gain_figure("a", {size: recipes.gain_pair((size,)) for size in recipes.PLUS_SIZES}),),
    footnotes=(
        "Images are normalized by ImageNet's mean and deviation in profile paper, by their set's own in the others.",
        (
            "The paper prints one accuracy, 82.1 % at 10 million parameters, which is ConViT-Ti+'s. It does not say "
            "whether that is the final or the best one; it stands as the best, between which the figure's gains are."
        ),
        BEST_NOTE,
        "The paper sees ConViT overfit after 1000 of 3000 epochs: final and best accuracy differ.",
        *DEIT_NOTES,
    ),
)
