"""Runs in containers: stand-ins for Apptainer, pyxis and Docker check what they are called with. The shell, Python and
the end of a job are real, and what is inside has none of SLURM's programs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from launchers.command.options import GridOptions
from launchers.command.site_file import Site
from launchers.core.plan import make_plan
from launchers.slurm.submission_record import write_submission
from launchers.slurm.submit import Submitter
from suite.base.errors import SpecError
from suite.papers import get_suite
from suite.spec.resources import Resources

ROOT = Path(__file__).parents[2]
SUITE = get_suite("sample_efficiency")
# Keeps what it was called with, and lets the end of a job alone begin what follows its options, without SLURM on PATH.
INSIDE = """#!/bin/bash
printf '%s\\n' "$(printf '%s\\t' "$0" "$@")" >> CALLS
case "$*" in *slurm.requeue*) ;; *) exit 3;; esac
while [ "$1" != env ]; do shift; done
shift
PATH=EMPTY exec /usr/bin/env "$@"
"""
JOB = {
    "SLURM_JOB_ID": "70", "SLURM_ARRAY_JOB_ID": "70", "SLURM_ARRAY_TASK_ID": "0", "SLURMD_NODENAME": "node1",
    "SLURM_JOB_NUM_NODES": "1", "SLURM_RESTART_COUNT": "0",
}  # fmt: skip


@pytest.fixture
def tools(tmp_path):
    """Puts programs on a PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "empty").mkdir()

    def put(name, text):
        path = tmp_path / "bin" / name
        path.write_text(text.replace("CALLS", str(tmp_path / "calls")).replace("EMPTY", str(tmp_path / "empty")))
        path.chmod(0o755)

    return put


def end_job(tmp_path, site, **resources):
    """Run a job's script in which no run begins; returns what was called, and SLURM's calls."""
    store, runs = tmp_path / "store", SUITE.profile("smoke").experiments()[:1]
    options = GridOptions(suite=SUITE.name, profile="smoke", runs=store, site=site)
    submitter = Submitter(make_plan(runs, store, Resources(**resources)), SUITE, options)
    submitter._code.write()
    folder = write_submission(store, submitter.submission)
    (folder / "70_0_0_log.out").touch()
    (tmp_path / "slurm").write_text("")
    done = subprocess.run(
        ["bash", "-c", submitter.script()], check=False, capture_output=True, text=True,
        env=JOB | {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
    )  # fmt: skip
    calls = [line.rstrip("\t").split("\t") for line in (tmp_path / "calls").read_text().splitlines()]
    assert not list(folder.glob("*.relay")), "the way out of the container is closed again"
    return calls, (tmp_path / "slurm").read_text().splitlines(), done.stdout + done.stderr, submitter


def put_scontrol(tools, tmp_path):
    show = 'case "$2" in job) echo "JobState=RUNNING Restarts=0 ExcNodeList=(null)";; hostnames) echo "$3";; esac'
    tools("scontrol", f'#!/bin/bash\n[ $1 = show ] || echo "$*" >> {tmp_path}/slurm\n{show}')
    tools("sinfo", "#!/bin/sh\nprintf 'node1\\nnode2\\n'")
    tools("squeue", "#!/bin/sh\nexit 0")


def test_apptainer_runs_processes_and_ending_which_reaches_slurm_outside(tmp_path, tools):
    put_scontrol(tools, tmp_path)
    tools("srun", '#!/bin/bash\nwhile [ "$1" != apptainer ]; do shift; done; exec "$@"')
    tools("apptainer", INSIDE)
    data = tmp_path / "images"
    site = Site(container="suite.sif", container_python=sys.executable, container_mounts=["/opt/x"])
    (begin, ending), slurm, said, submitter = end_job(tmp_path, site, data_dir=str(data))
    assert slurm == ["requeue 70_0", "update JobId=70_0 ExcNodeList=node1"], said
    for call, module in ((begin, "launchers.slurm.job"), (ending, "launchers.slurm.requeue")):
        assert call[1] == "exec"
        binds = [call[place + 1] for place, word in enumerate(call) if word == "--bind"]
        assert binds == [f"{tmp_path}/store:{tmp_path}/store", f"{data}:{data}", "/opt/x:/opt/x"]
        assert call[call.index("suite.sif") + 1] == "env"
        assert f"PYTHONPATH={submitter.submission.code}" in call
        assert f"IMAGESETS_DIR={data}" in call
        assert call[call.index("-m") + 1] == module
        assert "--nv" not in call  # this profile trains on CPUs


def test_pyxis_starts_the_processes_and_one_more_step_for_the_ending(tmp_path, tools):
    put_scontrol(tools, tmp_path)
    tools("srun", INSIDE)
    site = Site(container="nvcr.io#nvidia/pytorch:25.01-py3", container_python=sys.executable)
    (begin, ending), slurm, said, _ = end_job(tmp_path, site)
    assert slurm == ["requeue 70_0", "update JobId=70_0 ExcNodeList=node1"], said
    for call in (begin, ending):
        assert "--container-image=nvcr.io#nvidia/pytorch:25.01-py3" in call
        (mounts,) = [word for word in call if word.startswith("--container-mounts=")]
        assert f"{tmp_path}/store:{tmp_path}/store" in mounts
        assert call.index("env") > call.index(mounts)
        assert "--export=ALL" in call
    assert {"--ntasks=1", "--overlap"} <= set(ending)


def test_an_image_without_our_packages_is_named_with_node_and_log_and_the_cure(tmp_path, tools):
    put_scontrol(tools, tmp_path)
    tools("srun", '#!/bin/bash\nwhile [ "$1" != apptainer ]; do shift; done; exec "$@"')
    tools("apptainer", '#!/bin/sh\necho "ModuleNotFoundError: No module named pydantic" >&2; exit 1')
    (tmp_path / "calls").touch()
    *_, submitter = end_job(tmp_path, Site(container="bare.sif"))
    (start,) = (tmp_path / "store/slurm" / submitter.submission.name / "starts.jsonl").read_text().splitlines()
    found = json.loads(start)
    assert found["reason"].startswith("its Python ended with status 1 in the container bare.sif, see containers/")
    assert (found["node"], Path(found["log"]).name) == ("node1", "70_0_0_log.out")


@pytest.mark.parametrize(("runtime", "image"), [("docker", "suite"), ("apptainer", "suite.sif")])
def test_on_this_machine_the_whole_command_goes_on_in_the_container(tmp_path, tools, runtime, image):
    tools(runtime, "#!/bin/sh\nprintf '%s\\n' \"$@\" > CALLS\nexit 7")
    store = tmp_path / "store"
    options = ["--suite", "sample_efficiency", "--profile", "smoke", "--container", image, "--runs", str(store)]
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, ROOT / "launchers/grid.py", *options], env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == 7
    call = (tmp_path / "calls").read_text().splitlines()
    (code,) = store.glob("slurm/code/*")
    assert f"{store}:{store}" in call
    assert f"{tmp_path}:{tmp_path}" in call
    assert f"PYTHONPATH={code}" in call
    assert call[call.index("-m") + 1 :] == ["launchers.commands", "grid", *options]
    if runtime == "docker":
        assert call[:3] == ["run", "--rm", "--init"]
        assert call[call.index("--user") + 1] == f"{os.getuid()}:{os.getgid()}"


def test_a_container_that_cannot_start_there_is_refused(tmp_path):
    plan = make_plan(SUITE.profile("smoke").experiments()[:1], tmp_path, Resources())
    options = GridOptions(profile="smoke", runs=tmp_path, site=Site(container="x", container_runtime="docker"))
    with pytest.raises(SpecError, match="container_runtime docker starts no container in a job: expected apptainer"):
        Submitter(plan, SUITE, options)


# -- recipes


def test_the_dockerfile_is_one(tmp_path):
    text = re.sub(r"\\\n", " ", (ROOT / "containers/Dockerfile").read_text())
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert lines[0][0] == "FROM"
    assert {word for word, _ in lines} <= {"FROM", "COPY", "RUN", "ENTRYPOINT", "ENV", "WORKDIR"}
    copied = [source for word, rest in lines if word == "COPY" for source in rest.split()[:-1]]
    assert copied
    assert all((ROOT / source).exists() for source in copied)


def test_the_apptainer_recipe_is_one():
    head, *sections = re.split(r"^%", (ROOT / "containers/suite.def").read_text(), flags=re.M)
    fields = dict(line.split(": ") for line in head.splitlines() if line and not line.startswith("#"))
    assert fields.keys() == {"Bootstrap", "From"}
    bodies = {name: body for name, _, body in (section.partition("\n") for section in sections)}
    assert bodies.keys() <= {"files", "post", "environment", "runscript", "test", "labels"}
    assert all((ROOT / line.split()[0]).exists() for line in bodies["files"].splitlines() if line.strip())
    for script in (bodies["post"], bodies["test"]):
        subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    assert fields["From"] in (ROOT / "containers/Dockerfile").read_text()
