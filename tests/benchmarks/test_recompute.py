"""Published numbers follow from the records, by a computation of their own, which finds an altered one."""

import csv
import hashlib
import io
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import recompute
import recomputed_numbers as numbers

BOARD = recompute.PUBLISHED / "convit_psa/laptop.md"


def test_all_published_boards_and_claims_are_what_their_records_say(capsys):
    assert recompute.main([]) == 0, capsys.readouterr().out
    *boards, claims = capsys.readouterr().out.splitlines()
    assert sum(" 0 differ" in line for line in boards) > 20
    assert claims.startswith("claims ")


def copy(board, folder):
    """Copy a board's files, but for the records."""
    copied = folder / board.parent.name / board.name
    copied.parent.mkdir()
    for suffix in (".md", ".long.csv", ".runs.csv", ".headline.json"):
        shutil.copy(board.with_suffix(suffix), copied.with_suffix(suffix))
    for table in board.parent.glob(f"{board.stem}.*_*.csv"):
        shutil.copy(table, copied.parent)
    return copied


def test_an_altered_number_is_found(tmp_path, capsys):
    board = copy(BOARD, tmp_path)
    runs = board.with_suffix(".runs.csv")
    line = next(line for line in csv.DictReader(runs.open()) if line["seed"] == "3")
    runs.write_text(runs.read_text().replace(f",3,{line['top1_percent']},", ",3,99.0,", 1))
    long = board.with_suffix(".long.csv")
    mean = next(csv.DictReader(long.open()))["mean"]
    long.write_text(long.read_text().replace(f",{mean},", f",{float(mean) + 0.001:.10g},", 1))
    assert recompute.main([str(board)]) == 1
    told = capsys.readouterr().out
    assert f"{line['run']} top1_percent: published 99.0, recomputed {float(line['top1_percent'])}" in told
    assert f"mean: published {float(mean) + 0.001:.10g}, recomputed {mean}" in told


def test_a_claims_altered_number_is_found(tmp_path):
    runs, _ = numbers.read_records(recompute.find_records(BOARD))
    lines = list(recompute.recompute_claims(runs, tmp_path))
    judged = next(line for line in lines if line["claim"] == "vanilla_psa_leads_early_and_falls_behind")
    assert judged["n"] == 5
    assert judged["verdict"] == "opposite direction"
    low, judged["low"] = judged["low"], judged["low"] + 1e-4
    with (tmp_path / "claims.csv").open("w") as file:
        writer = csv.DictWriter(file, list(judged))
        writer.writeheader()
        writer.writerows({name: "" if value != value else value for name, value in line.items()} for line in lines)
    ledger = recompute.Ledger("claims")
    recompute.check_claims(tmp_path / "claims.csv", runs, ledger)
    assert len(ledger.differing) == 1
    assert ledger.differing[0].endswith(f"at laptop scale, low: published {low + 1e-4}, recomputed {low}")


def predictions(predicted, labels):
    file = io.BytesIO()
    np.savez_compressed(file, predicted=np.int16(predicted), labels=np.int16(labels))
    return file.getvalue()


@pytest.mark.parametrize(
    ("top1", "digest", "differing"),
    [(75.0, "", []), (50.0, "", ["accuracy of predictions"]), (75.0, "another", ["digest of predictions"])],
)
def test_predictions_have_the_digest_and_the_accuracy_of_the_result(top1, digest, differing):
    content = predictions([0, 1, 2, 2, -1], [0, 1, 2, 0, 3])  # the last image could not be read
    result = {"top1_percent": top1, "predictions_sha256": digest or hashlib.sha256(content).hexdigest()}
    ledger = recompute.Ledger("a run")
    recompute.check_predictions("run", {"result": result, "predictions.npz": content}, ledger)
    assert [line.partition(":")[0] for line in ledger.differing] == [f"run {name}" for name in differing]


def test_a_searched_cell_shows_of_each_seed_what_the_others_chose():
    def candidate(*top1):
        return {seed: {"result": {"top1_percent": value}} for seed, value in enumerate(top1)}

    shown = numbers._choose([candidate(10, 90, 12), candidate(50, 20, 30)])
    assert {seed: run["result"]["top1_percent"] for seed, run in shown.items()} == {0: 10, 1: 20, 2: 12}


def test_a_mean_that_is_rounded_wrongly_differs():
    ledger = recompute.Ledger("a table")
    for published in ("37.2", "37.1", ""):
        ledger.check(published, published, 37.1725)
    assert ledger.differing == [
        "37.1: published 37.1, recomputed 37.1725",
        ": published nothing, recomputed 37.1725",
    ]
