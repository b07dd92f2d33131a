"""The searches that choose how the small profiles train: the same settings for every method, on held-out images.

    python launchers/grid.py --suite benchmarks/search.py:STRUCTURED_INIT --seeds 1000-1000 --runs searches
    python benchmarks/search.py searches     # writes benchmarks/searches/*.csv
    python launchers/grid.py --suite benchmarks/search.py:STRUCTURED_INIT_FINALISTS --seeds 1001-1001 --runs searches
    python benchmarks/search.py searches

``CMHSA`` and ``CMHSA_FINALISTS`` likewise; ``DROP_PATH`` has two seeds at once. A row is a method, a column a setting.
Each run trains on nine tenths of CIFAR-10's training images and is scored on the others; test images are never seen,
and no board has these seeds. Every method tries twelve settings of learning rate, warm-up and scale of weights with
one seed, and its best three with a second one. Chosen is, for each method by itself, the highest mean of both: no
method starts with weights that another setting would have served better. The papers' ``recipes.py`` have the choice.
"""

import csv
import json
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from statistics import fmean

from suite.papers.cmhsa import recipes as cmhsa
from suite.papers.convit import recipes as convit
from suite.papers.structured_init import recipes as structured_init
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

SCALES = (1.0, 2.0)
SEEDS = (1000, 1001)
FOLDER = Path(__file__).parent / "searches"
_NUM_FINALISTS = 3
_Cell = tuple[str, str, tuple[Experiment, ...]]  # method, setting, candidates
Tried = dict[tuple[str, str], dict[int, float]]  # accuracy by (method, setting) and seed


def _held_out(experiment: Experiment) -> Experiment:
    parents = tuple(map(_held_out, experiment.parents))
    return experiment.model_copy(update={"evaluated_on": "held_out", "parents": parents})


def _suite(name: str, cells: Iterable[_Cell], better: str, baseline: str) -> Suite:
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


def _structured_init() -> Iterable[_Cell]:
    for method in structured_init.METHODS:
        for rate, warmup, scale in product((2e-3, 4e-3, 8e-3), (0.1, 0.2), SCALES):
            setting = structured_init.Setting(rate, warmup, scale)
            column = f"rate {rate:g}, warm-up {warmup:.0%}, weights x {scale:g}"
            yield method, column, (structured_init.laptop_vit(method, setting=setting),)


_RATES = (7e-4, 2e-3, 6e-3)
_RATES_BETWEEN = (4e-4, 1.2e-3, 3.5e-3)  # of what has neither a second phase nor a warm-up to be searched


def _cmhsa() -> Iterable[_Cell]:
    """Twelve trainings a method: of two phases each rate of the first, then from its best each rate of the second."""
    for scale, rate in product(SCALES, _RATES):
        for warmup in (0.04, 0.08):
            setting = (cmhsa.PhaseSetting(rate, warmup, scale),)
            names = ("convolution", "attention", "vit_base", "deit_small", "deit_base")
            at = cmhsa.small_scale(dict.fromkeys(names, setting))
            column = f"rate {rate:g}, warm-up {warmup:g} epochs, weights x {scale:g}"
            yield "ViT-base", column, at.baseline("base", with_deits_recipe=False)
            yield "DeiT-small", column, at.baseline("small")
            yield "DeiT-base", column, at.baseline("base")
            yield "CMHSA-3 (1st phase)", column, at.one_phase("convolution", kernel_size=3)
            yield "CMHSA-5 (1st phase)", column, at.one_phase("convolution", kernel_size=5)
            yield "CMHSA (2nd phase)", column, at.one_phase("attention")
        firsts = tuple(cmhsa.PhaseSetting(first, None, scale) for first in _RATES)
        first = cmhsa.small_scale({"convolution": firsts, "attention": (cmhsa.PhaseSetting(rate, None, scale),)})
        column = f"rate {rate:g}, weights x {scale:g}"
        for kernel_size in (3, 5):
            yield f"CMHSA-{kernel_size} (both phases)", column, first.two_phases(kernel_size)
        yield "CMHSA-5 (both phases, no warm-up)", column, first.two_phases(5, with_warmup=False)
    for scale, rate in product(SCALES, (*_RATES, *_RATES_BETWEEN)):
        at = cmhsa.small_scale({"attention": (cmhsa.PhaseSetting(rate, None, scale),)})
        for row, with_warmup in {"random attention": True, "random attention, no warm-up": False}.items():
            yield row, f"rate {rate:g}, weights x {scale:g}", at.random_attention(with_warmup)


def _drop_path() -> Iterable[_Cell]:
    """A third of the training of ``sample_efficiency``'s profile ``desktop``, on its smallest share."""
    for family, rate in product(convit.TITLES, (0.0, 0.1)):
        whole = convit.micro_by_ratios(family, fraction=0.05)
        recipe = whole.recipe.with_epochs(whole.recipe.epochs / 3, whole.recipe.warmup_epochs / 3)
        recipe = recipe.model_copy(update={"drop_path": rate})
        yield convit.TITLES[family], f"stochastic depth {rate:g}", (whole.model_copy(update={"recipe": recipe}),)


def read_tried(name: str) -> Tried:
    """The accuracies of a search; none before it."""
    path, tried = FOLDER / f"{name}.csv", Tried()
    for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines() if path.exists() else ()):
        tried.setdefault((line["method"], line["setting"]), {})[int(line["seed"])] = float(line["top1_percent"])
    return tried


def choose(tried: Tried) -> dict[str, str]:
    """The setting of each method whose mean over both seeds is highest, among those that have both."""
    means = {key: fmean(of_seed.values()) for key, of_seed in tried.items() if set(of_seed) == set(SEEDS)}
    best = sorted(means, key=means.__getitem__)
    return dict(best)  # of a method the last one stays


def _finalists(name: str, cells: Iterable[_Cell]) -> Iterable[_Cell]:
    """The best settings of each method by the first seed; of a search that is not done, all."""
    first = {key: of_seed[SEEDS[0]] for key, of_seed in read_tried(name).items()}
    for method, setting, candidates in cells:
        better = [v for (of, _), v in first.items() if of == method and v > first.get((method, setting), 0.0)]
        if len(better) < _NUM_FINALISTS:
            yield method, setting, candidates


def read_top1(path: Path) -> float:
    """The accuracy of a finished run, in percent."""
    return float(json.loads(path.read_bytes())["top1_percent"])


def write_tried(name: str, suite: Suite, store: Path) -> None:
    """Write the accuracies of the runs that are finished."""
    lines: list[tuple[str | int, ...]] = [("method", "setting", "seed", "top1_percent")]
    for entry, seed in product(suite.profile("laptop").entries, SEEDS):
        (method,), (setting,), (experiment,) = entry.row, entry.columns, entry.candidates
        firsts = {f"rate {one.recipe.learning_rate:g}, {setting.partition(', ')[2]}": one for one in experiment.parents}
        tried = {(method, setting): experiment, **{(f"{method}: first", at): one for at, one in firsts.items()}}
        for (of, at), one in tried.items():
            path = store / "experiments" / one.with_seed(seed).id / "result.json"
            if path.exists() and (line := (of, at, seed, f"{read_top1(path):.2f}")) not in lines:
                lines.append(line)
    with (FOLDER / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


STRUCTURED_INIT = _suite("search_structured_init", _structured_init(), "Imp.-3", "Trunc Normal")
CMHSA = _suite("search_cmhsa", _cmhsa(), "CMHSA-5 (1st phase)", "DeiT-base")
DROP_PATH = _suite("search_drop_path", _drop_path(), "ConViT", "DeiT")
STRUCTURED_INIT_FINALISTS = _suite(
    "search_structured_init_finalists", _finalists("structured_init", _structured_init()), "Imp.-3", "Trunc Normal"
)
CMHSA_FINALISTS = _suite("search_cmhsa_finalists", _finalists("cmhsa", _cmhsa()), "CMHSA-5 (1st phase)", "DeiT-base")

if __name__ == "__main__":
    for name, suite in {"structured_init": STRUCTURED_INIT, "cmhsa": CMHSA, "drop_path": DROP_PATH}.items():
        write_tried(name, suite, Path(sys.argv[1]))
