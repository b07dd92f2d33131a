"""One name stands for one thing: no two packages give different classes the same name."""

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
