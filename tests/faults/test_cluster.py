"""Faults of a cluster: of its controller, nodes and cables, by the tests that set a real one up on this machine."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from campaign import Fault, leave_out

ROOT = Path(__file__).parents[2]


def attack(tally, draw, folder):
    """Count the tests that are marked as faults: each injects what its name says, and compares with a local grid."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-m", "fault", str(ROOT / "tests" / "slurm"), f"--junitxml={report}"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "TEST_SLURM": "1"})
    tests = [test for test in ElementTree.parse(report).iter("testcase") if test.find("skipped") is None]
    if not tests:
        leave_out("no cluster can be set up here: that takes root, on Debian or Ubuntu")
    for test in tests:
        is_whole = test.find("failure") is None and test.find("error") is None
        tally.add("" if is_whole else test.get("name"), noticed=is_whole, resumed=is_whole)


FAULTS = [Fault("controller, nodes, cables", attack, rounds=1)]


@pytest.mark.campaign
def test_the_faults_of_a_cluster_lose_nothing(play):
    play()
