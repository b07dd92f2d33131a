"""Text that others wrote, such as errors, commits and devices' names, made harmless where a board shows it."""

import re

_FORMULA = re.compile(r"[=@\t\r]|[+-](?!$)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?%?", re.IGNORECASE)
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


def spell_controls(text: str) -> str:
    r"""Spell out, such as ``\x1b``, what steers a terminal, turns text around or hides in it; line breaks stay."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_cell(value: object) -> object:
    """Keep a spreadsheet from reading a CSV cell as a formula; numbers stay as they are."""
    if not isinstance(value, str):
        return value
    text = spell_controls(value)
    return f"'{text}" if _FORMULA.match(value) and not _NUMBER.fullmatch(value) else text


def escape_markdown(text: str) -> str:
    """Keep Markdown from reading text as HTML, a link, an image, code, a heading, emphasis or several lines."""
    text = spell_controls(text).replace("\n", " ").replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\[\]`#*])", r"\\\1", text)


def escape_code(text: str) -> str:
    """Keep text within the backticks of Markdown's code, on one line."""
    return spell_controls(text).replace("\n", " ").replace("`", "'")
