"""Records packed into one file: the tables come out of it again to the byte; damage and other files are refused."""

import io
import lzma
import os
import shutil
import tarfile
import tracemalloc

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.build import main
from leaderboards.packed_records import SUFFIX, pack_records, unpacked
from leaderboards.published_boards import PUBLISHED, is_outdated, read_runs
from leaderboards.text.csv_files import render_accounting
from suite.base.errors import RecordError
from suite.papers import get_suite
from suite.spec.custom_entries import with_custom_models
from suite.spec.custom_model import CustomModel
from suite.spec.experiment import with_ancestors
from suite.store.custom_models import record_custom_models
from suite.store.run_directory import RunDirectory
from suite.store.run_status import read_run_status
from suite.store.run_store import list_runs

FIRST, SECOND = get_suite("sample_efficiency").profile("laptop").experiments()[:2]
SUITE = ["--suite", "sample_efficiency"]
PACKED = f"sample_efficiency/laptop.{SUFFIX}"
RECORDS = ["attempts.jsonl", "environment.json", "experiment.json", "maps.safetensors", "metrics.jsonl", "result.json"]


def contents_below(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def members_of(packed):
    with tarfile.open(packed) as archive:
        return sorted(archive.getnames())


def finish_with_all_files(finish_in, store, experiment, top1):
    run = finish_in(store, experiment, top1)
    run.append_metrics({"step": 10, "loss": 1.5})
    run.attempts_path.write_text('{"started_at": 1.0, "host": "here"}\n')
    run.environment_path.write_text("{}")
    for path in (run.maps_path, run.weights_path, run.log_path):
        path.write_bytes(b"of this run")
    return run


@pytest.fixture
def store(finish_in, tmp_path):
    """Two seeds of two configurations, finished with every file that a run can leave."""
    for seed in (0, 1):
        for experiment in (FIRST, SECOND):
            finish_with_all_files(finish_in, tmp_path / "store", experiment.with_seed(seed), 40.0 + seed)
    return tmp_path / "store"


@pytest.fixture
def packed(store):
    assert main([*SUITE, "--runs", str(store), "--pack"]) == 0
    return store / "leaderboards" / PACKED


def test_a_board_is_built_from_the_packed_records_to_the_byte(packed, tmp_path):
    assert main([*SUITE, "--runs", str(packed), "--out", str(tmp_path / "again"), "--pack"]) == 0
    assert contents_below(tmp_path / "again") == contents_below(packed.parent)


def test_the_same_records_make_the_same_bytes_wherever_and_whenever(packed, store, tmp_path):
    copied = shutil.copytree(store / "experiments", tmp_path / "copied" / "experiments", copy_function=shutil.copyfile)
    for path in copied.rglob("*"):
        os.utime(path, (1, 1))
    assert main([*SUITE, "--runs", str(tmp_path / "copied"), "--pack"]) == 0
    assert (tmp_path / "copied/leaderboards" / PACKED).read_bytes() == packed.read_bytes()


def test_a_run_that_ends_after_a_board_was_read_is_neither_packed_nor_listed_with_it(store, finish_in):
    later = FIRST.with_seed(2)
    RunDirectory.of(store, later).create(later)
    leaderboard = make_leaderboard(get_suite("sample_efficiency"), "laptop", store)
    finish_with_all_files(finish_in, store, later, 90.0)
    assert leaderboard.cell(leaderboard.suite.headline.baseline).coverage.num_done == 2
    assert pack_records(leaderboard).num_runs == 4
    assert f"{later.id}," not in render_accounting(leaderboard)


def test_packed_are_all_records_of_finished_runs_without_weights_and_logs(store, tmp_path):
    begun = FIRST.with_seed(2)
    RunDirectory.of(store, begun).create(begun)
    assert main([*SUITE, "--runs", str(store), "--pack"]) == 0
    packed = store / "leaderboards" / PACKED
    runs = [experiment.with_seed(seed) for experiment in (FIRST, SECOND) for seed in (0, 1)]
    assert members_of(packed) == sorted(f"experiments/{run.id}/{name}" for run in runs for name in RECORDS)
    with unpacked(packed) as folder:
        assert [read_run_status(RunDirectory.of(folder, run), {}).state for run in runs] == ["done"] * 4
        there = contents_below(store)
        assert all(there[name] == content for name, content in contents_below(folder).items())


def test_runs_that_others_start_from_are_packed_with_them(finish_in, tmp_path, capsys):
    profile = get_suite("convit_masking").profile("laptop")
    child = next(experiment for experiment in profile.experiments() if experiment.parents)
    family = with_ancestors([child])
    assert len(family) > 1
    for experiment in family:
        finish_in(tmp_path, experiment, 40.0)
    assert main(["--all", "--runs", str(tmp_path), "--pack"]) == 0
    packed = tmp_path / "leaderboards/convit_masking" / f"laptop.{SUFFIX}"
    assert {name.rpartition("/")[0] for name in members_of(packed)} == {f"experiments/{e.id}" for e in family}
    assert f"Records: {packed}, of {len(family)} finished runs\n" in capsys.readouterr().out


def test_a_packed_board_and_a_store_of_further_seeds_are_one(packed, finish_in, tmp_path):
    for experiment, top1 in ((FIRST, 43.0), (SECOND, 54.0)):
        finish_in(tmp_path / "more", experiment.with_seed(2), top1)
    assert main([*SUITE, "--runs", str(tmp_path / "more"), "--runs", str(packed)]) == 0
    long = (tmp_path / "more/leaderboards/sample_efficiency/laptop.long.csv").read_text()
    assert ",3,3,41.33333333," in long
    assert ",3,3,45," in long


def test_whoever_was_entered_beside_the_papers_models_is_packed_too(store, finish_in, tmp_path):
    custom_model = CustomModel(name="mine", words="deit_micro", options={"depth": 2}, suites=("sample_efficiency",))
    record_custom_models(store, [custom_model])
    entered = with_custom_models(get_suite("sample_efficiency"), [custom_model]).profile("laptop").entries[-1]
    finish_in(store, entered.experiment, 60.0)
    assert main([*SUITE, "--runs", str(store), "--pack"]) == 0
    packed = store / "leaderboards" / PACKED
    assert main([*SUITE, "--runs", str(packed), "--out", str(tmp_path / "again"), "--pack"]) == 0
    assert contents_below(tmp_path / "again") == contents_below(packed.parent)


def test_a_run_that_cannot_be_read_is_left_out_and_counted(store, capsys):
    RunDirectory.of(store, FIRST).result_path.write_text("{")
    environment = RunDirectory.of(store, SECOND).environment_path
    environment.unlink()
    environment.mkdir()
    assert main([*SUITE, "--runs", str(store), "--pack"]) == 0
    assert "of 2 finished runs; 2 that cannot be read left out" in capsys.readouterr().out
    assert {name.split("/")[2] for name in members_of(store / "leaderboards" / PACKED)} == {"seed-1"}


def test_records_that_are_there_are_renewed_with_the_board(packed, store, finish_in):
    finish_in(store, FIRST.with_seed(2), 50.0)
    assert main([*SUITE, "--runs", str(store)]) == 0
    assert f"experiments/{FIRST.with_seed(2).id}/result.json" in members_of(packed)


def test_without_a_finished_run_there_is_nothing_to_pack(tmp_path, capsys):
    RunDirectory.of(tmp_path, FIRST).create(FIRST)
    assert main([*SUITE, "--runs", str(tmp_path), "--pack"]) == 0
    assert "Records: none to pack, no run is finished" in capsys.readouterr().out
    assert not (tmp_path / "leaderboards" / PACKED).exists()


# -- what is no file of records


def test_no_damaged_byte_goes_unseen(packed, tmp_path):
    content, damaged = packed.read_bytes(), tmp_path / "damaged.tar.xz"
    spoilt = [content[:cut] for cut in (0, 200, len(content) - 1)]
    for position in range(0, len(content), 37):
        spoilt.append(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])
    for each in spoilt:
        damaged.write_bytes(each)
        with pytest.raises(RecordError, match=r"cannot take records from .*damaged\.tar\.xz"), unpacked(damaged):
            pass


def write_tar(path, members):
    with tarfile.open(path, "w:xz") as archive:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(content), "/etc" if kind == tarfile.SYMTYPE else ""
            archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([], "it holds no run"),
        ([("runs/experiments/a/seed-0/result.json", tarfile.REGTYPE, b"{}")], "it holds 'runs/experiments"),
        ([("experiments/a/seed-0/log.txt", tarfile.REGTYPE, b"")], r"it holds '.*log\.txt'"),
        ([("experiments/../seed-0/result.json", tarfile.REGTYPE, b"{}")], "leads out of its folder"),
        ([("experiments/a/seed-0/result.json", tarfile.SYMTYPE, b"")], "which is no plain file"),
        ([("experiments/a/seed-0/result.json", tarfile.FIFOTYPE, b"")], "which is no plain file"),
    ],
)
def test_an_archive_with_anything_but_records_is_refused(members, told, tmp_path):
    write_tar(tmp_path / "other.tar.xz", members)
    with pytest.raises(RecordError, match=told), unpacked(tmp_path / "other.tar.xz"):
        pass


def pack_tar(path, write):
    """A packed tar of the members that ``write`` adds."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        write(archive)
    path.write_bytes(lzma.compress(made.getvalue(), preset=0))


def add(archive, name="metrics.jsonl", num_bytes=0, size=None, **about):
    member = tarfile.TarInfo(f"experiments/a/seed-0/{name}")
    member.size = num_bytes if size is None else size
    member.pax_headers = about
    archive.addfile(member, io.BytesIO(bytes(num_bytes)) if size is None else None)


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (lambda archive: add(archive, size=3 << 30), "of 3,221,225,472 bytes, expected at most"),
        (lambda archive: add(archive, "result.json", 1 << 25), "of 33,554,432 bytes, expected at most"),
        (lambda archive: add(archive, num_bytes=1 << 26), "it unpacks to more than records can be"),
        (lambda archive: add(archive, comment="x" * (1 << 25)), "a header claims 33,554,450 bytes"),
        (
            lambda archive: add(archive, **{"GNU.sparse.map": "0,0", "GNU.sparse.size": "3000000000"}),
            "is sparse, whose size is only claimed",
        ),
        (lambda archive: (add(archive), add(archive)), "metrics.jsonl' twice"),
    ],
    ids=["claims gigabytes", "no such record", "zeros", "a header of megabytes", "sparse", "twice"],
)
def test_a_small_file_that_unpacks_to_more_than_records_can_be_is_refused(write, told, tmp_path):
    pack_tar(tmp_path / "bomb.tar.xz", write)
    tracemalloc.start()
    with pytest.raises(RecordError, match=told), unpacked(tmp_path / "bomb.tar.xz"):
        pass
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


def test_two_files_of_records_in_one_are_refused_as_half_of_them_would_be_lost(packed, tmp_path):
    (tmp_path / "both.tar.xz").write_bytes(2 * packed.read_bytes())
    with pytest.raises(RecordError, match="goes on after its end mark"), unpacked(tmp_path / "both.tar.xz"):
        pass


def test_a_damaged_header_does_not_end_the_records_early(packed, tmp_path):
    content = bytearray(lzma.decompress(packed.read_bytes()))
    content[content.index(b"seed-1")] ^= 1
    (tmp_path / "damaged.tar.xz").write_bytes(lzma.compress(content))
    with pytest.raises(RecordError, match="there is no end mark"), unpacked(tmp_path / "damaged.tar.xz"):
        pass


def test_another_file_is_refused_by_the_command_with_what_was_expected(packed, tmp_path, capsys):
    packed.write_bytes(lzma.compress(b"no archive"))
    assert main([*SUITE, "--runs", str(packed), "--out", str(tmp_path / "again")]) == 1
    told = capsys.readouterr().err
    assert f"cannot take records from {packed}" in told
    assert "build.py --pack" in told


def test_a_board_of_packed_records_needs_a_folder_to_go_to(packed, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*SUITE, "--runs", str(packed)])
    assert ended.value.code == 2
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize(
    "packed", sorted(PUBLISHED.glob(f"*/*.{SUFFIX}")), ids=lambda path: path.relative_to(PUBLISHED).as_posix()
)
def test_each_published_board_with_records_is_made_of_them(packed, tmp_path):
    suite, profile = packed.parent.name, packed.name.removesuffix(f".{SUFFIX}")
    board = packed.parent / f"{profile}.md"
    if is_outdated(board):  # what it shows belongs to no experiment any more, but its numbers are those of its records
        with unpacked(packed) as store:
            found = {run.id: run.read_result() for run in list_runs(store)}
        shown = {run["run"]: float(run["top1_percent"]) for run in read_runs(board)}
        assert shown == pytest.approx({name: result.top1_percent for name, result in found.items()})
        return
    assert main(["--suite", suite, "--profile", profile, "--runs", str(packed), "--out", str(tmp_path)]) == 0
    tables = [path for path in packed.parent.glob(f"{profile}.*") if path.suffix in (".md", ".csv")]
    assert tables
    for table in tables:
        assert (tmp_path / table.name).read_bytes() == table.read_bytes()
