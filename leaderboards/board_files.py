"""A leaderboard, or all of them -> the files of its folder: CSV, Markdown, figures and pages."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from leaderboards import figures
from leaderboards.boards.board import Leaderboard
from leaderboards.judged_claims import JudgedClaim
from leaderboards.packed_records import SUFFIX, pack_records
from leaderboards.survey import IndexLine
from leaderboards.text.csv_files import render_accounting, render_csv, render_long_csv
from leaderboards.text.custom_models import render_comparisons_csv
from leaderboards.text.escaping import spell_controls
from leaderboards.text.markdown import render_markdown
from leaderboards.text.notation import make_headline
from suite.base.errors import RunError
from suite.base.files import write_atomically


def write_leaderboard(leaderboard: Leaderboard, out: Path) -> Path:
    """Write ``<profile>.md``, ``.headline.json``, ``.<table>.csv``, ``.long.csv``, ``.runs.csv``, ``.<figure>.png``,
    ``.svg`` and ``.pdf``, and with custom models ``.challengers.csv``. Returns the Markdown's path; RunError if they
    cannot be written. Figures that cannot be drawn are told on stderr."""
    make_folder(out)
    contents = {f"{name}.csv": render_csv(board) for name, board in leaderboard.tables.items()}
    contents |= {
        "md": render_markdown(leaderboard),
        "headline.json": f"{make_headline(leaderboard).model_dump_json(indent=1)}\n",
        "long.csv": render_long_csv(leaderboard),
        "runs.csv": render_accounting(leaderboard),
    }
    if leaderboard.suite.custom_models:
        contents["challengers.csv"] = render_comparisons_csv(leaderboard)
    else:
        (out / f"{leaderboard.profile_name}.challengers.csv").unlink(missing_ok=True)
    for suffix, content in contents.items():
        write_atomically(out / f"{leaderboard.profile_name}.{suffix}", content.encode())
    pictures, problems = figures.draw_all(leaderboard)
    for name, files in pictures.items():
        _write_pictures(files, out / f"{leaderboard.profile_name}.{name}", ("png", "svg", "pdf"))
    for problem in problems:
        print(f"error: {spell_controls(problem)}", file=sys.stderr)
    return out / f"{leaderboard.profile_name}.md"


def write_records(leaderboard: Leaderboard, out: Path, *, pack: bool) -> str:
    """Write ``<profile>.records.tar.xz``, from which the tables can be made again, if ``pack`` asks for it or if it is
    there already. Returns a message about it, or "" if nothing was to be written."""
    path = out / f"{leaderboard.profile_name}.{SUFFIX}"
    if not pack and not path.exists():
        return ""
    packed = pack_records(leaderboard)
    left_out = f"; {packed.num_left_out} that cannot be read left out" * (packed.num_left_out > 0)
    if not packed.num_runs:
        return f"Records: none to pack, no run is finished{left_out}"
    write_atomically(path, packed.content)
    return f"Records: {path}, of {packed.num_runs} finished run{'s' * (packed.num_runs > 1)}{left_out}"


def make_folder(out: Path) -> None:
    """Make a folder and those above it; RunError if that fails."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make the folder {out}: {error.strerror}. Choose another with --out.") from error


def write_effects(claims: Sequence[JudgedClaim], out: Path) -> None:
    """Draw each scale's claims as ``effects.<scale>.png`` and ``.svg``."""
    for scale in dict.fromkeys(judged.scale for judged in claims):
        pictures = figures.draw_claims([judged for judged in claims if judged.scale == scale])
        _write_pictures(pictures, out / f"effects.{scale}", ("png", "svg"))


def _write_pictures(pictures: Mapping[str, bytes], stem: Path, suffixes: Iterable[str]) -> None:
    """Write a figure's files; remove old ones where nothing is drawn."""
    for suffix in suffixes:
        path = stem.with_name(f"{stem.name}.{suffix}")
        if suffix in pictures:
            write_atomically(path, pictures[suffix])
        else:
            path.unlink(missing_ok=True)


def write_page(leaderboard: Leaderboard, out: Path, claims: Iterable[JudgedClaim], *, has_index: bool = False) -> None:
    """Write ``<profile>.html``.

    Args:
        leaderboard: the leaderboard that the page shows.
        out: the folder that has the leaderboard's figures.
        claims: judged claims; the page shows those about its suite at its scale.
        has_index: whether the index, claims and findings pages lie in the folder above.
    """
    from leaderboards.report.suite_page import render_suite_page  # jinja takes as long to start as a leaderboard

    name, pictures = leaderboard.profile_name, {}
    for figure in leaderboard.suite.figures:
        files = {suffix: out / f"{name}.{figure.name}.{suffix}" for suffix in ("svg", "png", "pdf")}
        if all(path.exists() for path in files.values()):
            pictures[figure.name] = {suffix: path.read_bytes() for suffix, path in files.items()}
    shown = [judged for judged in claims if leaderboard.suite.name in judged.claim.suites and judged.scale == name]
    page = render_suite_page(leaderboard, pictures, shown, above=".." if has_index else "")
    write_atomically(out / f"{name}.html", page.encode())


def write_pages(lines: Sequence[IndexLine], claims: Sequence[JudgedClaim], out: Path) -> None:
    """Write the pages of all leaderboards with runs, of the papers' claims, ``findings.html`` and ``index.html``."""
    from leaderboards.report.claims_page import render_claims_html
    from leaderboards.report.findings_page import render_findings_html
    from leaderboards.report.index_page import render_index_html
    from suite.papers import list_claims

    for line in lines:
        if line.leaderboard and line.cost:
            write_page(line.leaderboard, out / line.suite.name, claims, has_index=True)
    for paper in list_claims():
        page = render_claims_html(paper, [judged for judged in claims if judged.paper is paper])
        write_atomically(out / "claims" / f"{paper.name}.html", page.encode())
    write_atomically(out / "findings.html", render_findings_html().encode())
    write_atomically(out / "index.html", render_index_html(lines, claims).encode())
