"""A run directory: what a reader sees when writers were killed, disks full, files corrupt."""

import errno
import json
import multiprocessing
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from suite.base.errors import RecordError, RunError
from suite.base.files import open_to_append, write_atomically
from suite.base.reading import seal
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.store.attempts import read_attempts, record_start
from suite.store.heartbeat import Heartbeat
from suite.store.results import PROTOCOL_VERSION, RESULT_FORMAT, Failure, Result
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status, read_run_status, reopen
from suite.store.run_store import find_runs

EXPERIMENT = Experiment(model="deit_micro", dataset="cifar10", image_size=32, recipe=DEIT_LAPTOP)
RESULT = Result(
    experiment=EXPERIMENT,
    top1_percent=40.0,
    top5_percent=80.0,
    test_loss=1.5,
    best_top1_percent=41.0,
    num_parameters=1,
    num_train_images=50000,
    num_test_images=10000,
    num_steps=EXPERIMENT.num_steps(50000),
    images_seen=EXPERIMENT.num_steps(50000) * DEIT_LAPTOP.batch_size,
    train_s=1.0,
    images_per_s=640.0,
    device="test",
    num_ranks=1,
    num_attempts=1,
    commit="unknown",
    finished_at="2026-01-01T00:00:00+00:00",
    protocol_version=PROTOCOL_VERSION,
)
MEASURED = {"num_steps": 0, "images_seen": 0}  # where nothing is trained


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.of(tmp_path, EXPERIMENT)
    run.create(EXPERIMENT)
    return run


def test_a_run_goes_from_new_to_interrupted_to_failed_to_done(run):
    assert read_run_status(run, {}).state == "new"
    run.append_metrics({"step": 1})
    assert read_run_status(run, {}).state == "interrupted"
    run.write_failure(Failure(kind="killed", reason="kill -9", log_path="log.txt"))
    assert read_run_status(run, {}).state == "interrupted"
    run.write_failure(Failure(kind="error", reason="nan", log_path="log.txt"))
    assert read_run_status(run, {}).state == "failed"
    run.write_result(RESULT)
    assert read_run_status(run, {}).state == "done"
    assert not run.failure_path.exists()


def test_a_half_written_last_line_of_metrics_is_left_out(run):
    run.append_metrics({"step": 1})
    with run.metrics_path.open("a") as file:
        file.write('{"step": 2, "lo')
    assert run.read_metrics() == [{"step": 1}]
    assert run.last_metrics() == {"step": 1}


def test_the_latest_value_is_found_also_behind_the_attention_of_a_large_model(run):
    run.append_metrics({"step": 20, "images_per_s": 640.0})
    run.append_metrics({"step": 25, "nonlocality": [[1.234567] * 16] * 24, "gates": [[0.123456] * 16] * 24})
    assert run.last_metrics()["images_per_s"] == 640.0


def test_a_resume_keeps_what_was_logged_up_to_its_checkpoint(run):
    for step in (1, 2, 3):
        run.append_metrics({"step": step})
    run.keep_metrics_until(2)
    assert run.read_metrics() == [{"step": 1}, {"step": 2}]


def test_a_broken_line_before_the_last_is_named_with_its_number(run):
    run.metrics_path.write_text('{"step": 1}\nrubbish\n{"step": 3}\n')
    with pytest.raises(RecordError, match=r"metrics\.jsonl:2 is not JSON: 'rubbish'"):
        run.read_metrics()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("null", "no JSON object"),
        ("3", "no JSON object"),
        ("[" * 10_000, "not JSON"),
        ('{"loss": 1.0}', "without the number of its step"),
        ('{"step": "2"}', "without the number of its step"),
        ('{"step": -1}', "without the number of its step"),
        ('{"step": 1' + 30 * "0" + "}", "no line of numbers, as step is '1000"),
        ('{"step": 2, "epoch": [33.9]}', r"no line of numbers, as epoch is '\[33.9\]'"),
        ('{"step": 2, "loss": 1' + 400 * "0" + "}", "no line of numbers, as loss is '1000"),
        ('{"step": 2, "gates": [0.5]}', "no line of numbers, as gates is"),
        ('{"step": 2, "gates": [["0.5"]]}', "no line of numbers, as gates is"),
        ('{"step": 2, "centers": [[[1.0]]]}', "no line of numbers, as centers is"),
        ('{"step": 2, "\\ud800": 1}', r"no line of numbers, as \\ud800 is"),
        ('{"step": 2, "loss": null}', "no line of numbers, as loss is 'None'"),
        ('{"step": 2, "loss": NaN}', "no line of numbers, as loss is 'nan'"),
    ],
)
def test_a_line_that_is_no_line_of_metrics_is_named_and_changes_nothing_that_is_shown(run, line, found):
    run.metrics_path.write_text('{"step": 1}\n' + line + "\n")
    with pytest.raises(RecordError, match=rf"metrics\.jsonl:2 is {found}"):
        run.read_metrics()
    assert run.last_metrics() == {"step": 1}


@pytest.mark.parametrize("name", ["result", "failure", "metrics", "attempts", "experiment", "claim"])
def test_a_fifo_in_a_files_place_is_not_waited_for(run, name):
    path = getattr(run, f"{name}_path")
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    found = read_run_status(run, {})
    assert found.state == ("failed" if name in ("result", "failure") else "interrupted" if path in
                           (run.metrics_path, run.attempts_path) else "new")  # fmt: skip
    assert "it is no regular file" in found.reason or found.state != "failed"
    assert (run.last_metrics(), read_attempts(run)) == ({}, [])


@pytest.mark.parametrize("write", [lambda run: run.append_metrics({"step": 1}), lambda run: record_start(run, 1)])
def test_a_fifo_in_a_files_place_is_refused_by_who_would_write_to_it(run, write):
    for path in (run.metrics_path, run.attempts_path):
        os.mkfifo(path)
    with pytest.raises(RunError, match=r"cannot write .*jsonl"):
        write(run)


@pytest.mark.parametrize("content", ["", "{", '{"top1_percent": 3}', RESULT.model_dump_json()[:-20]])
def test_a_corrupt_result_is_named_and_set_aside_on_retry(run, content):
    run.result_path.write_text(content)
    found = read_run_status(run, {})
    assert found.state == "failed"
    assert "result.json" in found.reason
    assert "--retry-failed" in found.reason
    reopen(run, found)
    assert read_run_status(run, {}).state == "new"
    assert run.result_path.with_suffix(".json.corrupt").exists()


def test_a_result_that_a_disk_does_not_give_for_a_moment_is_not_set_aside_on_retry(run, monkeypatch):
    def fail(path):
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    run.write_result(RESULT)
    with monkeypatch.context() as failing:
        failing.setattr("suite.store.run_directory.read_file", fail)
        found = read_run_status(run, {})
        assert found.state == "failed"
        with pytest.raises(RecordError, match="Input/output error"):
            reopen(run, found)
    reopen(run, found)
    assert read_run_status(run, {}).state == "done"


def test_a_run_that_another_process_trains_is_not_reopened(run):
    run.record_failure("error", "nan")
    found = read_run_status(run, {})
    with run.claim():
        reopen(run, found)
    assert run.failure_path.exists()


@pytest.mark.parametrize(
    ("field", "found"),
    [
        *[("top1_percent", value) for value in ("NaN", "1e999", '"nan"', '"40.0"', "true", "null", "150", "-5")],
        *[("test_loss", value) for value in ("NaN", "Infinity", "-0.5", '"1.5"')],
        *[("num_steps", value) for value in ("1", "10.5", "true", "0", "1" + 20 * "0")],
        *[("device_hours", "-1.0"), ("train_s", "-1"), ("images_seen", "640"), ("num_ranks", "0"), ("loader", '"zip"')],
        *[("top5_percent", "39.9"), ("best_top1_percent", "39.9"), ("num_test_images", "0"), ("commit", "7")],
    ],
)
def test_a_result_that_no_run_can_have_measured_is_corrupt_by_the_fields_name(run, field, found):
    run.result_path.write_text(RESULT.model_dump_json(indent=1))
    fields = {name: json.dumps(value) for name, value in json.loads(run.result_path.read_text()).items()}
    pairs = (f'"{name}": {text}' for name, text in (fields | {field: found}).items())
    run.result_path.write_text("{" + ",".join(pairs) + "}")
    status = read_run_status(run, {})
    assert status.state == "failed"
    assert re.search(rf"cannot read .*result\.json: {field}.*--retry-failed", status.reason), status.reason


def test_every_flipped_bit_of_a_result_is_noticed(run):
    run.write_result(RESULT)
    assert run.read_result() == RESULT
    whole = run.result_path.read_bytes()
    for place in range(0, 8 * len(whole), 7):
        run.result_path.write_bytes(
            whole[: place // 8] + bytes([whole[place // 8] ^ 1 << place % 8]) + whole[place // 8 + 1 :]
        )
        with pytest.raises(RecordError, match=r"cannot read .*result\.json"):
            run.read_result()


def test_a_result_from_before_results_had_digests_is_read(run):
    run.result_path.write_text(RESULT.model_dump_json(indent=1))
    assert run.read_result() == RESULT


@pytest.mark.parametrize("field", ["top1_percent", "seed"])
def test_a_result_that_names_a_field_twice_is_corrupt(run, field):
    run.result_path.write_text(RESULT.model_dump_json(indent=1))
    text = run.result_path.read_text()
    run.result_path.write_text(re.sub(rf'("{field}": *)(\S+?),', r"\1 99,\1\2,", text))
    assert f"'{field}' is there twice" in read_run_status(run, {}).reason


@pytest.mark.parametrize(
    ("protocol_version", "reason"),
    [
        (1, "made under protocol 1, expected 2 (CHANGELOG.md says what changed)"),
        (3, "it was made under protocol 3, and this code knows 2: update it"),
    ],
)
def test_a_result_of_another_protocol_is_read_and_void(run, protocol_version, reason):
    run.write_result(RESULT.model_copy(update={"protocol_version": protocol_version}))
    found = read_run_status(run, {})
    assert (found.state, found.reason, found.result.top1_percent) == ("void", reason, 40.0)


def test_a_result_of_a_newer_protocol_is_not_set_aside_on_retry(run):
    run.write_result(RESULT.model_copy(update={"protocol_version": PROTOCOL_VERSION + 1}))
    found = read_run_status(run, {})
    with pytest.raises(RecordError, match="update it"):
        reopen(run, found)
    assert run.result_path.exists()


def test_a_run_says_which_run_it_took_over_where_that_is_void_or_gone(tmp_path, run):
    masked = EXPERIMENT.then("masking", mask="position_embedding")
    child = RunDirectory.of(tmp_path, masked)
    child.create(masked)
    child.write_result(RESULT.model_copy(update={**MEASURED, "experiment": masked, "parent": EXPERIMENT.id}))
    found = find_run_status(child, masked)
    assert (found.state, found.reason) == ("done", f"took over {EXPERIMENT.id}, which is new in this store")
    run.write_result(RESULT.model_copy(update={"protocol_version": 1}))
    found = find_run_status(child, masked)
    assert found.state == "void"
    assert found.reason.startswith(f"took over {EXPERIMENT.id}, which is void: made under protocol 1")


def test_a_void_result_and_what_was_taken_over_from_it_are_set_aside_on_retry(tmp_path, run):
    masked = EXPERIMENT.then("masking", mask="position_embedding")
    child = RunDirectory.of(tmp_path, masked)
    child.create(masked)
    child.write_result(RESULT.model_copy(update={**MEASURED, "experiment": masked, "parent": EXPERIMENT.id}))
    pairs = ((run, EXPERIMENT), (child, masked))
    for protocol_version, state in ((PROTOCOL_VERSION, "done"), (0, "void")):
        run.write_result(RESULT.model_copy(update={"protocol_version": protocol_version}))
        found = [find_run_status(directory, experiment) for directory, experiment in pairs]
        assert [status.state for status in found] == [state, state]
        for (directory, _), status in zip(pairs, found, strict=True):
            reopen(directory, status)
            assert (directory.read_result() is None) == (state == "void")
    assert run.result_path.with_suffix(".json.void").exists()


def test_a_result_copied_from_another_seed_is_refused(tmp_path, run):
    other = RunDirectory.of(tmp_path, EXPERIMENT.with_seed(1))
    other.create(EXPERIMENT.with_seed(1))
    other.result_path.write_text(RESULT.model_dump_json())
    with pytest.raises(RecordError, match="but its folder is"):
        other.read_result()


@pytest.mark.parametrize("format_version", [3, RESULT_FORMAT])
def test_a_result_that_has_lost_its_seal_is_corrupt_also_where_it_calls_itself_an_older_one(run, format_version):
    run.write_result(RESULT.model_copy(update={"format_version": RESULT_FORMAT, "threads_per_rank": 2}))
    content = json.loads(run.result_path.read_bytes()) | {"top5_percent": 99.5, "format_version": format_version}
    del content["sha256"]
    run.result_path.write_text(json.dumps(content, indent=1))
    assert "the seal is missing" in read_run_status(run, {}).reason


@pytest.mark.parametrize("number", ["1" + 400 * "0", "1" + 30 * "0", "1e308"])
@pytest.mark.parametrize(
    "field", ["num_parameters", "num_macs", "device_hours", "mean_nonlocality", "num_train_images"]
)
def test_a_number_that_no_file_of_ours_has_is_told_by_its_field(run, field, number):
    text = json.dumps(json.loads(RESULT.model_dump_json()) | {field: "HERE"}, indent=1).replace('"HERE"', number)
    run.result_path.write_bytes(seal(text.encode()))
    assert re.search(
        rf"result\.json: ({field} is '|num_steps is |it holds a number out of range)", read_run_status(run, {}).reason
    )


@pytest.mark.parametrize("name", ["attempts", "metrics", "heartbeat", "log", "claim"])
def test_nothing_is_written_through_a_link(tmp_path, run, name):
    foreign = tmp_path / "foreign"
    foreign.write_text("somebody else's")
    getattr(run, f"{name}_path").symlink_to(foreign)
    steps = {
        "attempts": lambda: record_start(run, 1),
        "metrics": lambda: run.append_metrics({"step": 1}),
        "log": lambda: open_to_append(run.log_path),
        "claim": lambda: run.claim().__enter__(),
    }
    if name == "heartbeat":
        Heartbeat(run)
    else:
        with pytest.raises((RunError, OSError), match="link"):
            steps[name]()
    assert foreign.read_text() == "somebody else's"


def test_a_write_to_a_disk_that_only_reads_is_an_error_of_ours(tmp_path, monkeypatch):
    def refuse(*arguments, **named):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(RunError, match=r"cannot write .*file: .*Read-only file system"):
        write_atomically(tmp_path / "file", b"new")


def test_a_write_on_a_full_disk_names_the_path_and_the_next_step(run, monkeypatch):
    monkeypatch.setattr("suite.base.files.open_to_append", lambda path: Path("/dev/full").open("ab"))  # noqa: SIM115
    with pytest.raises(RunError, match=r"metrics\.jsonl: no space left on the disk\. Free space"):
        run.append_metrics({"step": 1})


def test_an_atomic_write_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def no_sync(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_sync)
    with pytest.raises(RunError):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_writers_who_share_a_process_number_as_containers_do_spoil_no_file_of_each_other(tmp_path):
    path = tmp_path / "file"
    texts = [bytes([number]) * 4096 for number in range(8)]
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda data: [write_atomically(path, data) for _ in range(20)], texts))
    assert path.read_bytes() in texts
    assert list(tmp_path.iterdir()) == [path]


def _hold(path, ready):
    with RunDirectory(path).claim() as claimed:
        ready.put(claimed)
        multiprocessing.Event().wait()


def test_a_claim_excludes_others_and_ends_with_its_owner(run):
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    owner = context.Process(target=_hold, args=(run.path, ready))
    owner.start()
    assert ready.get(timeout=300) is True
    with run.claim() as claimed:
        assert not claimed
    assert read_run_status(run, {}).state == "running"
    owner.kill()
    owner.join()
    with run.claim() as claimed:
        assert claimed


def test_seeds_are_found_on_disk(tmp_path, run):
    RunDirectory.of(tmp_path, EXPERIMENT.with_seed(12)).create(EXPERIMENT.with_seed(12))
    assert list(find_runs(tmp_path, EXPERIMENT)) == [0, 12]
