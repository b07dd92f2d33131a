"""A new suite, claim, storage format or kind of figure takes the files that are written here, and no other.

Papers are tried in ``tests/papers``, models in ``tests/models``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("suite", "leaderboards", "launchers", "datasets")
SUITE = """
from suite.papers.cmhsa import PAPER
from suite.papers.shared.deit import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Place, Profile
from suite.spec.suite import Headline, Suite, Table

ENTRIES = [
    Entry(
        row=(model,),
        columns={"top1": "top1_percent"},
        experiment=Experiment(model=f"{model}_micro", dataset="cifar10", image_size=32, recipe=DEIT_LAPTOP),
    )
    for model in ("deit", "convit")
]
SUITE = Suite(
    name="cmhsa_new",
    paper=PAPER.title,
    item="Table 9",
    question="Does it help?",
    tables=(Table(name="own", item="Table 9", row_keys=("model",), columns=("top1",), ranked="in_columns"),),
    profiles={"laptop": Profile.laptop(ENTRIES, "small networks")},
    headline=Headline(
        text="ConViT over DeiT",
        better=Place(row=("convit",), column="top1"),
        baseline=Place(row=("deit",), column="top1"),
    ),
)
"""
FIGURE = """

class DotFigure(TableFigure):
    \"\"\"Dots of one column.\"\"\"

    drawn_by: ClassVar[str] = "dots.draw_dots"

    column: str

    @property
    def row_keys(self) -> list[str]:
        return []

    @property
    def columns(self) -> list[str]:
        return [self.column]
"""
DOTS = """
from leaderboards.figures.parts import style


def draw_dots(figure, leaderboard):
    canvas = style.new_canvas(leaderboard, figure, 4, 3)
    canvas.add_subplot().plot([1, 2], "o")
    return canvas
"""
USES_FIGURE = """
from leaderboards.boards.board import make_leaderboard
from leaderboards.figures import draw
from pathlib import Path
from suite.papers import get_suite
from suite.spec.figures import DotFigure
dots = DotFigure(name="dots", item="Fig. 1", column="top1_gap_percent")
suite = get_suite("sample_efficiency")
suite = suite.model_copy(update={"figures": (*suite.figures, dots)})
Path("runs/experiments").mkdir(parents=True)
print(draw(dots, make_leaderboard(suite, "laptop", Path("runs")), ["svg"])["svg"][:5])
"""
USES_FORMAT = """
from pathlib import Path
from imagesets.catalog import get_info
from imagesets.formats import find_format
from suite.store.results import Result
print(find_format("another"), Result.model_fields["loader"].metadata)
"""


@pytest.fixture
def checkout(tmp_path):
    """A copy of the packages, without what is published."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("published", "__pycache__"))
    return tmp_path


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "datasets")])}
    done = subprocess.run(
        [sys.executable, "-P", *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_suite_of_a_paper_is_one_file(checkout):
    (checkout / "suite/papers/cmhsa/cmhsa_new.py").write_text(SUITE)
    assert "cmhsa_new" in run(checkout, "-m", "launchers.grid", "--list")
    assert "6 runs: 6 new" in run(checkout, "-m", "launchers.grid", "--suite", "cmhsa_new", "--seeds", "3", "--dry-run")


def test_a_claim_of_a_paper_is_one_place(checkout):
    claim = 'Claim(name="new", section="Sec. 9", statement="A new claim.", effects=_TABLE_1[0].effects)'
    edit(checkout / "suite/papers/cmhsa/claims.py", "claims=(", f"claims=({claim}, ")
    code = "from suite.papers import list_claims; print([c.statement for p in list_claims() for c in p.claims])"
    assert "A new claim." in run(checkout, "-c", code)


def test_a_storage_format_is_a_module_and_its_name(checkout):
    formats = checkout / "datasets/imagesets/formats"
    shutil.copy(formats / "memory.py", formats / "another.py")
    edit(checkout / "suite/spec/resources.py", '"folder"]', '"folder", "another"]')
    assert "another" in run(checkout, "-m", "launchers.grid", "--help")
    assert "another" in run(checkout, "-m", "imagesets.prepare", "--help")
    assert "imagesets.formats.another" in run(checkout, "-c", USES_FORMAT)
    before = (ROOT / "leaderboards/schemas/result.schema.json").read_text(encoding="utf-8")
    run(checkout, "-m", "leaderboards.schemas")
    assert (checkout / "leaderboards/schemas/result.schema.json").read_text(encoding="utf-8") == before


def test_a_kind_of_figure_is_its_data_and_a_module_that_draws_it(checkout):
    file = checkout / "suite/spec/figures.py"
    file.write_text(file.read_text(encoding="utf-8") + FIGURE, encoding="utf-8")
    (checkout / "leaderboards/figures/dots.py").write_text(DOTS)
    assert "<?xml" in run(checkout, "-c", USES_FIGURE)
