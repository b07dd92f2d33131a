"""Board -> a LaTeX table with the rules of booktabs, ours above the paper's numbers in each row."""

from collections.abc import Sequence

from leaderboards.boards.board import Board
from leaderboards.text.escaping import spell_controls
from leaderboards.text.labels import label_names
from leaderboards.text.notation import NOTHING, format_ours, format_status

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "±": r"$\pm$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Keep LaTeX from reading text as commands."""
    return "".join(_SPECIAL.get(character, character) for character in " ".join(spell_controls(text).split()))


def render_latex(board: Board, caption: str) -> str:
    """The table with ours and, where the paper prints one, its number below; it needs the package booktabs."""
    columns = board.columns
    labels = label_names(board)
    lines = [_line([labels[name] for name in (*board.paper.row_keys, *columns)])]
    for row in board.paper.rows:
        lines.append(_line([*row, *(_ours(board, row, column) for column in columns)]))
        papers = [board.paper.rows[row][column] for column in columns] if board.has_paper else []
        if any(papers):
            lines.append(_line([*[""] * (len(row) - 1), "paper", *papers]))
    layout = "l" * len(board.paper.row_keys) + "r" * len(columns)
    return "\n".join([
        "% \\usepackage{booktabs}", "\\begin{table}", "\\centering", f"\\caption{{{escape_latex(caption)}}}",
        f"\\begin{{tabular}}{{{layout}}}", "\\toprule", lines[0], "\\midrule", *lines[1:], "\\bottomrule",
        "\\end{tabular}", "\\end{table}", "",
    ])  # fmt: skip


def _ours(board: Board, row: tuple[str, ...], column: str) -> str:
    cell = board.cells.get((row, column))
    if cell is None:
        return NOTHING
    written = format_ours(cell, board.paper.decimals(column))
    return written if cell.status == "done" else f"{written} ({format_status(cell)})".strip()


def _line(texts: Sequence[str]) -> str:
    return " & ".join(map(escape_latex, texts)) + r" \\"
