"""The suite and the papers whose tables it fills -> BibTeX. No torch."""

from importlib.metadata import version

from suite.papers import list_papers

_SUITE = """@software{{convolutional_prior_suite,
  title={{What does a convolutional prior do for attention? A benchmark suite}},
  author={{{{contributors of this project}}}},
  version={{{version}}},
  license={{Apache-2.0}}
}}"""


def render_bibtex() -> str:
    """Write an entry of the suite, in the installed version, and one of each paper."""
    own = _SUITE.format(version=version("convolutional-prior-suite"))
    return "\n\n".join([own, *(paper.citation for paper in list_papers())]) + "\n"
