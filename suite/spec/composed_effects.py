"""How an effect is composed of numbers, beside ``number`` and the difference of two: sums, limits and sizes."""

from __future__ import annotations

from collections.abc import Iterable

from suite.spec.claims import Effect, Logged, number


def logged(
    suite: str,
    row: tuple[str, ...] | str,
    column: str,
    metric: str,
    *,
    layer: int | None = None,
    at: float = 1.0,
    table: str = "",
) -> Effect:
    """Make the effect that is one number of what a cell's runs have logged.

    Args:
        suite, row, column, table: of the cell.
        metric, layer, at: which number, as in ``Logged``.
    """
    effect = number(suite, row, column, table)
    reading = Logged(metric=metric, layer=layer, at=at)
    return effect.model_copy(update={"terms": (effect.terms[0].model_copy(update={"logged": reading}),)})


def scaled(effect: Effect, factor: float) -> Effect:
    """Multiply an effect."""
    return Effect(
        terms=tuple(term.model_copy(update={"weight": factor * term.weight}) for term in effect.terms),
        constant=factor * effect.constant,
        paper=None if effect.paper is None else factor * effect.paper,
    )


def mean_of(effects: Iterable[Effect]) -> Effect:
    """Average effects, of which there is at least one."""
    first, *others = effects
    total = first
    for other in others:
        total = total - scaled(other, -1)
    return scaled(total, 1 / (1 + len(others)))


def above(effect: Effect, limit: float) -> Effect:
    """By how much an effect exceeds a limit; a negative one allows it to lie so far below zero."""
    paper = None if effect.paper is None else effect.paper - limit
    return effect.model_copy(update={"constant": effect.constant - limit, "paper": paper})


def below(effect: Effect, limit: float) -> Effect:
    """By how much an effect falls short of a limit."""
    return above(scaled(effect, -1), -limit)


def sized(effect: Effect, paper: float) -> Effect:
    """State what the paper finds, where its tables do not print it."""
    return effect.model_copy(update={"paper": paper})
