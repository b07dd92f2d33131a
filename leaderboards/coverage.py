"""The papers' lists of what is covered -> ``leaderboards/COVERAGE.md``.

python -m leaderboards.coverage     # after a paper's coverage.csv was changed
"""

from collections.abc import Iterator
from pathlib import Path

from suite.base.files import write_atomically
from suite.papers import list_papers, read_coverage
from suite.spec.suite import Paper

PATH = Path(__file__).with_name("COVERAGE.md")
_BEGIN = """# What of the papers is covered

Every table, every figure that shows data and every number of the running text, with the suite that makes it, as
`suite` or `suite/table or figure`, or the reason why there is none. Models that a paper quotes from others are not
trained here. Written by `python -m leaderboards.coverage` from each paper's `coverage.csv`.
"""


def render_coverage() -> str:
    """Markdown: a section a paper, with a table of its items and one of the numbers in its text."""
    return "\n".join([_BEGIN, *(line for paper in list_papers() for line in _section(paper))])


def _section(paper: Paper) -> Iterator[str]:
    yield f"## {paper.title}\n"
    if paper.coverage_note:
        yield f"{paper.coverage_note}\n"
    for kind, title in (("item", "item"), ("text", "in the text")):
        lines = [line for line in read_coverage(paper.name) if line["kind"] == kind]
        if lines:
            yield f"| {title} | shows | here |\n|---|---|---|"
            yield from (f"| {line['where']} | {line['shows']} | {line['here']} |" for line in lines)
            yield ""


if __name__ == "__main__":
    write_atomically(PATH, render_coverage().encode())
