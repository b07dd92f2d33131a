"""All suites' leaderboards -> one index: how far each is, its headline beside the paper's, and what it costs."""

import textwrap
from collections.abc import Callable, Sequence

from leaderboards.boards.budget import Cost
from leaderboards.survey import IndexLine
from leaderboards.text import notation
from leaderboards.text.escaping import escape_markdown
from leaderboards.text.records import render_records
from suite.cost.costs import write_hours

CSV_COLUMNS: dict[str, Callable[[IndexLine], object]] = {  # what each holds; without runs no numbers but the paper's
    "suite": lambda line: line.suite.name,
    "item": lambda line: line.suite.item,
    "profile": lambda line: line.profile_name,
    "cells_done": lambda line: line.leaderboard.count("done") if line.leaderboard and line.cost else "",
    "cells": lambda line: line.leaderboard.num_cells if line.leaderboard and line.cost else "",
    "headline": lambda line: line.suite.headline.text,
    "difference": lambda line: line.ours and line.ours.mean,
    "low": lambda line: line.ours and line.ours.interval and line.ours.interval.low,
    "high": lambda line: line.ours and line.ours.interval and line.ours.interval.high,
    "paper_difference": lambda line: line.headline and line.headline.paper,
    "status": lambda line: line.ours and line.ours.status,
    "hours_spent": lambda line: line.cost and line.cost.hours_spent,
    "hours_to_go": lambda line: line.cost and line.cost.hours_to_go,
    "runs_of_unknown_cost": lambda line: line.cost and line.cost.num_unknown,
    "unit": lambda line: line.cost and line.cost.unit,
    "error": lambda line: line.error,
}
LEGEND = """\
Ours and paper are the headline's difference, ours with the 95 % interval over training seeds, or without one their
number (n). Only the profile `paper` is at the paper's scale: in all others the two are not comparable.
Spent counts all attempts of all runs, also of those that others depend on, as GPU-hours or core-hours; what suites
share is counted in each. To go is judged by finished runs of the same cell, else of the same model on the same data by
images seen, else by FLOPs at the rate that the profile states; "?" where those are not known:
`launchers/grid.py --list` counts them."""


def summarize_line(line: IndexLine) -> str:
    """For the terminal: two lines, or more where 80 characters do not hold them."""
    if line.leaderboard is None or line.cost is None:
        return f"{line.suite.name}: {'cannot be built' if line.error else 'no runs'}"
    cost = f"{write_hours(line.cost.hours_spent)} {line.cost.unit} so far"
    if to_go := format_to_go(line.cost):
        cost += f", {to_go} to go"
    state = f"{line.suite.name}, {line.profile_name}: {_cells(line)} cells, {cost}"
    return "\n".join(
        textwrap.fill(t, 80, initial_indent=i, subsequent_indent="  ", break_on_hyphens=False)
        for t, i in ((state, ""), (notation.make_headline(line.leaderboard).told, "  "))
    )


def format_to_go(cost: Cost) -> str:
    """``1.5``, ``1.5 + ? (3 runs)`` where the cost of some is not known, ``?`` where nothing is; "" of nothing."""
    unknown = f"? ({cost.num_unknown} run{'s' if cost.num_unknown > 1 else ''})" if cost.num_unknown else ""
    if not cost.hours_to_go:
        return unknown
    return write_hours(cost.hours_to_go) + (f" + {unknown}" if unknown else "")


def render_index(lines: Sequence[IndexLine]) -> str:
    """Markdown: a line for each suite and scale that has runs, what could not be built, and the suites without runs."""
    header = ["Suite", "Item", "Profile", "Cells done", "Headline", "Ours", "Paper", "Spent", "To go"]
    begun = [_texts(line) for line in lines if line.cost or line.error]
    table = "No suite has runs yet."
    if begun:
        table = notation.pad(header, begun, right=[False] * 3 + [True, False] + [True] * 4)
    idle = notation.section("## No runs yet", (_plan(line) for line in lines if not line.cost and not line.error))
    errors = notation.section(
        "## Not built",
        (f"{line.suite.name}, {line.profile_name}: {escape_markdown(line.error)}" for line in lines if line.error),
    )
    return "\n\n".join(["# Leaderboards of all suites", table, LEGEND, *errors, *idle]) + "\n"


def render_index_csv(lines: Sequence[IndexLine]) -> str:
    records = ({name: read(line) for name, read in CSV_COLUMNS.items()} for line in lines)
    return render_records(tuple(CSV_COLUMNS), records, digits=10)


def _texts(line: IndexLine) -> list[str]:
    name = line.profile_name
    profile = f"[{name}]({line.suite.name}/{name}.md)" if line.cost else name or "no runs"
    cells = "not built" if line.error else _cells(line)
    return [line.suite.name, line.suite.item, profile, cells, *format_line(line).values()]


def format_line(line: IndexLine) -> dict[str, str]:
    """The headline, ours, the paper's, and the hours spent and to go, as texts by column."""
    cell, cost = line.headline, line.cost or line.planned
    return {
        "headline": line.suite.headline.text,
        "ours": notation.format_difference(line.ours) if line.ours else notation.NOTHING,
        "paper": notation.format_signed(cell.paper, notation.paper_decimals(cell)) if cell else notation.NOTHING,
        "spent": f"{write_hours(line.cost.hours_spent)} {line.cost.unit}" if line.cost else notation.NOTHING,
        "to_go": f"{format_to_go(cost)} {cost.unit}" if cost and format_to_go(cost) else notation.NOTHING,
    }


def _plan(line: IndexLine) -> str:
    """``suite (Table 2): ConViT over DeiT (paper: +13.0); 0/30 cells, 5 GPU-hours to go in profile paper``."""
    text, cell = f"{line.suite.name} ({line.suite.item}): {line.suite.headline.text}", line.headline
    if cell and cell.paper is not None:
        text += f" (paper: {notation.format_signed(cell.paper, notation.paper_decimals(cell))})"
    if line.leaderboard is None or line.planned is None:
        return text
    cells, to_go = line.leaderboard.num_cells, format_line(line)["to_go"]
    return f"{text}; 0/{cells} cells, {to_go} to go in profile {line.leaderboard.profile_name}"


def _cells(line: IndexLine) -> str:
    if line.leaderboard is None or line.cost is None:
        return notation.NOTHING
    return f"{line.leaderboard.count('done')}/{line.leaderboard.num_cells}"
