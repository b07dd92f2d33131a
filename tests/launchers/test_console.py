"""Text from elsewhere cannot steer the terminal that shows it."""

import io

import pytest
from rich.table import Table
from rich.text import Text

from launchers.core.console import SafeConsole
from leaderboards.text.escaping import spell_controls


@pytest.fixture
def shown():
    def shown(thing, **options):
        console = SafeConsole(file=io.StringIO(), width=100, **options)
        console.print(thing)
        return console.file.getvalue()

    return shown


NASTY = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\x08\x08",
    "a\rb",
    "\x7f",
    "\u202e",
    "\x00",
    "\u2028",
    "\u200b",
    "\U000e0041",
]


@pytest.mark.parametrize("nasty", NASTY)
def test_control_characters_are_spelt_out_also_in_tables(shown, nasty):
    table = Table()
    table.add_row(f"before{nasty}after", Text(nasty))
    for said in (shown(f"before{nasty}after"), shown(table)):
        assert "before" in said
        assert "after" in said
        assert not [c for c in said if not c.isprintable() and c != "\n"]


def test_what_is_no_control_stays_and_so_do_our_own_colors(shown):
    assert shown("µ 中 [bold] 5 %\n\tx") == "µ 中 [bold] 5 %\n        x\n"
    assert "\x1b[31mred" in shown(Text("red", "red"), force_terminal=True, color_system="standard")
    assert spell_controls("\x1b[0m") == r"\x1b[0m"
