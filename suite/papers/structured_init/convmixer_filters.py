"""Structured initialization, Table 4 (arXiv:2404.01139): must a ConvMixer learn its spatial filters?

ConvMixers of depth 8 on CIFAR-10 whose depthwise filters are trained, or frozen as drawn: random, impulses, or boxes.
By Corollaries 1 to 3 the first two can express any filter through the channel mixing, and boxes cannot.

Where text and code leave room: amplitudes of impulses and boxes are the authors' code's, 1/sqrt(k) and 1/sqrt(k^3);
biases of frozen filters are frozen too; the patch is 2x2 at both widths; an even filter of 8 pads one pixel more to
the right and below. The laptop profile has an eighth of each width.
"""

from collections.abc import Callable

from suite.papers.structured_init import PAPER, recipes
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Place
from suite.spec.suite import Headline, Suite, Table

KERNEL_SIZES = (3, 5, 8)
WIDTHS = (256, 512)
SPATIALS = ("trained", "random", "impulse", "box")


def _entries(make: Callable[[int, int, str], Experiment]) -> list[Entry]:
    return [
        recipes.entry((str(kernel_size), str(width)), spatial, make(kernel_size, width, spatial))
        for width in WIDTHS
        for kernel_size in KERNEL_SIZES
        for spatial in SPATIALS
    ]


SUITE = Suite(
    name="convmixer_filters",
    paper=PAPER.title,
    item="Table 4",
    question="Are frozen spatial filters enough for a ConvMixer, if they are not boxes?",
    tables=(
        Table(name="structured_init_table4", item="Table 4", row_keys=("kernel_size", "embed_dim"), ranked="in_rows"),
    ),
    profiles=recipes.profiles(
        _entries(recipes.laptop_convmixer),
        _entries(recipes.convmixer),
        "CIFAR-10, 4x4 patches, an eighth of each width, three layers, 1.5 epochs",
        num_tries=1,
    ),
    headline=Headline(
        text="Frozen impulse filters over frozen boxes, 3x3 at width 256",
        better=Place(row=("3", "256"), column="impulse"),
        baseline=Place(row=("3", "256"), column="box"),
    ),
    footnotes=(
        recipes.RECIPE_NOTE,
        "Sec. 5.1 trains at learning rate .001 for 200 epochs; ConvMixers, by Sec. 5.5, at .01 for 100.",
        "Depth: the paper, and this board, have eight layers at both widths; the authors' code has six at width 512.",
    ),
)
