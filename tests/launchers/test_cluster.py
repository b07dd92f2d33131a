"""The words to SLURM and those read back, without a cluster; ``tests/slurm`` has a real one."""

import re

import pytest

from launchers.command.command_line import parse_options
from launchers.command.options import GridOptions
from launchers.command.site_file import Site, read_site, sbatch_value
from launchers.core.plan import make_plan
from launchers.slurm import queries as slurm
from launchers.slurm import sbatch
from launchers.slurm.submission_record import find_submissions, task_number, write_submission
from launchers.slurm.submit import Submitter
from suite.base.errors import RunError, SpecError
from suite.papers import get_suite
from suite.spec.resources import Resources

SUITE = get_suite("sample_efficiency")
EXPERIMENTS = SUITE.profile("smoke").experiments(range(3))
ALONE = EXPERIMENTS[4]


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder on PATH in which a test can put its own sbatch, squeue and srun."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(slurm, "_LOOK_S", 0)

    def put(name, text):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)

    for name in ("srun", "squeue", "scancel", "sacct"):
        put(name, "exit 0")
    put("sinfo", "exit 1")
    put("scontrol", "echo 'MaxArraySize            = 1001'")
    return put


def submitter(tmp_path, experiments=EXPERIMENTS, queued=None, max_arrays=None, **site):
    plan = make_plan(experiments, tmp_path, Resources())
    return Submitter(plan, SUITE, options_of(tmp_path, **site), queued, max_arrays)


def options_of(store, **site):
    return GridOptions(suite=SUITE.name, profile="smoke", seeds=range(3), runs=store, site=Site(**site))


def test_many_runs_are_one_array_of_jobs_that_train_several_each(tmp_path, tools):
    found = submitter(tmp_path, runs_per_job=4, concurrency=2)
    assert [len(task) for task in found.submission.tasks] == [4, 4, 4, 4, 4, 4, 4, 2]
    script = found.script()
    assert "#SBATCH --array=0-7%2" in script
    assert "#SBATCH --requeue" in script
    assert "--kill-on-bad-exit=1" in script
    assert "--export=ALL" in script
    assert script.count("srun") == 1


def test_every_run_is_found_in_its_task(tmp_path, tools):
    submission = submitter(tmp_path, runs_per_job=4).submission
    write_submission(tmp_path, submission)
    (found,) = find_submissions(tmp_path)
    assert found == submission
    assert all(experiment in found.tasks[found.task_of[experiment.id]] for experiment in EXPERIMENTS)


def test_a_job_s_name_says_which_task_it_is(tmp_path):
    submission = submitter(tmp_path).submission
    assert task_number(submission.array_name(1000), 7) == (submission.name, 1007)
    assert task_number("somebody-else", 7) is None


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("wrap=rm -rf /", r"unknown key of --slurm or \[sbatch\] 'wrap'"),
        ("gress=gpu:1", "Did you mean 'gres'"),
        ("gres", "expected KEY=VALUE"),
        ("comment=a\nrm -rf /", "no spaces, quotes, line breaks"),
        ("comment=$(id)", "no spaces, quotes, line breaks"),
        ("exclusive=", "no spaces, quotes, line breaks"),
    ],
)
def test_what_could_reach_a_shell_is_refused(pair, message):
    with pytest.raises(SpecError, match=message):
        parse_options(["--cluster", "slurm", "--slurm", pair])


def test_lists_as_slurm_writes_them_are_taken():
    more = {"exclude": "node[1-3,7]", "gres": "gpu:a100:4", "begin": "2027-01-01T00:00:00"}
    assert read_site(None, {"sbatch": more}).sbatch["exclude"] == "node[1-3,7]"
    assert sbatch_value("a100&nvlink") == "a100&nvlink"


def test_an_option_of_sbatch_that_needs_no_value_is_given_without_one(tmp_path, tools):
    script = submitter(tmp_path, sbatch={"exclusive": True, "nice": True, "tmp": "1G"}).script()
    assert re.findall(r"#SBATCH --((?:exclusive|nice|tmp).*)", script) == ["exclusive", "nice", "tmp=1G"]


@pytest.mark.parametrize("name", ["a\\b", "a%j", "a:b", "a\nb", "a\udcffb"])
def test_a_store_whose_jobs_could_not_log_or_import_there_is_refused(tmp_path, tools, name):
    with pytest.raises(SpecError, match="could not write logs or import code"):
        Submitter(make_plan(EXPERIMENTS, tmp_path, Resources()), SUITE, options_of(tmp_path / name))


HOSTILE = {
    "SQUEUE_STATES": "CD", "SBATCH_WAIT": "1", "SBATCH_EXPORT": "NONE", "SBATCH_ARRAY_INX": "0", "SLURM_CLUSTERS": "a",
    "SLURM_JOB_ID": "5", "SLURM_CPU_BIND": "none", "SRUN_EXPORT_ENV": "NONE", "SACCT_FORMAT": "user",
    "SINFO_FORMAT": "%P", "SCANCEL_STATE": "SUSPENDED", "SCONTROL_ALL": "1", "_SLURM_SPANK_OPTION_x": "1",
    "CUDA_VISIBLE_DEVICES": "0",
}  # fmt: skip


def test_no_program_of_slurm_sees_an_option_of_the_user_s_environment_or_of_an_outer_job(tmp_path, tools, monkeypatch):
    for name in ("sbatch", "squeue", "sacct", "scancel", "sinfo", "scontrol"):
        tools(name, f"env > {tmp_path}/{name}.env; echo 7")
    for name, value in (HOSTILE | {"SLURM_CONF": "/etc/here", "MINE": "kept"}).items():
        monkeypatch.setenv(name, value)
    found = submitter(tmp_path)
    found.test()
    found.submit()
    slurm.read_queue({0})
    slurm.read_ended(["x"], "2000-01-01", {0})
    slurm.scancel(["7"])
    slurm.max_array_size()
    slurm.leaves_nodes(["node1"])
    for name in ("sbatch", "squeue", "sacct", "scancel", "sinfo", "scontrol"):
        seen = dict(line.split("=", 1) for line in (tmp_path / f"{name}.env").read_text().splitlines())
        assert not HOSTILE.keys() & seen.keys(), name
        assert (seen["SLURM_CONF"], seen["MINE"]) == ("/etc/here", "kept")


@pytest.mark.parametrize(
    ("says", "ids"),
    [
        ("take; echo 101", ["101"]),
        ("take; echo 'Welcome, this is job 12 of today'; echo 101", ["101"]),
        ("take; echo 'Submitted batch job 101'", ["101"]),
        ("take; echo '101;lab'", ["101"]),
        ("take", ["101"]),
        ("take; echo 'error: Socket timed out on send/recv operation' >&2; exit 1", ["101"]),
        ("take; exec sleep 60", ["101"]),
        ("take; take; exit 1", ["101"]),
        ("take; echo 12; exit 1", ["101"]),
    ],
)
def test_a_job_that_slurm_has_taken_is_known_whatever_sbatch_said(tmp_path, tools, monkeypatch, says, ids):
    queue = tmp_path / "queue"
    queue.touch()
    take = f"take() {{ n=$((101 + $(wc -l < {queue}))); echo \"$n|PD|$(sed -n 's/.*--job-name=//p' $2)\" >> {queue}; }}"
    tools("sbatch", f"{take.replace('$2', '$file')}; file=$2; grep -q leaderboards.build $2 && exit 1; {says}")
    tools("squeue", f"cat {queue}")
    tools("scancel", f'for id in "$@"; do sed -i "/^$id|/d" {queue}; done')
    monkeypatch.setattr(sbatch, "_TIMEOUT_S", 0.5)
    found = submitter(tmp_path)
    found.submit()
    assert found.job_ids == ids
    assert queue.read_text() == f"101|PD|{found.submission.name}.0\n"


def test_where_slurm_does_not_say_whether_it_took_the_jobs_their_record_stays(tmp_path, tools):
    tools("sbatch", "echo 'Socket timed out' >&2; exit 1")
    tools("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    found = submitter(tmp_path)
    with pytest.raises(RunError, match=r"Socket timed out; squeue failed: Unable to contact .* is not known"):
        found.submit()
    assert find_submissions(tmp_path) == [found.submission]


def test_all_that_a_site_s_filter_says_is_shown_and_which_variables_do_not_count(tmp_path, tools, monkeypatch):
    monkeypatch.setenv("SBATCH_ACCOUNT", "lab")
    tools("sbatch", "echo 'error: ask the desk for a project' >&2; echo 'error: Unspecified error' >&2; exit 1")
    with pytest.raises(
        SpecError, match=r"ask the desk for a project; error: Unspecified error.*SBATCH_ACCOUNT of your"
    ):
        submitter(tmp_path).test()


def test_an_array_over_the_cluster_s_limit_is_split(tmp_path, tools):
    calls = tmp_path / "calls"
    refuse = "grep -q -- --array=0-29 $2 && { echo 'Invalid job array specification' >&2; exit 1; } || exit 0"
    tools("sbatch", f'[ "$1" = --test-only ] && {{ {refuse}; }}; cat $2 >> {calls}; echo 7')
    tools("scontrol", "echo 'MaxArraySize            = 12'")
    found = submitter(tmp_path, concurrency=5)
    found.test()
    found.submit()
    scripts = calls.read_text()
    assert scripts.count("--array=0-11%5") == 2
    assert scripts.count("--array=0-5%5") == 1
    assert scripts.count("#SBATCH --dependency=afterany:7\n") == 2  # five at once in all, not in each
    assert "leaderboards.build" in scripts
    assert scripts.count("srun") == scripts.count("--export=ALL") == 4
    assert len(found.job_ids) == 3


@pytest.fixture
def submitted(tmp_path, tools, graph):
    """Submits the graph to a SLURM whose jobs are numbered from 1; returns each array's task numbers and dependency."""
    count = f"n=$(($(cat {tmp_path}/count 2>/dev/null || echo 0) + 1)); echo $n > {tmp_path}/count"
    tools("sbatch", f"{count}; cat $2 >> {tmp_path}/calls; echo $n")

    def submit(*names, **options):
        experiments = [graph.get(name, ALONE) for name in names or graph]
        found = submitter(tmp_path, experiments=experiments, **options)
        found.submit()
        scripts = (tmp_path / "calls").read_text().split("#!/bin/bash\n")[1:]
        lines = [re.findall(r"#SBATCH --(?:array|dependency)=(\S+)", script) for script in scripts]
        return found.submission, lines

    return submit


def test_runs_that_need_others_are_held_back_until_the_arrays_of_those_have_ended(submitted, graph):
    submission, arrays = submitted(runs_per_job=2)
    names = [[name for e in task for name in graph if graph[name] == e] for task in submission.tasks]
    assert names == [["first", "second"], ["tuned"], ["mask_second"], ["mask_tuned"]]
    first, tuned, mask_second, mask_tuned, _ = arrays
    assert first == ["0-0%1"]
    assert tuned == mask_second == ["0-0%1", "afterany:1"]
    assert mask_tuned == ["0-0%1", "afterany:2"]


def test_runs_of_one_level_that_nobody_waits_for_hold_nobody_back(submitted, graph):
    submission, arrays = submitted("alone", "first", "tuned")
    assert [task[0] for task in submission.tasks] == [graph["first"], ALONE, graph["tuned"]]
    assert arrays[:3] == [["0-0%1"], ["0-0%1"], ["0-0%1", "afterany:1"]]


def test_parents_in_the_queue_of_another_submission_are_waited_for(submitted, graph):
    queued = {graph["first"].id: "812", graph["second"].id: "900"}
    _, arrays = submitted("tuned", "mask_second", "mask_tuned", queued=queued)
    assert arrays[:3] == [["0-0%1", "afterany:812"], ["0-0%1", "afterany:900"], ["0-0%1", "afterany:1"]]


def test_chained_arrays_have_the_same_tasks_and_wait_for_each_other_and_others_for_the_last(submitted, graph, tmp_path):
    submission, arrays = submitted("first", "tuned", chain=3, requeue=False)
    chained = [["0-0%1"], ["0-0%1", "afterany:1"], ["0-0%1", "afterany:2"]]
    assert arrays[:6] == [*chained, ["0-0%1", "afterany:3"], ["0-0%1", "afterany:4"], ["0-0%1", "afterany:5"]]
    scripts = (tmp_path / "calls").read_text()
    names = re.findall(r"--job-name=(\S+)", scripts)[:6]
    assert [task_number(name, 0) for name in names] == [(submission.name, 0)] * 3 + [(submission.name, 1)] * 3
    assert len(set(names)) == 6  # each is looked up by its own
    assert scripts.count("#SBATCH --no-requeue") == 6


def test_where_few_arrays_are_allowed_the_first_of_them_alone_are_submitted(submitted, graph):
    submission, arrays = submitted("first", "tuned", "mask_tuned", max_arrays=2)
    assert arrays == [["0-0%1"], ["0-0%1", "afterany:1"], ["afterany:1:2"]]
    assert len(submission.tasks) == 3


def test_another_cluster_that_is_named_is_asked_by_every_program(tmp_path, tools):
    for name in ("sbatch", "squeue", "sacct"):
        tools(name, f'echo "$SLURM_CLUSTERS $*" > {tmp_path}/{name}.said; echo "7;far"')
    slurm.speak_to(Site(sbatch={"clusters": "far"}))
    try:
        found = submitter(tmp_path, sbatch={"clusters": "far"})
        found.submit()
        slurm.read_queue({0})
        slurm.read_ended(["x"], "2000-01-01", {0})
    finally:
        slurm.speak_to(Site())
    assert found.job_ids == ["7"]
    assert all((tmp_path / f"{name}.said").read_text().startswith("far ") for name in ("sbatch", "squeue"))
    assert "--clusters=far" in (tmp_path / "sacct.said").read_text()
    assert "#SBATCH --clusters=far" in found.script()


def test_a_submission_that_slurm_would_refuse_leaves_nothing_behind(tmp_path, tools):
    tools("sbatch", "echo 'allocation failure: Invalid account or account/partition combination' >&2; exit 1")
    with pytest.raises(SpecError, match="Invalid account"):
        submitter(tmp_path).test()
    with pytest.raises(RunError, match="nothing was submitted"):
        submitter(tmp_path).submit()
    assert not list(tmp_path.glob("slurm/*/submission.json"))


def test_the_queue_is_read_by_one_call_whatever_else_the_user_runs(tmp_path, tools):
    fields = ["812", "3", "sample_efficiency-smoke-5f.10", "R", "None", "node2", "1", "12:00"]
    other = ["900", "N/A", "my-own-job", "PD", "Resources", "", "0", "1:00"]
    lines = "".join("".join(f"{field:255}" for field in job) + "\n" for job in (fields, other))
    (tmp_path / "queue").write_text(lines)
    tools("squeue", f"echo call >> {tmp_path}/calls; cat {tmp_path}/queue")
    (job,) = slurm.read_queue({0})
    assert (job.job_id, job.task, job.state, job.nodes, job.num_restarts) == ("812_3", 13, "R", "node2", 1)
    assert (tmp_path / "calls").read_text() == "call\n"


def test_a_machine_without_slurm_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SpecError, match="sbatch, squeue, srun not found on PATH"):
        slurm.check_there()
    with pytest.raises(RunError, match="did not answer"):
        slurm.read_queue({0})
