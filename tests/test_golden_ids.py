"""The identities of all experiments, against those that are stored.

``python tests/test_golden_ids.py > tests/golden/ids.txt`` stores the present ones.
"""

from pathlib import Path

from suite.papers import get_suite, list_suites

GOLDEN = Path(__file__).parent / "golden"


def present_lines():
    """``suite profile id`` of every experiment, in the order of the grids."""
    lines = []
    for name in list_suites():
        suite = get_suite(name)
        for profile in (*suite.profiles, "smoke"):
            lines += [f"{name} {profile} {experiment.id}" for experiment in suite.profile(profile).experiments()]
    return lines


def test_identities_are_those_that_are_stored():
    assert present_lines() == (GOLDEN / "ids.txt").read_text().splitlines(), (
        "an identity that changes orphans its finished runs. Where that is meant, name the tables under Protocol in "
        "CHANGELOG.md and run: python tests/test_golden_ids.py > tests/golden/ids.txt"
    )


if __name__ == "__main__":
    print("\n".join(present_lines()))
