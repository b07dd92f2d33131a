"""Formulas as MathML, which browsers draw without any script or font of ours."""

from docutils.nodes import Element, SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.writers.html import HTMLTranslator


def write_inline(translator: HTMLTranslator, node: Element) -> None:
    """Write ``$x$``."""
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def write_block(translator: HTMLTranslator, node: Element) -> None:
    """Write ``$$x$$``, with a scroll bar of its own where a phone is too narrow."""
    formula = tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math" style="overflow-x: auto" tabindex="0" role="group">{formula}</div>')
    raise SkipNode
