"""Every leaderboard of a stored set of results, byte for byte: what a change of the code may not change by accident.

The results are made up, a known function of each run's id, and as uneven as a real store: finished, failed, void and
missing runs, one to three seeds. ``python tests/leaderboards/test_golden.py`` writes the expected digests anew.
"""

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

from leaderboards.build import main
from suite.papers import get_suite, list_suites
from suite.store.results import PROTOCOL_VERSION, Failure
from suite.store.run_directory import RunDirectory

GOLDEN = Path(__file__).parents[1] / "golden" / "boards.sha256"
TEXTS = (".csv", ".md")  # pictures depend on the fonts and on matplotlib


def write_store(store):
    """Runs of every suite at laptop and at the paper's scale."""
    for name in list_suites():
        for profile in ("laptop", "paper"):
            for experiment in get_suite(name).profile(profile).experiments(range(3)):
                write_run(RunDirectory.of(store, experiment), experiment)


def write_run(run, experiment):
    if run.path.exists():
        return
    digest = hashlib.sha256(experiment.id.encode()).digest()
    if digest[0] < 20:
        return  # missing
    run.path.mkdir(parents=True)
    if digest[0] < 30:
        failure = Failure(kind="error", reason=f"the loss is {digest[1]}", log_path="log.txt")
        run.failure_path.write_text(failure.model_dump_json())
        return
    is_void = digest[0] < 40
    content = {"experiment": experiment.model_dump(mode="json"), **made_up(digest, experiment)}
    run.result_path.write_text(json.dumps(content | ({"protocol_version": PROTOCOL_VERSION + 1} if is_void else {})))


def made_up(digest, experiment):
    """All of a result but its experiment."""
    top1 = 30 + digest[2] / 8 + digest[3] / 200 + experiment.seed / 3
    num_steps = experiment.num_steps(10_000)
    counts = {"num_train_images": 10_000, "num_test_images": 10_000, "num_steps": num_steps}
    counts["images_seen"] = num_steps * experiment.recipe.batch_size
    return {
        **counts, "top1_percent": top1, "top5_percent": top1 + 20, "best_top1_percent": top1 + digest[4] / 300,
        "test_loss": 0.5 + digest[5] / 100, "num_parameters": 10_000 * (1 + digest[6]), "num_macs": 10**6 * digest[7],
        "num_linear_macs": 10**6 * digest[8], "train_s": 60.0 + digest[9], "lineage_train_s": 90.0 + digest[10],
        "images_per_s": 1000.0 + digest[11], "inference_images_per_s": 3000.0 + digest[12],
        "mean_nonlocality": digest[13] / 50, "mean_gate": digest[14] / 256, "num_ranks": 1, "num_attempts": 1,
        "device": "cpu", "loader": "memory", "device_hours": digest[15] / 100, "protocol_version": PROTOCOL_VERSION,
        "commit": ("ab" if digest[16] < 230 else "cd") * 20, "finished_at": "2000-01-01T00:00:00+00:00",
    }  # fmt: skip


def digests(folder):
    """The digest of every text file of all leaderboards, by its path."""
    folder = Path(folder).resolve()
    os.chdir(folder)  # boards name the store as it was given
    write_store(Path("runs"))
    assert main(["--all", "--runs", "runs"]) == 0
    files = sorted(path for path in Path("runs", "leaderboards").rglob("*") if path.suffix in TEXTS)
    return [f"{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}  {path.relative_to('runs/leaderboards')}"
            for path in files]  # fmt: skip


def test_every_board_of_the_stored_results_is_byte_for_byte_as_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(
        "leaderboards.report.downloads.draw_table", lambda *_: (b"", b"")
    )  # no text, and much of the work
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # the index estimates costs from FLOPs counted before
    expected, found = GOLDEN.read_text().splitlines(), digests(tmp_path)
    changed = sorted(set(expected) ^ set(found))
    assert not changed, f"if this is meant, run {Path(__file__).name} as a script: {changed[:6]}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        text = "\n".join(digests(folder)) + "\n"
    GOLDEN.write_text(text)
    sys.exit(0)
