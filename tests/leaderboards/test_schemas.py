"""The published schemas are those of the code, and what the code writes fits them."""

import csv
import json

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.schemas import FOLDER, published
from leaderboards.schemas.long_line import LongLine
from leaderboards.text.csv_files import render_long_csv
from suite.base.errors import RecordError
from suite.base.reading import seal, unseal
from suite.store.results import RESULT_FORMAT
from suite.store.run_status import read_run_status, reopen


def test_the_published_schemas_are_the_code_s():
    for name, schema in published().items():
        assert json.loads((FOLDER / name).read_text()) == schema, "python -m leaderboards.schemas; is the version new?"
    assert published()["result.schema.json"]["$id"] == f"convolutional-prior/result/{RESULT_FORMAT}"


def test_every_line_of_a_board_fits_the_schema(table2, fill, tmp_path):
    fill(2)
    for profile in ("laptop", "paper"):
        lines = list(csv.DictReader(render_long_csv(make_leaderboard(table2, profile, tmp_path)).splitlines()))
        assert lines
        for line in lines:
            LongLine.model_validate({name: value or None for name, value in line.items()})


def change(run, **fields):
    found = json.loads(unseal(run.result_path.read_bytes()))
    run.result_path.write_bytes(seal(json.dumps(found | fields, indent=1).encode()))


def test_a_result_of_a_newer_version_is_named_with_its_cure_and_one_of_the_first_is_read(finish, tmp_path):
    run = finish("deit", "5", 0, 50.0)
    found = json.loads(unseal(run.result_path.read_bytes()))
    del found["format_version"]
    run.result_path.write_bytes(seal(json.dumps(found, indent=1).encode()))
    assert run.read_result().top1_percent == 50.0
    change(run, format_version=RESULT_FORMAT + 1, something_new=1)
    found = f"newer version of the suite: found format {RESULT_FORMAT + 1}, expected at most {RESULT_FORMAT}\\. Update"
    with pytest.raises(RecordError, match=found):
        run.read_result()
    status = read_run_status(run, {})
    with pytest.raises(RecordError, match="the file itself is whole, keep it"):
        reopen(run, status)
    assert run.result_path.exists()
    change(run, format_version=RESULT_FORMAT)
    with pytest.raises(RecordError, match="something_new"):
        run.read_result()
