"""A new model, suite, claim, paper, storage format or kind of figure takes the files written here, and no other."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template

import pytest

from suite.papers import list_claims, list_papers, list_suites

ROOT = Path(__file__).parent.parent
PACKAGES = ("suite", "leaderboards", "launchers", "datasets")
SUITE = Template("""
from $package import PAPER
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
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
    name="$name",
    paper=PAPER.title,
    item="Table 1",
    question="Does it help?",
    tables=(Table(name="$table", item="Table 1", row_keys=("model",), columns=$columns, ranked="in_columns"),),
    profiles={"laptop": Profile.laptop(ENTRIES, "small networks")},
    headline=Headline(
        text="ConViT over DeiT",
        better=Place(row=("convit",), column="top1"),
        baseline=Place(row=("deit",), column="top1"),
    ),
)
""")
MODEL = """
from functools import partial
from torch import nn

class Flat(nn.Linear):
    def __init__(self, *, num_classes: int, image_size: int, side: int = 1) -> None:
        super().__init__(3 * side**2, num_classes)

MODELS = {"flat": partial(Flat, side=7)}
PAPER_INPUT = (7, 2)
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
from imagesets.formats import find_format
from suite.store.results import Result
print(find_format("another"), Result._is_a_format("another"))
"""
HALF = """
import json, sys
from leaderboards.coverage import render_coverage
from suite.papers import get_suite, list_claims, list_papers, list_suites
print(json.dumps([[p.name for p in list_papers()], [c.name for c in list_claims()], list_suites(), render_coverage()]))
for name in list_suites():
    get_suite(name)
"""
FILES = {
    "elsewhere/__init__.py": """
from suite.spec.suite import Paper

PAPER = Paper(name="elsewhere", title="Elsewhere et al.", appeared="2025-01", citation="@misc{elsewhere2025}")
""",
    "elsewhere/elsewhere_shares.py": SUITE.substitute(
        package="elsewhere", name="elsewhere_shares", table="elsewhere_table1", columns="()"
    ),
    "elsewhere/claims.py": """
from elsewhere import PAPER
from suite.spec.claims import Claim, PaperClaims, number

gain = number("elsewhere_shares", "convit", "top1") - number("elsewhere_shares", "deit", "top1")
CLAIMS = PaperClaims(
    name=PAPER.name,
    title=PAPER.title,
    claims=(Claim(name="it_helps_elsewhere", section="Sec. 1", statement="It helps elsewhere.", effects=(gain,)),),
)
""",
    "elsewhere/printed_tables/elsewhere_table1.csv": "model,top1\ndeit,70.0\nconvit,80.0\n",
    "elsewhere/coverage.csv": "kind,where,shows,here\nitem,Table 1,accuracy,`elsewhere_shares/elsewhere_table1`\n",
    "elsewhere/not_judged.csv": 'section,statement,reason\nSec. 2,"It is fast, too.",About their hardware.\n',
    "elsewhere-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n",
    "elsewhere-1.0.dist-info/entry_points.txt": "[convolutional_prior.papers]\nelsewhere = elsewhere\n",
}
TRAINED = """
from pathlib import Path
from suite.papers import get_suite
from suite.store.results import Result
from suite.store.run_directory import RunDirectory
for seed in range(5):
    for experiment in get_suite("elsewhere_shares").profile("laptop").experiments():
        of = experiment.with_seed(seed)
        run = RunDirectory.of(Path("runs"), of)
        run.create(of)
        run.write_result(Result(
            experiment=of, top1_percent=50 + seed / 10 + 10 * ("convit" in of.model), top5_percent=80, test_loss=1,
            best_top1_percent=70, num_parameters=1, num_train_images=50_000, num_test_images=10_000,
            num_steps=of.num_steps(50_000), images_seen=of.num_steps(50_000) * 64, train_s=1, images_per_s=1,
            device="cpu", num_ranks=1, num_attempts=1, commit="0" * 40, finished_at="2000-01-01T00:00:00+00:00",
            protocol_version=2,
        ))
"""


def run(folder, *arguments, before=""):
    path = os.pathsep.join(filter(None, [str(before), str(folder), str(folder / "datasets")]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-P", *arguments], cwd=before or folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def checkout(tmp_path):
    """A copy of the packages, without what is published."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("published", "__pycache__"))
    return tmp_path


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_suite_of_a_paper_is_one_file(checkout):
    (checkout / "suite/papers/cmhsa/cmhsa_new.py").write_text(
        SUITE.substitute(package="suite.papers.cmhsa", name="cmhsa_new", table="own", columns=("top1",))
    )
    assert "cmhsa_new" in run(checkout, "-m", "launchers.grid", "--list")
    assert "6 runs: 6 new" in run(checkout, "-m", "launchers.grid", "--suite", "cmhsa_new", "--seeds", "3", "--dry-run")


def test_a_claim_of_a_paper_is_one_place(checkout):
    claim = '"new": claim("Sec. 9", "A new claim.", _top1("ViT-base"))'
    edit(checkout / "suite/papers/cmhsa/claims.py", "_TABLE_1 = {", f"_TABLE_1 = {{{claim},")
    code = "from suite.papers import list_claims; print([c.statement for p in list_claims() for c in p.claims])"
    assert "A new claim." in run(checkout, "-c", code)


def test_a_storage_format_is_a_module_and_its_name(checkout):
    formats = checkout / "datasets/imagesets/formats"
    shutil.copy(formats / "memory.py", formats / "another.py")
    edit(checkout / "suite/spec/resources.py", '"in_place"]', '"in_place", "another"]')
    assert "another" in run(checkout, "-m", "launchers.grid", "--help-all")
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


@pytest.mark.parametrize("paper", [paper.name for paper in list_papers()])
def test_without_a_papers_folder_all_others_still_work(checkout, paper):
    shutil.rmtree(checkout / "suite" / "papers" / paper)
    papers, claims, suites, coverage = json.loads(run(checkout, "-c", HALF))
    others = [other for other in list_papers() if other.name != paper]
    assert papers == [other.name for other in others]
    assert claims == [claims.name for claims in list_claims() if claims.name != paper]
    assert suites
    assert set(suites) < set(list_suites())
    assert all(f"## {other.title}" in coverage for other in others)


def test_a_file_is_all_that_adds_a_model(checkout):
    (checkout / "suite" / "models" / "elsewhere.py").write_text(MODEL)
    program = (
        "from suite.models.registry import build_model, reference_input\n"
        "print(build_model('flat').in_features, reference_input('flat'))"
    )
    assert run(checkout, "-c", program) == "147 (7, 2)\n"


def test_a_paper_from_elsewhere_gets_board_claims_page_index_and_coverage(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run(ROOT, "-c", TRAINED, before=tmp_path)
    assert "elsewhere_shares" in run(ROOT, "-m", "launchers.grid", "--list", before=tmp_path)
    run(ROOT, "-m", "leaderboards.build", "--all", "--runs", "runs", before=tmp_path)
    boards = tmp_path / "runs" / "leaderboards"
    board = (boards / "elsewhere_shares" / "laptop.md").read_text()
    assert "| convit |" in board
    assert "80.0" in board  # what the paper prints
    assert "elsewhere_shares" in (boards / "index.md").read_text()
    claims = (boards / "claims" / "elsewhere.md").read_text()
    assert "It helps elsewhere." in claims
    assert "- Sec. 2: It is fast, too. About their hardware." in claims
    coverage = run(ROOT, "-c", "from leaderboards.coverage import render_coverage as r; print(r())", before=tmp_path)
    assert "| Table 1 | accuracy | `elsewhere_shares/elsewhere_table1` |" in coverage


def test_a_file_of_sentences_not_judged_with_other_columns_is_refused(checkout):
    (checkout / "suite" / "papers" / "convit" / "not_judged.csv").write_text("section,sentence\nSec. 1,It is fast.\n")
    listing = "import suite.papers as p\ntry: p.list_claims()\nexcept p.SpecError as error: print(error)"
    said = run(checkout, "-c", listing)
    assert "convit/not_judged.csv has the columns ['section', 'sentence']" in said
    assert "expected ['section', 'statement', 'reason']" in said
