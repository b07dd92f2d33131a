"""One name stands for one thing, and CONTRIBUTING.md has a place for each thing."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("suite", "launchers", "datasets/imagesets", "leaderboards")
OF_EACH_PAPER = {"Scale"}  # how much smaller than the paper each of its protocols is, in terms of its own


def test_no_two_classes_have_one_name():
    found = {}
    for path in (path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in OF_EACH_PAPER:
                assert node.name not in found, f"{path} and {found[node.name]} both have a class {node.name}"
                found[node.name] = path


def test_contributing_names_every_folder_of_the_packages_and_every_module_of_the_suite():
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Add a model")[0]
    folders = {path.parent for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    folders = {folder for folder in folders if folder.parent.name not in ("papers", "models")}  # one a paper
    named = [f"{folder.name}/" for folder in folders] + [path.name for path in (ROOT / "suite").glob("[a-z]*.py")]
    assert not [name for name in named if f"`{name}" not in table and f"/{name}" not in table]
