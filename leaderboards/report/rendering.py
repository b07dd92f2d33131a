"""Data that a page shows -> one HTML file that needs nothing beside it: its style and scripts stand in it.

Whatever stands in the data, markup is escaped and control characters are spelt out; and should a script still slip
through, the page's policy runs none but those that are named by their hashes, and lets nothing be loaded.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from leaderboards.text.escaping import spell_controls
from suite.papers import list_claims

FOLLOWED = ("renew", "follow")  # scripts of a page that is kept up to date without a reload
_FOLDER = Path(__file__).parent


def render(
    template: str,
    script_names: tuple[str, ...] = (),
    *,
    embedded: Mapping[str, str] = MappingProxyType({}),
    **shown: Any,
) -> str:
    """Render a page.

    Args:
        template: a file in ``templates``.
        script_names: the scripts in ``static`` that the page runs. ``renew`` asks the server that the page came from,
            where a file may ask nobody.
        embedded: compressed contents that scripts read, by name.
        shown: the values that the template names.
    """
    scripts = [_read(f"{name}.js") for name in script_names]
    return _environment().get_template(template).render(
        policy=_policy(scripts, asks_server="renew" in script_names),
        scripts=[_safe(script) for script in scripts],
        embedded=embedded,
        **shown,
    )  # fmt: skip


def find_links(above: str, grid: str = "") -> dict[str, str]:
    """Address -> text of the pages of all suites, claims and findings in the folder ``above``; where pages are served,
    first that of the grid at work, at the address ``grid``."""
    first = {grid: "The grid at work"} if grid else {}
    claims = {f"{above}/claims/{paper.name}.html": paper.title for paper in list_claims()}
    findings = {f"{above}/findings.html": "What the published boards show"}
    return {**first, f"{above}/index.html": "All questions", **claims, **findings}


def _policy(scripts: list[str], *, asks_server: bool) -> str:
    """The page's content security policy."""
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts]
    allowed = " ".join(hashes) or "'none'"
    rest = "default-src 'none'; base-uri 'none'; form-action 'none'"  # the last two do not follow from the first
    asked = "; connect-src 'self'" if asks_server else ""
    return f"{rest}; img-src data:; style-src 'unsafe-inline'; script-src {allowed}{asked}"


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_spell,
    )
    environment.filters["breakable"] = _breakable
    environment.globals["css"] = lambda name: _safe(_read(f"{name}.css"))
    return environment


def _spell(value: object) -> object:
    """Spell control characters out in every text that is no markup of the templates' own."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else spell_controls(value)


def _breakable(text: str) -> Markup:
    """Let a column's name break after each of its words."""
    return Markup("_<wbr>").join(escape(word) for word in spell_controls(text).split("_"))


@functools.cache
def _read(name: str) -> str:
    """Read a style or script, without indents, spaces after punctuation, or lines that are comments."""
    text = (_FOLDER / "static" / name).read_text(encoding="utf-8")
    if name.endswith(".css"):
        return re.sub(r"\s*([{};])\s*|([:,]) ", r"\1\2", text)
    return re.sub(r"\n\s*(//[^\n]*)?", "\n", text)


def _safe(text: str) -> Markup:
    """Mark one of the project's styles or scripts as text that is not escaped."""
    assert "</s" not in text, "a style or script that would end its own element"
    return Markup(text)
