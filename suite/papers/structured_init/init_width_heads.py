"""Structured initialization, Tables 5 and 7 (arXiv:2404.01139): how do width and number of heads change what an
initialization gains?

ViTs of depth 8 with widths of 64, 128 (Table 7), 256 and 512 (Table 5) and 4 to 32 heads, from five initializations
on CIFAR-10, to stand beside the ConvMixers of Table 4. More heads are more filters, but each has fewer dimensions.

Where text and code leave room: as in ``init_datasets``. The laptop profile trains the narrowest ViT, at its own width
of 64, in two layers and with 4 and 16 heads: 10 of the 80 cells.
"""

from suite.papers.structured_init import PAPER, recipes
from suite.spec.profile import Place
from suite.spec.suite import Headline, RankedWithin, Suite, Table

TABLE_OF_WIDTH = {256: 5, 512: 5, 64: 7, 128: 7}
HEADS = (4, 8, 16, 32)
LAPTOP_HEADS = (4, 16)

_PAPER = [
    recipes.entry(
        (str(table), method, str(width)), f"h{heads}", recipes.vit(method, dim=width, depth=8, num_heads=heads)
    )
    for width, table in TABLE_OF_WIDTH.items()
    for method in recipes.METHODS
    for heads in HEADS
]
_LAPTOP = [
    recipes.entry(
        ("7", method, "64"), f"h{heads}", recipes.laptop_vit(method, dim=64, paper_dim=64, depth=2, num_heads=heads)
    )
    for method in recipes.METHODS
    for heads in LAPTOP_HEADS
]

SUITE = Suite(
    name="init_width_heads",
    paper=PAPER.title,
    item="Tables 5 and 7",
    question="Do impulses gain at every width and number of heads?",
    tables=(
        Table(
            name="structured_init_tables5_and_7",
            item="Tables 5 and 7",
            row_keys=("table", "method", "embed_dim"),
            ranked=RankedWithin(row_keys=("embed_dim",)),
        ),
    ),
    profiles=recipes.profiles(
        _LAPTOP,
        _PAPER,
        "CIFAR-10, 4x4 patches, two layers, 0.8 epochs; 10 of the 80 cells: width 64 with 4 and 16 heads",
    ),
    headline=Headline(
        text="Imp.-3 over Trunc Normal at width 64 and 4 heads",
        better=Place(row=("7", "Imp.-3", "64"), column="h4"),
        baseline=Place(row=("7", "Trunc Normal", "64"), column="h4"),
    ),
    footnotes=(
        recipes.RECIPE_NOTE,
        "Sec. 5.5 announces widths of 64 and 512 for the appendix; its Table 7 has 64 and 128.",
    ),
)
