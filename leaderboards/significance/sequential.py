"""``--seeds until=H``: seeds until a headline is known to H points, whatever it says.

Look first at five seeds an arm, then after every further one, all arms together; stop when 1.15 times the half-width of
the 95 % interval is at most H, and print the interval 1.15 times as wide. To look again and again and stop at a lucky
narrow interval costs coverage, which the factor gives back: simulated, at least 95 % for deviations of .3 to 1.5 at
H = .5 (``benchmarks/seed_statistics.py``); the plain interval from three seeds on has 90 %. Whether zero is inside is
never looked at: stopping for that would find effects that are not there.
"""

from __future__ import annotations

from leaderboards.significance.estimates import Estimate, Interval

FIRST_LOOK = 5
WIDENING = 1.15


def widened(estimate: Estimate) -> Interval | None:
    """The interval that may be shown after a stop."""
    reach = estimate.interval
    if reach is None or estimate.mean is None:
        return None
    return Interval(estimate.mean - WIDENING * reach.half_width, estimate.mean + WIDENING * reach.half_width)


def is_decided(estimate: Estimate, target: float) -> bool:
    """Whether the widened interval's half-width is at most ``target``, with at least five seeds an arm."""
    reach = widened(estimate)
    return reach is not None and min(estimate.sizes) >= FIRST_LOOK and reach.half_width <= target
