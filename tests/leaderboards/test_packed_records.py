"""Records packed into one file: the board comes out of it again, to the byte, and the grid takes its runs as done."""

import tarfile

import pytest

from leaderboards.build import main
from leaderboards.packed_records import SUFFIX
from leaderboards.published_boards import PUBLISHED
from suite.challenger import Challenger
from suite.challengers import record_challengers, with_challengers
from suite.records import RunDirectory
from suite.standing import stand
from suite.suites import get_suite

FIRST, SECOND = get_suite("sample_efficiency").profile("laptop").experiments()[:2]
SUITE = ["--suite", "sample_efficiency"]
PACKED = f"sample_efficiency/laptop.{SUFFIX}"


def contents_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(SUFFIX)}


@pytest.fixture
def store(finish_in, tmp_path):
    """Two finished runs with logged steps, and one that was only begun."""
    store = tmp_path / "store"
    for experiment, top1 in ((FIRST, 40.0), (SECOND, 50.0)):
        run = finish_in(store, experiment, top1)
        run.append_metrics({"step": 10, "loss": 1.5})
        run.log_path.write_text("printed on this machine\n")
        run.weights_path.write_bytes(b"weights")
    RunDirectory.of(store, FIRST.with_seed(1)).create(FIRST.with_seed(1))
    return store


@pytest.fixture
def packed(store):
    assert main([*SUITE, "--runs", str(store), "--seeds", "1", "--pack"]) == 0
    return store / "leaderboards" / PACKED


def test_a_board_is_built_from_the_packed_records_to_the_byte(packed, tmp_path):
    assert main([*SUITE, "--runs", str(packed), "--out", str(tmp_path / "again"), "--seeds", "1", "--pack"]) == 0
    assert contents_of(tmp_path / "again") == contents_of(packed.parent)
    assert (tmp_path / "again" / packed.name).read_bytes() == packed.read_bytes()


def test_unpacked_it_is_a_store_of_the_finished_runs_without_weights_and_logs(packed, tmp_path):
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "other", filter="data")
    runs = [RunDirectory.of(tmp_path / "other", experiment) for experiment in (FIRST, SECOND)]
    assert [stand(run, {}).state for run in runs] == ["done", "done"]
    assert runs[0].read_metrics() == [{"step": 10, "loss": 1.5}]
    files = {path.name for path in (tmp_path / "other").rglob("*") if path.is_file()}
    assert files == {"experiment.json", "metrics.jsonl", "result.json"}


def test_a_packed_board_and_a_store_of_further_seeds_are_one(packed, finish_in, tmp_path, capsys):
    for experiment, top1 in ((FIRST, 42.0), (SECOND, 54.0)):
        finish_in(tmp_path / "more", experiment.with_seed(1), top1)
    assert main([*SUITE, "--runs", str(tmp_path / "more"), "--runs", str(packed)]) == 0
    long = (tmp_path / "more/leaderboards/sample_efficiency/laptop.long.csv").read_text()
    assert ",2,2,41," in long
    assert ",2,2,52," in long


def test_whoever_was_entered_beside_the_papers_models_is_packed_too(store, finish_in, tmp_path):
    challenger = Challenger(name="mine", words="deit_micro", options={"depth": 2}, suites=("sample_efficiency",))
    record_challengers(store, [challenger])
    entered = with_challengers(get_suite("sample_efficiency"), [challenger]).profile("laptop").entries[-1]
    finish_in(store, entered.experiment, 60.0)
    assert main([*SUITE, "--runs", str(store), "--pack"]) == 0
    packed = store / "leaderboards" / PACKED
    assert main([*SUITE, "--runs", str(packed), "--out", str(tmp_path / "again")]) == 0
    assert "mine" in (tmp_path / "again/laptop.md").read_text()


def test_a_damaged_file_is_named_with_what_was_expected(packed, tmp_path, capsys):
    packed.write_bytes(packed.read_bytes()[:200])
    assert main([*SUITE, "--runs", str(packed), "--out", str(tmp_path / "again")]) == 1
    told = capsys.readouterr().err
    assert f"cannot unpack {packed}" in told
    assert "copy the file again" in told


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
    assert main(["--suite", suite, "--profile", profile, "--runs", str(packed), "--out", str(tmp_path)]) == 0
    tables = [path for path in packed.parent.glob(f"{profile}.*") if path.suffix in (".md", ".csv")]
    assert tables
    for table in tables:
        assert (tmp_path / table.name).read_bytes() == table.read_bytes()
