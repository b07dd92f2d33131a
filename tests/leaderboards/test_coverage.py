"""``leaderboards/COVERAGE.md`` names all that the papers hold and all that the suites make, and nothing else."""

import re
from pathlib import Path

import pytest

from suite.papers import get_suite, list_suites

FILE = Path(__file__).parents[2] / "leaderboards" / "COVERAGE.md"
SECTIONS = {part.partition(" (")[0]: part for part in FILE.read_text(encoding="utf-8").split("\n## ")[1:]}

# Transcribed from the papers: their captions, and what their running text says in numbers.
ITEMS = {
    "ConViT": "Tables 1-6, Figs 1, 2a, 2b, 3-10, 11a, 11b, 11c, 12, 13a, 13b, 14a, 14b, 15-17",
    "Cordonnier et al.": "Section 4.2, Appendix A.1, A.3, A.4, Figs 1-14",
    "CMHSA": "Table 1, Figs 1, 2",
    "Structured initialization": "Tables 1-7, Figs 1-6",
}
NUMBERS = {
    "ConViT": "82.2; 82.9; 59.5; 46.5; 56.4; +2.5; +2.9; +3.1; +6.8; +2.3; +2.8; +5.1; -5.4; -0.5; +6.5; 84M; 82.1",
    "Cordonnier et al.": "300 epochs; [2, 4, 1, 2, 6, 0]; 1e5; 1e-5; a fourth",
    "CMHSA": "85.6; 83.3; 9 heads; 25 on pixels; 9 %; 2.62; 400 epochs; 78.90; 78.74; 80 epochs; M = 40",
    "Structured initialization": "10,000 steps; 5 s; 2 to 4 %; 90.67; 91.87; 91.76; 92.82",
}
KIND = r"(?P<kind>Fig|Table|Section|Appendix)s?\.?"
LABEL = r"(?:[A-F]\.)?\d+(?:\.\d+)?[a-d]?\b"


def labels(text):
    """{("Fig", "3"), ("Fig", "4"), ("Table", "2")} of "Figs 3 to 4, Table 2"."""
    found, kind = set(), ""
    for match in re.finditer(rf"\b{KIND}|(?P<first>{LABEL})(?:(?:-| to )(?P<last>\d+))?", text):
        kind = match["kind"] or kind
        if match["last"]:
            found |= {(kind, str(number)) for number in range(int(match["first"]), int(match["last"]) + 1)}
        elif match["first"] and kind:
            found.add((kind, match["first"]))
    return found


def is_part(one, other):
    """Whether one label is the other's or of a part of it: Fig. 2a of Fig. 2, Section 4.2 of Section 4."""
    short, long = sorted((one, other), key=lambda label: len(label[1]))
    return short[0] == long[0] and bool(re.fullmatch(re.escape(short[1]) + r"(\.\d+|[a-d])?", long[1]))


def rows(paper):
    """(labels, the whole line) of every line of the paper's tables."""
    lines = [line for line in SECTIONS[paper].splitlines() if line.startswith("| ")]
    return [(labels(line.split(" | ")[0]), line) for line in lines]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Figs 5, 6, 13-15", {("Fig", "5"), ("Fig", "6"), ("Fig", "13"), ("Fig", "14"), ("Fig", "15")}),
        ("Table 2, Fig. 2a, 11c", {("Table", "2"), ("Fig", "2a"), ("Fig", "11c")}),
        ("Tables of Section 4.2 and Appendix A.1", {("Section", "4.2"), ("Appendix", "A.1")}),
        ("The networks whose heads are drawn", set()),
    ],
)
def test_labels_are_read_from_items(text, expected):
    assert labels(text) == expected


@pytest.mark.parametrize("paper", ITEMS)
def test_every_table_and_figure_of_a_paper_has_a_line(paper):
    named = set().union(*(found for found, _ in rows(paper)))
    assert [item for item in sorted(labels(ITEMS[paper])) if not any(is_part(item, label) for label in named)] == []


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_number_of_a_papers_text_has_a_line(paper):
    text = SECTIONS[paper].partition("| in the text")[2]
    assert [number for number in NUMBERS[paper].split("; ") if number not in text] == []


@pytest.mark.parametrize("name", list_suites())
def test_every_item_of_a_suite_has_a_line_that_names_the_suite(name):
    suite = get_suite(name)
    of_suite = [found for found, line in rows(suite.paper.partition(" (")[0]) if f"`{name}" in line]
    named = set().union(*of_suite)
    for item in (suite.item, *(part.item for part in (*suite.tables, *suite.figures))):
        missing = [label for label in labels(item) if not any(is_part(label, known) for known in named)]
        assert missing == [], f"{name}: {item}"


def test_every_suite_table_and_figure_that_is_named_exists():
    for name in re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)?)`", "\n".join(SECTIONS.values())):
        suite, _, part = name.partition("/")
        assert suite in list_suites(), name
        parts = (*get_suite(suite).tables, *get_suite(suite).figures)
        assert not part or part in [known.name for known in parts], name


def test_linked_files_exist():
    links = re.findall(r"\]\(([^)]+)\)", FILE.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (FILE.parent / link).is_file()] == []
