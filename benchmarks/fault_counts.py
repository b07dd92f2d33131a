"""Counts what became of injected faults, by kind, for ``faults.py`` and its stages in the other ``fault_*`` files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

_HEADER = ("stage", "fault", "injected", "noticed", "resumed", "equal", "lost")
_MOST_STORIES = 5


class LeftOutError(Exception):
    """A fault that this machine does not let us inject."""


@dataclass(frozen=True)
class Counts:
    """Outcomes of faults.

    Attributes:
        injected: all of them.
        noticed: that ended in an error status, a failure or a refusal.
        resumed: after which the same command came to its end; None where there is nothing to resume.
        equal: after which weights, metrics or content were the undisturbed ones, bit for bit; None as above.
        lost: that left a wrong number, a hang, an error that is none of ours, or a run that does not go on.
        stories: of the first ones that were lost.
    """

    injected: int = 0
    noticed: int = 0
    resumed: int | None = None
    equal: int | None = None
    lost: int = 0
    stories: tuple[str, ...] = ()

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.injected + other.injected,
            self.noticed + other.noticed,
            _add(self.resumed, other.resumed),
            _add(self.equal, other.equal),
            self.lost + other.lost,
            (*self.stories, *other.stories)[:_MOST_STORIES],
        )


@dataclass(frozen=True)
class Fault:
    """One row of the table.

    Attributes:
        name: of the fault, and where it strikes.
        inject: does so once, or many times at once, in an empty folder, drawing from a generator of its own.
        rounds: how often the whole campaign calls it.
        rounds_in_tests: the same for the short part among the tests.
    """

    name: str
    inject: Callable[[Random, Path], Counts]
    rounds: int
    rounds_in_tests: int = 0


def judge(noticed: bool, resumed: bool, equal: bool, story: str) -> Counts:
    """Count one fault after which a run was started again.

    Args:
        noticed: whether anyone said so.
        resumed: whether the second start ended well.
        equal: whether the result has the bits of an undisturbed run's.
        story: is kept if it is lost.
    """
    is_lost = not (resumed and equal)
    return Counts(1, int(noticed), int(resumed), int(equal), int(is_lost), (story,) if is_lost else ())


def write_table(stages: dict[str, dict[str, Counts]]) -> str:
    """Markdown: a row for each fault, one for each stage's sum, and one for all."""
    rows = [(stage, name, counts) for stage, faults in stages.items() for name, counts in faults.items()]
    sums = [(stage, "all", sum(faults.values(), Counts())) for stage, faults in stages.items() if faults]
    rows += [*sums, ("all", "all", sum((counts for _, _, counts in rows), Counts()))]
    lines = [_HEADER, ("---", "---", *("---:" for _ in _HEADER[2:]))]
    for stage, name, one in rows:
        numbers = (one.injected, one.noticed, one.resumed, one.equal, one.lost)
        lines.append((stage, name, *("-" if number is None else f"{number:,}" for number in numbers)))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _add(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
