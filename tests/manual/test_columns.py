"""The manual describes every column of every CSV file that boards have."""

import csv
import re
from pathlib import Path

import pytest

from leaderboards.published_boards import PUBLISHED
from leaderboards.text import claims, csv_files, custom_models, index

PAGE = (Path(__file__).parents[2] / "docs/columns.md").read_text()
SECTIONS = dict(re.findall(r"^## `(.*?)`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
WRITTEN = {
    "<profile>.long.csv": csv_files.LONG_COLUMNS,
    "<profile>.runs.csv": csv_files.RUN_COLUMNS,
    "<profile>.challengers.csv": custom_models.CSV_COLUMNS,
    "claims.csv": claims.CSV_COLUMNS,
    "index.csv": index.CSV_COLUMNS,
}


def described(name):
    cells = re.findall(r"^\| (`.*?) \|", SECTIONS[name], re.MULTILINE)
    return [column for cell in cells for column in re.findall(r"`(\w+)`", cell)]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_column_is_described_once_in_the_file_s_own_order(name):
    assert described(name) == list(WRITTEN[name])


def test_every_column_of_every_published_file_is_described_and_no_other():
    found = {name: set() for name in SECTIONS}
    for path in [*PUBLISHED.glob("*/*.csv"), PUBLISHED / "claims.csv"]:
        own = {f"<profile>.{path.name.partition('.')[2]}", path.name} & set(WRITTEN)
        with path.open() as file:
            found[own.pop() if own else "<profile>.<table>.csv"] |= set(next(csv.reader(file)))
    for name, columns in found.items():
        assert columns <= set(described(name)), name
    assert found["<profile>.<table>.csv"] == set(described("<profile>.<table>.csv"))
