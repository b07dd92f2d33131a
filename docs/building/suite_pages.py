"""A suite's page: the paper's question, how it is asked at each scale, what the paper claims, and its boards."""

import re
from collections.abc import Iterator
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
    doc = suite_module(name).__doc__ or ""
    source = _ARXIV.sub(r"[arXiv:\1](https://arxiv.org/abs/\1)", suite.paper)
    parts = [
        f"# {suite.question}",
        f"`{name}`: {source}, {suite.item}.",
        f"```sh\npython launchers/grid.py --suite {name}\n```",
        "## At each scale",
        _scales(suite),
        *_notes(doc, suite),
        *_claims(name),
        "## Boards",
        *_boards(name, suite),
    ]
    return "\n\n".join(parts) + "\n"


def _scales(suite: Suite) -> str:
    lines = ["| Profile | Networks to train or measure, a seed | Data, models and lengths |", "|---|---:|---|"]
    for name, profile in suite.profiles.items():
        note = profile.scale_note or "the exact recipe of the paper"
        lines.append(f"| `{name}` | {len(profile.experiments())} | {note} |")
    return "\n".join(lines)


def _notes(doc: str, suite: Suite) -> Iterator[str]:
    """The suite's docstring below its summary, and the notes under its boards."""
    _, _, body = doc.partition("\n\n")
    notes = [f"- {note}" for note in suite.footnotes]
    if body or notes:
        yield "## What was decided"
    if body:
        yield body.strip()
    if notes:
        yield "\n".join(notes)


def _claims(name: str) -> Iterator[str]:
    """The paper's sentences about numbers of this suite, which its boards judge."""
    claims = (claim for paper in list_claims() for claim in paper.claims)
    own = (claim for claim in claims if name in (term.suite for effect in claim.effects for term in effect.terms))
    if lines := [f"| {claim.statement} | {claim.section} |" for claim in own]:
        yield "## What the paper claims"
        yield "\n".join(["| Claim, in our words | Where |", "|---|---|", *lines])


def _boards(name: str, suite: Suite) -> Iterator[str]:
    boards = list_boards(links.PUBLISHED / name)
    if not boards:
        yield "None is published yet; the command above makes one."
    for path in boards:
        yield from _board(path, suite)


def _board(path: Path, suite: Suite) -> Iterator[str]:
    """A published board with its headings two levels down, its page, tables and records as files, and its figures that
    have been drawn, each after the paper's own."""
    text = links.move(path.read_text(encoding="utf-8"), path, links.DOCS / "suites" / f"{suite.name}.md")
    body = re.sub(r"^# .*\n", "", text).replace(f"{suite.question}\n", "", 1)
    body = re.sub(r"^(#+) ", r"##\1 ", body, flags=re.MULTILINE)
    files = [] if is_outdated(path) else [path.with_suffix(".html").name]  # as board_pages.py makes them
    files += [file.name for suffix in ("csv", SUFFIX) for file in sorted(path.parent.glob(f"{path.stem}.*{suffix}"))]
    folder = f"../published/{path.parent.name}"
    named = ", ".join(f'<a href="{folder}/{file}">{file}</a>' for file in files)
    yield f"### Profile {path.stem}\n\nIts files: {named}.\n\n{body.strip()}"
    for figure in suite.figures:
        if (picture := path.with_suffix(f".{figure.name}.svg")).exists():
            alt = f"{figure.item} of the paper, ours beside it"
            yield f'<img alt="{alt}" loading="lazy" src="{folder}/{picture.name}">'
