"""Structured initialization, Table 6 (arXiv:2404.01139): on what should the initial attention be solved?

Impulses are solved on a stand-in for the layers' real input: the position encoding (PE), uniform noise (U) or their
sum, chosen for the first and for the following layers; with one solution for all layers or one for each; for 3x3 and
5x5 windows and ViT-T with 3 and 8 heads, on CIFAR-10.

Where text and code leave room: "Same" is one solution for all layers that share a pseudo-input, which is the authors'
code's default and the other tables' way; U is uniform on [-1, 1]. Gaussian noise, G and PE+G, is an option of the model
without a row, as the paper prints none. The laptop profile fills the first column, all nine pseudo-inputs with 3
heads, 3x3 windows and one solution: 9 of the 72 cells.
"""

from collections.abc import Callable
from itertools import product

from suite.papers.structured_init import PAPER, recipes
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Place
from suite.spec.suite import Headline, MeanOf, Suite, Table

PSEUDO_INPUTS = ("PE", "U", "PE+U")
ROWS = list(product(PSEUDO_INPUTS, repeat=2))
COLUMNS = {
    f"{layers}_h{heads}_imp{size}": (f"Imp.-{size}", heads, layers == "same")
    for layers, heads, size in product(("same", "different"), (3, 8), (3, 5))
}
LAPTOP_COLUMN = "same_h3_imp3"


def _fill(make: Callable[..., Experiment], row: tuple[str, ...], column: str) -> Entry:
    method, heads, same = COLUMNS[column]
    inputs = {"pseudo_input_first": row[0], "pseudo_input_following": row[1]}
    return recipes.entry(row, column, make(method, num_heads=heads, same_for_all_layers=same, **inputs))


SUITE = Suite(
    name="init_pseudo_input",
    paper=PAPER.title,
    item="Table 6",
    question="Is the position encoding the best pseudo-input to solve the initial attention on?",
    tables=(
        Table(
            name="structured_init_table6",
            item="Table 6",
            row_keys=("first_layer", "following_layers"),
            ranked="in_columns",
            derived=(MeanOf(column="average", columns=tuple(COLUMNS)),),
        ),
    ),
    profiles=recipes.profiles(
        [_fill(recipes.laptop_vit, row, LAPTOP_COLUMN) for row in ROWS],
        [_fill(recipes.vit, row, column) for row in ROWS for column in COLUMNS],
        f"{recipes.LAPTOP_NOTE}; 9 of the 72 cells: three heads, 3x3 windows, one solution for all layers",
    ),
    headline=Headline(
        text="Position encoding over uniform noise as the following layers' pseudo-input",
        better=Place(row=("PE", "PE"), column=LAPTOP_COLUMN),
        baseline=Place(row=("PE", "U"), column=LAPTOP_COLUMN),
    ),
    footnotes=(
        recipes.RECIPE_NOTE,
        "PE / PE with three heads: 90.75 and 90.22 here, 91.62 and 90.67 in Table 2 for the same configuration.",
        "PE+U / U: 86.07, 86.52 and 85.55 are printed twice, and the eight numbers' mean is 86.03, not 86.02.",
        'The caption defines "G", Gaussian noise, and Appendix C.1 says that the main paper has it: only U is printed.',
    ),
)
