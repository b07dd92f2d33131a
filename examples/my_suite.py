"""A suite of one's own, with a table of its own: two models on two shares of the images, trained alike.

convolutional-prior grid --suite my_suite.py:SUITE
"""

from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

ENTRIES = [
    Entry(
        row=(f"{share} %",),
        columns={name: "top1_percent"},
        experiment=Experiment(
            model=f"{name}_micro", dataset="cifar10", image_size=32, recipe=DEIT_LAPTOP, train_fraction=share / 100
        ),
    )
    for share in (5, 10)
    for name in ("deit", "convit")
]

SUITE = Suite(
    name="my_suite",
    paper="nobody's",
    item="a table of my own",
    question="What does a convolutional prior do in one short training?",
    tables=(Table(name="mine", item="Top-1", row_keys=("images",), columns=("deit", "convit"), ranked="in_rows"),),
    profiles={"laptop": Profile.laptop(ENTRIES, "CIFAR-10, three-layer models")},
    headline=Headline(
        text="ConViT over DeiT on 5 %",
        better=Place(row=("5 %",), column="convit"),
        baseline=Place(row=("5 %",), column="deit"),
    ),
)
