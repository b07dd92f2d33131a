"""A suite's page: the paper's question, how it is asked at each scale, what the paper claims, and its boards."""

import re
from pathlib import Path

import links

from leaderboards.packed_records import SUFFIX
from leaderboards.published_boards import is_outdated, list_boards
from suite.papers import get_suite, list_claims, suite_module
from suite.spec.suite import Suite

_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{5})")


def render(name: str) -> str:
    """The page as MyST Markdown, from what the suite says of itself."""
    suite = get_suite(name)
    source = _ARXIV.sub(r"[arXiv:\1](https://arxiv.org/abs/\1)", suite.paper)
    scales = ["| Profile | Networks to train or measure, a seed | Data, models and lengths |", "|---|---:|---|"]
    for scale, profile in suite.profiles.items():
        note = profile.scale_note or "the exact recipe of the paper"
        scales.append(f"| `{scale}` | {len(profile.experiments())} | {note} |")
    _, _, decided = (suite_module(name).__doc__ or "").partition("\n\n")
    notes = "\n".join(f"- {note}" for note in suite.footnotes)
    claims = ["| Claim, in our words | Where |", "|---|---|"]
    for claim in (claim for paper in list_claims() for claim in paper.claims):
        if name in (term.suite for effect in claim.effects for term in effect.terms):
            claims.append(f"| {claim.statement} | {claim.section} |")
    boards = [_board(path, suite) for path in list_boards(links.PUBLISHED / name)]
    sections = {
        "At each scale": "\n".join(scales),
        "What was decided": "\n\n".join(filter(None, (decided.strip(), notes))),
        "What the paper claims": "\n".join(claims) if claims[2:] else "",
        "Boards": "\n\n".join(boards) or "None is published yet; the command above makes one.",
    }
    parts = [f"# {suite.question}", f"`{name}`: {source}, {suite.item}."]
    parts.append(f"```sh\npython launchers/grid.py --suite {name}\n```")
    parts += [f"## {title}\n\n{text}" for title, text in sections.items() if text]
    return "\n\n".join(parts) + "\n"


def _board(path: Path, suite: Suite) -> str:
    """A published board with its headings two levels down, its page, tables and records as files, and its figures that
    have been drawn, each after the paper's own."""
    text = links.move(path.read_text(encoding="utf-8"), path, links.DOCS / "suites" / f"{suite.name}.md")
    body = re.sub(r"^# .*\n", "", text).replace(f"{suite.question}\n", "", 1)
    body = re.sub(r"^(#+) ", r"##\1 ", body, flags=re.MULTILINE)
    files = [] if is_outdated(path) else [path.with_suffix(".html").name]  # as pages.py makes them
    files += [file.name for suffix in ("csv", SUFFIX) for file in sorted(path.parent.glob(f"{path.stem}.*{suffix}"))]
    folder = f"../published/{path.parent.name}"
    named = ", ".join(f'<a href="{folder}/{file}">{file}</a>' for file in files)
    parts = [f"### Profile {path.stem}", f"Its files: {named}.", body.strip()]
    for figure in suite.figures:
        if (picture := path.with_suffix(f".{figure.name}.svg")).exists():
            alt = f"{figure.item} of the paper, ours beside it"
            parts.append(f'<img alt="{alt}" loading="lazy" src="{folder}/{picture.name}">')
    return "\n\n".join(parts)
