"""Docstrings begin with a summary, and functions of many parameters describe these."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("suite", "launchers", "datasets/imagesets", "leaderboards", "benchmarks", "docs/building", "examples")
FILES = [str(path.relative_to(ROOT)) for name in FOLDERS for path in sorted((ROOT / name).rglob("*.py"))]
MANY = 4
NO_SUMMARY = ("What ", "Args:", "Returns:", "Raises:")
FRAGMENT = re.compile(
    r"^ +\*{0,2}\w+(, \*{0,2}\w+)*: (of|for|from|in|on|to|by|with|that|which|is|are|was|gives?|says?|takes?|gets?) .*",
    re.M,
)


def definitions(node):
    """Every module, class and function, without those inside functions and those that a class describes for others."""
    yield node
    for child in node.body:
        if isinstance(child, ast.FunctionDef):
            is_override = isinstance(node, ast.ClassDef) and node.bases and not ast.get_docstring(child)
            if not is_override:
                yield child
        elif isinstance(child, ast.ClassDef):
            yield from definitions(child)


@pytest.mark.parametrize("path", FILES)
def test_docstrings_open_with_a_summary_and_describe_the_parameters_where_there_are_many(path):
    for node in definitions(ast.parse(Path(ROOT, path).read_text())):
        name, text = getattr(node, "name", "the module"), ast.get_docstring(node) or ""
        assert not text.startswith(NO_SUMMARY), f"{name}: {text}"
        fragment = FRAGMENT.search(text.partition("Args:\n")[2].partition("\n\n")[0])
        assert not fragment, f"{name} describes a parameter from the middle of a sentence: {fragment[0].strip()}"
        if isinstance(node, ast.FunctionDef) and not name.startswith("_"):
            given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            parameters = [argument.arg for argument in given if argument.arg not in ("self", "cls")]
            assert len(parameters) < MANY or "Args:\n" in text, f"{name} does not describe {parameters}"


def test_docstrings_of_tests_open_with_a_summary_too():
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        for node in definitions(ast.parse(path.read_text())):
            text = ast.get_docstring(node) or ""
            assert not text.startswith(NO_SUMMARY), f"{path}, {getattr(node, 'name', 'the module')}: {text}"
