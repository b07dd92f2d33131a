"""A paper as data: what names it. Its package beside ``suite/papers`` holds its recipes, suites, claims and tables."""

from pydantic import Field

from suite.base.frozen import Frozen


class Paper(Frozen):
    """One paper whose suites and claims stand in a package of its own.

    Args:
        name: the package's short name, which its pages and files bear, such as "convit".
        title: name of the paper on boards and pages; each of its suites has it as ``Suite.paper``.
        appeared: the month in which it appeared, "2021-03"; papers are listed in this order.
        citation: the paper's entry in BibTeX.
        coverage_note: text for readers of ``coverage.csv``, such as whose numbers its figures bear.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str
    appeared: str = Field(pattern=r"^\d{4}-\d{2}$")
    citation: str
    coverage_note: str = ""
