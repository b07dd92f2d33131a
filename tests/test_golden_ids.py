"""The identities of all experiments, against those that are stored: of now, and of protocol 1.

``python tests/test_golden_ids.py > tests/golden/ids.txt`` stores the present ones.
"""

from collections import Counter, defaultdict
from pathlib import Path

from suite.papers import get_suite, list_suites

GOLDEN = Path(__file__).parent / "golden"
_CONVIT = {
    "ablation": 14,
    "cifar100": 6,
    "distillation": 7,
    "imagenet": 12,
    "locality": 10,
    "masking": 10,
    "probes": 10,
    "psa": 2,
}
_INIT = {"attention_maps": 6, "datasets": 15, "heads": 20, "position": 4, "pseudo_input": 72, "width_heads": 80}
CHANGED = {
    # by DeiT's lag and its mixing by process, and on CIFAR-100 ImageNet's normalization
    ("convit_ablation", "paper"): 14,
    ("convit_cifar100", "paper"): 6,
    ("convit_distillation", "paper"): 6,
    ("convit_imagenet", "paper"): 12,
    ("convit_locality", "paper"): 10,
    ("convit_masking", "paper"): 10,
    ("convit_probes", "paper"): 10,
    ("convit_psa", "paper"): 2,
    ("sample_efficiency", "paper"): 10,
    ("cmhsa_cifar100", "paper"): 27,
    ("cmhsa_warmup", "paper"): 19,
    # by a laptop's profile on an 8x8 grid, with 500 images and more
    **{(f"convit_{name}", profile): number for name, number in _CONVIT.items() for profile in ("laptop", "smoke")},
    **{("sample_efficiency", profile): 10 for profile in ("laptop", "smoke")},
    # by ImageNet's normalization
    ("cmhsa_cifar100", "gpu"): 27,
    ("cmhsa_warmup", "gpu"): 19,
    # by Cordonnier's normalization, and their schedule; of convit_distillation the teacher and its three students
    **{("cordonnier_cifar10", profile): 6 for profile in ("laptop", "gpu", "paper", "smoke")},
    **{("cordonnier_heads", profile): 10 for profile in ("laptop", "gpu", "paper", "smoke")},
    ("convit_distillation", "gpu"): 4,
    # by test images that are shown whole, as training images are
    **{("cmhsa_cifar100", profile): number for profile, number in {"laptop": 17, "smoke": 13}.items()},
    **{("cmhsa_warmup", profile): number for profile, number in {"laptop": 10, "smoke": 6}.items()},
    # by the test crop of the authors' command, and on ImageNet by timm's normalization, crop and interpolation
    **{(f"init_{name}", profile): number for name, number in _INIT.items() for profile in ("gpu", "paper")},
    ("init_datasets", "paper"): 20,
    **{("convmixer_filters", profile): 24 for profile in ("gpu", "paper")},
}
"""What is another experiment since protocol 1, (suite, profile) -> how many: the changes that a field shows."""


def present_lines():
    """``suite profile id`` of every experiment, in the order of the grids."""
    lines = []
    for name in list_suites():
        suite = get_suite(name)
        for profile in (*suite.profiles, "smoke"):
            lines += [f"{name} {profile} {experiment.id}" for experiment in suite.profile(profile).experiments()]
    return lines


def stored_lines(name):
    return (GOLDEN / name).read_text().splitlines()


def test_identities_are_those_that_are_stored():
    assert present_lines() == stored_lines("ids.txt"), (
        "an identity that changes orphans its finished runs. Where that is meant, name the tables under Protocol in "
        "CHANGELOG.md and run: python tests/test_golden_ids.py > tests/golden/ids.txt"
    )


def test_the_identities_that_are_named_have_changed_since_protocol_1_and_no_others():
    present = defaultdict(set)
    for line in present_lines():
        suite, profile, identity = line.split()
        present[suite, profile].add(identity)
    lost = Counter()
    for line in stored_lines("ids-protocol-1.txt"):
        suite, profile, identity = line.split()
        lost[suite, profile] += identity not in present[suite, profile]
    assert {place: number for place, number in lost.items() if number} == CHANGED


if __name__ == "__main__":
    print("\n".join(present_lines()))
