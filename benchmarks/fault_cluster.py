"""Faults of a cluster: of its controller, nodes and cables, by the tests that set a real one up on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from random import Random

from fault_counts import Counts, Fault, LeftOutError

_ROOT = Path(__file__).resolve().parents[1]


def attack(draw: Random, folder: Path) -> Counts:
    """Count the tests that are marked as faults: each injects what its name says, and compares with a local grid.

    Raises:
        LeftOutError: no cluster can be set up here: that takes root, on Debian or Ubuntu.
    """
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-m", "fault", str(_ROOT / "tests/slurm"), f"--junitxml={report}"]
    subprocess.run(command, cwd=_ROOT, env={**os.environ, "TEST_SLURM": "1"})
    tests = list(ElementTree.parse(report).iter("testcase"))
    broken = [test for test in tests if test.find("failure") is not None or test.find("error") is not None]
    num = len(tests) - sum(test.find("skipped") is not None for test in tests)
    if not num:
        raise LeftOutError("no cluster can be set up here")
    stories = tuple(test.get("name", "") for test in broken)
    return Counts(num, num - len(broken), num - len(broken), None, len(broken), stories)


def faults() -> list[Fault]:
    """All of the cluster's faults, once."""
    return [Fault("controller, nodes, cables", attack, rounds=1)]
