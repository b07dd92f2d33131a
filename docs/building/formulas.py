"""Formulas as MathML, which browsers draw without any script or font of ours."""

from docutils.nodes import Element, SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html import HTMLTranslator


def write_inline(translator: HTMLTranslator, node: Element) -> None:
    """Write ``$x$``."""
    _write(translator, node, as_block=False)


def write_block(translator: HTMLTranslator, node: Element) -> None:
    """Write ``$$x$$``, with a scroll bar of its own where a phone is too narrow."""
    translator.body.append('<div class="math" style="overflow-x: auto" tabindex="0" role="group">')
    _write(translator, node, as_block=True, end="</div>")


def _write(translator: HTMLTranslator, node: Element, as_block: bool, end: str = "") -> None:
    translator.body.append(tex2mathml(node.astext(), as_block=as_block) + end)
    raise SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Make it the way in which formulas are drawn."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
