"""The manual's settings: Sphinx reads the pages beside this file, and those that ``building/`` writes before it starts.

The theme is Furo: 0.6 MB, light and dark, made for phones, the reader's own fonts, no script from elsewhere. The
others that are kept (pydata-sphinx-theme, 6 MB, and sphinx-book-theme upon it) bring icon fonts; alabaster has no dark
side. Formulas are MathML, which browsers draw themselves: Sphinx's own way asks a network for MathJax.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent / "building"), str(ROOT), str(ROOT / "datasets")]

import additions  # noqa: E402  # found by the line above, as all that follow
import pages  # noqa: E402
from reference import list_modules  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

project = "What does a convolutional prior do for attention?"
author = "contributors of this project"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["building"]

html_theme = "furo"
html_title = "Convolutional prior"
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["manual.css"]
smartquotes = False  # what is quoted is often code
pygments_style = "github-light"
pygments_dark_style = "github-dark"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "exclude-members": "model_config",  # pydantic's
}
autodoc_typehints = "description"  # beside what each argument means, and not in a line of all
autodoc_typehints_format = "short"
add_module_names = False
napoleon_numpy_docstring = False
napoleon_use_rtype = False

nitpicky = True
# Links to what is documented here are checked; what is not, others' or ours, is named without one.
nitpick_ignore_regex = [
    ("py:.*", rf"(?!({'|'.join(map(re.escape, list_modules()))})\.).*"),
    ("py:class", r".*\.(Words|AnyQuestion|Flops)"),  # type variables, and an alias
]


def setup(app: Sphinx) -> None:
    """Call what ``building/`` does as Sphinx starts, reads, and has written all."""
    app.add_html_math_renderer("mathml", (additions.write_inline, None), (additions.write_block, None))
    app.connect("builder-inited", pages.write_pages)
    app.connect("source-read", pages.move_links)
    app.connect("autodoc-process-docstring", additions.change_docstring, priority=100)
    app.connect("build-finished", pages.copy_published)
    app.connect("build-finished", additions.open_to_all)
