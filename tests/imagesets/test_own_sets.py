"""Image sets of one's own: offered by an installed distribution, or prepared in a format that is named."""

import os
import subprocess
import sys

import pytest

from imagesets.prepared import find_info
from suite.errors import SpecError

TULIPS = """
from imagesets.catalog import ImageSetInfo

HALF = (0.5, 0.5, 0.5)
TULIPS = ImageSetInfo("tulips", "Tulips", 17, 64, 1360, 340, HALF, HALF)
"""


def test_an_installed_plug_in_s_image_set_is_found_by_a_fresh_process(tmp_path):
    (tmp_path / "garden.py").write_text(TULIPS)
    info = tmp_path / "garden-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: garden\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[convolutional_prior.image_sets]\ntulips = garden:TULIPS\n")
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    grid = ["--suite", "sample_efficiency", "--dataset", "tulips", "--show", "--only", "train_fraction=0.2"]
    command = [sys.executable, "-m", "launchers.grid", *grid]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "profile laptop@tulips: 2 runs" in done.stdout


def test_a_set_that_is_there_in_another_format_says_which(run, tmp_path):
    run("folder")
    assert find_info("pets", tmp_path / "data", "folder").num_classes == 3
    told = r"pets is prepared in .*data/pets for --loader folder, not for memory: choose --loader folder, or prepare"
    with pytest.raises(SpecError, match=told):
        find_info("pets", tmp_path / "data", "memory")
    with pytest.raises(SpecError, match="unknown dataset 'pest'"):
        find_info("pest", tmp_path / "data", "memory")
