"""``site.toml`` and the requests for GPUs: what is read, what wins, what is refused; files of three public sites."""

import os
import re
from pathlib import Path

import pytest

from launchers.command.command_line import parse_options
from launchers.command.site_file import Site
from launchers.grid import main
from suite.base.errors import SpecError
from suite.base.exit_codes import Exit

ROOT = Path(__file__).parents[2]
SITES = sorted((ROOT / "examples/sites").glob("*.toml"))
SLURM = ["--suite", "sample_efficiency", "--cluster", "slurm"]


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads options in a folder with such a site file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def read(text, *options):
        Path("site.toml").write_text(text)
        return parse_options([*SLURM, *options])

    return read


def test_a_site_file_says_what_jobs_need_and_options_of_the_command_win(read):
    text = """
    partition = "gpu"
    gpus_per_node = "h100:4"
    mem_gb = 100
    runs = "$HOME/runs"
    concurrency = 8
    setup = ["module load cuda"]
    [sbatch]
    exclusive = true
    nice = 10
    """
    found = read(text, "--mem-gb", "200", "--slurm", "nice=20", "export=NONE")
    assert (found.site.partition, found.site.node_gpus, found.site.mem_gb, found.site.concurrency) == ("gpu", 4, 200, 8)
    assert found.site.sbatch == {"exclusive": True, "nice": "20", "export": "NONE"}
    assert found.runs == Path(os.environ["HOME"]) / "runs"
    assert read(text, "--runs", "here", "--max-parallel", "2").runs == Path("here")
    assert read(text, "--max-parallel", "2").site.concurrency == 2
    site = read(text, "--gres", "gpu:2").site
    assert (site.gpus_per_node, site.gres, site.node_gpus) == (None, "gpu:2", 2)  # one request, the command's


def test_a_site_file_is_named_or_here_or_in_the_configuration_folder_and_local_grids_ask_for_none(read, tmp_path):
    assert read('partition = "here"').site.partition == "here"
    (tmp_path / "named.toml").write_text('partition = "named"')
    assert parse_options([*SLURM, "--site", "named.toml"]).site.partition == "named"
    assert parse_options(SLURM[:2]).site == Site()
    folder = tmp_path / "config/convolutional-prior"
    folder.mkdir(parents=True)
    Path("site.toml").rename(folder / "site.toml")
    assert parse_options(SLURM).site.partition == "here"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('partiton = "gpu"', r"unknown key of site.toml: 'partiton'. Did you mean 'partition'\?"),
        ('time_min = "1h"', "site.toml: time_min is '1h': expected a valid integer"),
        ("nodes = 0", "site.toml: nodes is '0': expected greater than 0"),
        ('setup = "module load x"', "site.toml: setup is 'module load x': expected a valid list"),
        ('setup = ["a\\nb"]', r"site.toml: setup.0 is .a.nb.: String should match"),
        ('account = "a; rm"', "site.toml: account is 'a; rm': 'a; rm' cannot be passed to sbatch"),
        ('gpus_per_node = "h100:x"', "gpus_per_node asks for 'h100:x': expected a number, or TYPE:NUMBER"),
        ('gpus = 3\nnodes = 2', "gpus 3 cannot be shared by 2 nodes"),
        ('gres = "gpu:2"\ngpus_per_node = 2', "gpus_per_node and gres both ask for GPUs"),
        ('container_runtime = "podman"', "container_runtime is 'podman': expected 'apptainer', 'docker'"),
        ('[sbatch]\nwrap = "id"', "site.toml: unknown key of --slurm or .sbatch. 'wrap'"),
        ('runs = "$NOT_SET_HERE/runs"', "runs is .*: a variable in it is not set here"),
        ("partition = gpu", "site.toml: cannot be read: Invalid value"),
    ],
)  # fmt: skip
def test_what_a_site_file_cannot_say_is_refused_with_its_name_and_what_was_expected(read, text, message):
    with pytest.raises(SpecError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("request_for", "number"),
    [
        ({"gpus_per_node": 4}, 4), ({"gpus_per_node": "h100:4"}, 4), ({"gpus_per_node": "a100:2,v100:1"}, 3),
        ({"gpus_per_node": "1g.10gb:2"}, 2), ({"gres": "gpu:h100:4,nvme:1"}, 4), ({"gres": "gpu"}, 1),
        ({"gres": "nvme:1"}, 0),
        ({"gpus": "h100:8", "nodes": 2}, 4), ({"implied_gpus": 4}, 4), ({}, 0), ({"sbatch": {"gpus-per-node": "2"}}, 2),
    ],
)  # fmt: skip
def test_how_many_gpus_a_node_has_follows_from_the_request(request_for, number):
    assert Site(**request_for).node_gpus == number


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.stem)
def test_the_files_of_public_sites_make_a_script_where_there_is_no_slurm(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    options = ["--profile", "gpu", "--only", "train_fraction=1", "--dry-run", "--site", str(path), "--runs", "runs"]
    assert main([*SLURM, *options]) == Exit.DONE
    said = capsys.readouterr().out
    site = parse_options([*SLURM, "--site", str(path)]).site
    assert f"#SBATCH --ntasks-per-node={site.node_gpus}" in said
    assert f"#SBATCH --{f'gres={site.gres}' if site.gres else f'gpus-per-node={site.gpus_per_node}'}\n" in said
    assert f"#SBATCH --account={site.account}" in said
    assert all(line in said for line in site.setup)
    assert ("exec --rocm" in re.sub(r"--bind \S+ ", "", said)) == ("--rocm" in site.container_options)
    assert "SLURM was not asked" in said


def test_a_partition_that_implies_its_gpus_is_asked_for_none(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    options = ["--profile", "gpu", "--only", "train_fraction=1", "--dry-run", "--implied-gpus", "4", "--runs"]
    assert main([*SLURM, *options, str(tmp_path)]) == Exit.DONE
    said = capsys.readouterr().out
    assert "#SBATCH --ntasks-per-node=4" in said
    assert not re.search(r"#SBATCH --(gpus|gres)", said)


def test_gpus_for_a_profile_that_trains_on_cpus_are_refused(tmp_path, capsys):
    assert main([*SLURM, "--gpus-per-node", "4", "--dry-run", "--runs", str(tmp_path)]) == Exit.MISUSE
    assert "GPUs are for GPU profiles" in capsys.readouterr().err
