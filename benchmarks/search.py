"""The searches that choose how the small profiles train: the same settings for every method, on held-out images.

    python launchers/grid.py --suite benchmarks/search.py:STRUCTURED_INIT --seeds 1000-1001 --runs searches
    python launchers/grid.py --suite benchmarks/search.py:CMHSA --seeds 1000-1001 --runs searches
    python launchers/grid.py --suite benchmarks/search.py:DROP_PATH --seeds 1000-1001 --runs searches

A row is a method, a column a setting. Each run trains on nine tenths of CIFAR-10's training images and is scored on
the others; test images are never seen, and no board has these seeds. What came out is in ``searches/``, and what was
chosen of it in the papers' ``recipes.py``: of each method the learning rate and the warm-up with the highest mean, at
the one scale of weights at which the methods' best are highest on average, so that any two methods start as they stand
to each other in the paper.
"""

from collections.abc import Iterable
from itertools import product

from suite.papers.cmhsa import recipes as cmhsa
from suite.papers.convit import recipes as convit
from suite.papers.structured_init import recipes as structured_init
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

SCALES = (1.0, 2.0)


def _held_out(experiment: Experiment) -> Experiment:
    parents = tuple(map(_held_out, experiment.parents))
    return experiment.model_copy(update={"evaluated_on": "held_out", "parents": parents})


def _suite(name: str, cells: Iterable[tuple[str, str, tuple[Experiment, ...]]], better: str, baseline: str) -> Suite:
    """Make a search of cells (method, setting, candidates)."""
    entries = [
        Entry(row=(row,), columns={column: "top1_percent"}, experiment=first, alternatives=others)
        for row, column, found in cells
        for first, *others in [tuple(map(_held_out, found))]
    ]
    columns = tuple(dict.fromkeys(column for entry in entries for column in entry.columns))
    places = [Place(row=(row,), column=columns[0]) for row in (better, baseline)]
    return Suite(
        name=name,
        paper="Searches of the small profiles",
        item="accuracy on held-out training images",
        question="By which setting does each method train best?",
        tables=(Table(name=name, item="Held-out accuracy", row_keys=("method",), columns=columns, ranked="in_rows"),),
        profiles={"laptop": Profile.laptop(entries, "a search on held-out training images", num_evaluations=1)},
        headline=Headline(text=f"{better} over {baseline}", better=places[0], baseline=places[1]),
    )


def _structured_init() -> Iterable[tuple[str, str, tuple[Experiment, ...]]]:
    for method in structured_init.METHODS:
        for rate, warmup, scale in product((2e-3, 4e-3, 8e-3), (0.1, 0.2), SCALES):
            setting = structured_init.Setting(rate, warmup, scale)
            column = f"rate {rate:g}, warm-up {warmup:.0%}, weights x {scale:g}"
            yield method, column, (structured_init.laptop_vit(method, setting=setting),)


_RATES = (7e-4, 2e-3, 6e-3)


def _cmhsa() -> Iterable[tuple[str, str, tuple[Experiment, ...]]]:
    """Twelve trainings a method: of two phases each rate of the first, then from its best each rate of the second."""
    for scale, rate in product(SCALES, _RATES):
        for warmup in (0.04, 0.08):
            setting = (cmhsa.PhaseSetting(rate, warmup),)
            names = ("convolution", "attention", "vit_base", "deit_small", "deit_base")
            at = cmhsa.small_scale(dict.fromkeys(names, setting), scale)
            column = f"rate {rate:g}, warm-up {warmup:g} epochs, weights x {scale:g}"
            yield "ViT-base", column, at.baseline("base", with_deits_recipe=False)
            yield "DeiT-small", column, at.baseline("small")
            yield "DeiT-base", column, at.baseline("base")
            yield "CMHSA-3 (1st phase)", column, at.one_phase("convolution", kernel_size=3)
            yield "CMHSA-5 (1st phase)", column, at.one_phase("convolution", kernel_size=5)
            yield "CMHSA (2nd phase)", column, at.one_phase("attention")
        first = cmhsa.small_scale(
            {"convolution": tuple(map(cmhsa.PhaseSetting, _RATES)), "attention": (cmhsa.PhaseSetting(rate),)}, scale
        )
        column = f"rate {rate:g}, warm-up 0.04 epochs, weights x {scale:g}"
        for kernel_size in (3, 5):
            yield f"CMHSA-{kernel_size} (both phases)", column, first.two_phases(kernel_size)
        yield "CMHSA-5 (both phases, no warm-up)", column, first.two_phases(5, with_warmup=False)
        for with_warmup in (True, False):
            yield (
                f"random attention, {'with' if with_warmup else 'without'} warm-up",
                column,
                first.random_attention(with_warmup),
            )


def _drop_path() -> Iterable[tuple[str, str, tuple[Experiment, ...]]]:
    """A third of the training of ``sample_efficiency``'s profile ``desktop``, on its smallest share."""
    for family, rate in product(convit.TITLES, (0.0, 0.1)):
        whole = convit.micro_by_ratios(family, fraction=0.05)
        recipe = whole.recipe.with_epochs(whole.recipe.epochs / 3, whole.recipe.warmup_epochs / 3)
        recipe = recipe.model_copy(update={"drop_path": rate})
        yield convit.TITLES[family], f"stochastic depth {rate:g}", (whole.model_copy(update={"recipe": recipe}),)


STRUCTURED_INIT = _suite("search_structured_init", _structured_init(), "Imp.-3", "Trunc Normal")
CMHSA = _suite("search_cmhsa", _cmhsa(), "CMHSA-5 (1st phase)", "DeiT-base")
DROP_PATH = _suite("search_drop_path", _drop_path(), "ConViT", "DeiT")
