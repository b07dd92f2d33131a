"""Links between files of the repository, as a code host follows them -> links between pages of the site.

A page that is written by hand links to ``../CONTRIBUTING.md`` or ``../suite/papers/convit/convit_masking.py``; on the
site the first is a page of its own, and the second the page of that suite.
"""

import os
import re
from pathlib import Path

from suite.papers import list_suites

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
PUBLISHED = ROOT / "leaderboards" / "published"
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)

COPIES = {
    "CHANGELOG.md": "project/changelog",
    "CONTRIBUTING.md": "project/contributing",
    "SECURITY.md": "project/security",
    "leaderboards/COVERAGE.md": "project/coverage",
    "leaderboards/published/FINDINGS.md": "project/findings",
    "leaderboards/published/HISTORY.md": "project/history",
    "leaderboards/published/README.md": "project/published",
    **{f"leaderboards/published/claims/{path.name}": f"claims/{path.stem}" for path in PUBLISHED.glob("claims/*.md")},
}


def find_page(path: Path) -> Path | None:
    """Find the page, within ``docs/``, that shows a file of the repository; None: no page does."""
    name = path.relative_to(ROOT).as_posix()
    if name in COPIES:
        return DOCS / f"{COPIES[name]}.md"
    if name == "README.md":
        return DOCS / "index.md"
    if path.parent.parent == ROOT / "suite/papers" and path.stem in list_suites():
        return DOCS / "suites" / f"{path.stem}.md"
    if path.parent.parent == PUBLISHED and path.suffix == ".md":
        return DOCS / "suites" / f"{path.parent.name}.md"
    return path if path.is_relative_to(DOCS) else None


def move(text: str, origin: Path, page: Path) -> str:
    """Rewrite the links of a file for the page that shows it.

    Args:
        text: text of the file, or a part of it; what lies within fences stays as it is.
        origin: the file, whose folder the links start from.
        page: page in ``docs/``, the same file or another.
    """

    def rewrite(found: re.Match[str]) -> str:
        is_image, label, target, anchor = found[1], found[2], found[3], found[4] or ""
        path = Path(os.path.normpath(origin.parent / target))
        if "://" in target or not path.is_file():
            return found[0]
        shown = None if is_image else find_page(path)
        is_file = shown is None and not is_image  # shown as it lies: a page for a browser, a table
        if is_file and path.is_relative_to(PUBLISHED):
            copy = DOCS / "published" / path.relative_to(PUBLISHED)
            copy = copy.with_suffix(".svg") if copy.suffix == ".png" else copy  # the site has figures once
            return f'<a href="{os.path.relpath(copy, page.parent)}">{label}</a>'
        return f"{is_image}[{label}]({os.path.relpath(shown or path, page.parent)}{anchor})"

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(rewrite, part) for part in parts)
