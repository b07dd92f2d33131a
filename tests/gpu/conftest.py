"""The proof on a GPU: ``GPU_PROOF`` names a file that gets a line of JSON for each test as it ends.

A test that has passed there is not run again, so that a proof that was killed goes on where it ended.
"""

import json
import os
from pathlib import Path

import pytest

PROOF = Path(os.environ["GPU_PROOF"]) if os.environ.get("GPU_PROOF") else None


def read_passed():
    lines = PROOF.read_text().splitlines() if PROOF and PROOF.exists() else []
    return {found["test"] for found in map(json.loads, lines) if found["outcome"] == "passed"}


def pytest_collection_modifyitems(items):
    passed = read_passed()
    for item in items:
        if item.nodeid in passed:
            item.add_marker(pytest.mark.skip(reason=f"has passed before, says {PROOF}"))


def pytest_runtest_logreport(report):
    if PROOF and "gpu" in report.keywords and (report.failed or (report.passed and report.when == "call")):
        line = {"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 1)}
        line |= dict(report.user_properties) | {"problem": report.longreprtext}
        PROOF.parent.mkdir(parents=True, exist_ok=True)
        with PROOF.open("ab", buffering=0) as file:  # a line by one call, whole or not at all
            file.write(json.dumps(line).encode() + b"\n")
