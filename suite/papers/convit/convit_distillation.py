"""ConViT, Table 4 and Fig. 10 (arXiv:2103.10697): does a convolutional teacher replace the convolutional prior?

DeiT-S, DeiT-B and ConViT-S+ train on ImageNet for 300 epochs, alone and by hard distillation: half of the loss is by
the label, half by the teacher's answer. The teacher is RegNetY-16GF; its weights come from a file. Fig. 10 follows
nonlocality in DeiT-S.

Where text and code leave room: the students have no distillation token. The authors' code has no distillation; Table
4's DeiT numbers are taken to be those of DeiT's own paper without the token. At the other scales the teacher is a
ResNet trained by the same grid: on ``gpu`` ResNet18 with its own schedule and normalization, in which it is shown its
students' images, on ``laptop`` a sixteenth as wide, trained with the students' recipe for twice as long. On ``laptop``
all train on a tenth of the images, so that there are epochs to follow nonlocality over.
"""

from collections.abc import Callable

from suite.papers.convit import PAPER, recipes
from suite.papers.shared.deit_recipes import DEIT_NOTES
from suite.papers.shared.resnet_recipes import resnet18
from suite.spec.experiment import Experiment
from suite.spec.figures import CurveFigure, LayerFigure
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

_METHODS = ("No distillation", "Hard distillation")
_STUDENTS: dict[str, tuple[recipes.Family, str]] = {
    "deit_s": ("deit", "S"),
    "deit_b": ("deit", "B"),
    "convit_s_plus": ("convit", "S+"),
}


def _entries(train: Callable[[recipes.Family, str], Experiment], teacher: Experiment | str) -> list[Entry]:
    """``teacher``: the experiment that trains it, or its name in timm."""
    source = {"kind_options": {"teacher": teacher}} if isinstance(teacher, str) else {"parents": (teacher,)}
    entries = []
    for column, (family, size) in _STUDENTS.items():
        alone = train(family, size)
        taught = alone.model_copy(kind="distillation", **source)
        for method, experiment in zip(_METHODS, (alone, taught), strict=True):
            entries.append(Entry(row=(method,), columns={column: "top1_percent"}, experiment=experiment))
    return entries


SUITE = Suite(
    name="convit_distillation",
    paper=PAPER.title,
    item="Table 4, Fig. 10",
    question="Does a convolutional teacher help, with a convolutional prior and without?",
    tables=(Table(name="convit_table4", item="Table 4", row_keys=("method",), ranked="in_rows"),),
    profiles={
        "laptop": Profile.laptop(
            _entries(recipes.probed_laptop, recipes.laptop_teacher()),
            f"{recipes.LAPTOP_NOTE}; a tenth of the images for ten times the epochs; the teacher is a ResNet18 of a "
            "sixteenth of the width",
        ),
        "gpu": Profile.gpu(
            _entries(recipes.gpu, resnet18()),
            "CIFAR-10 at 32 pixels, the paper's models with 4x4 patches, 300 epochs; the teacher is a ResNet18",
        ),
        "paper": Profile.paper(_entries(recipes.paper, "regnety_160")),
    },
    headline=Headline(
        text="Hard distillation over none, DeiT-S",
        better=Place(row=("Hard distillation",), column="deit_s"),
        baseline=Place(row=("No distillation",), column="deit_s"),
    ),
    figures=(
        LayerFigure(
            name="figure10",
            item="Fig. 10",
            quantity="nonlocality",
            models={f"DeiT-S, {method.lower()}": Place(row=(method,), column="deit_s") for method in _METHODS},
        ),
        CurveFigure(
            name="curves",
            item="Table 4, over the epochs",
            panels={
                f"{recipes.TITLES[family]}-{size}": {m: Place(row=(m,), column=column) for m in _METHODS}
                for column, (family, size) in _STUDENTS.items()
            },
        ),
    ),
    footnotes=(
        "Fig. 10 draws the undistilled DeiT-S between 5.75 and 7.5 patches, Fig. 5 the same model between 3 and 7.",
        *DEIT_NOTES,
    ),
)
