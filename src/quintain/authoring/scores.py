"""Scores that environments have in common. Multiplied, they pay only for a job that is done, alone, by the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from quintain.verifier import Score, StepView, reward


class Breaches(NamedTuple):
    """Broken rules, each in words for a reader."""

    forbidden: list[str]
    """Breaches that take the whole score."""
    careless: list[str]


@reward(level="step")
def sound_call(effect: StepView[Any]) -> Score:
    """Scores 1 for a call that the world could carry out, or that met a planned fault."""
    if effect.step.is_error and effect.step.fault is None:
        return Score(0.0, f"{effect.step.call.name} was refused")
    return Score(1.0)


def squared(missing: Sequence[str], total: int) -> Score:
    """Scores the share of the goals that are reached, squared, so that half of a job is worth a quarter."""
    share = (total - len(missing)) / total
    return Score(share * share, "; ".join(missing))


def untouched(stray: Sequence[str]) -> Score:
    """Scores 1 without stray changes, half for one, 0 for more."""
    return Score(max(0.0, 1.0 - len(stray) / 2), "; ".join(stray))


def lawful(found: Breaches) -> Score:
    """Scores 0 for a forbidden act; each careless one halves the score."""
    return Score(0.0 if found.forbidden else 0.5 ** len(found.careless), "; ".join([*found.forbidden, *found.careless]))


def lawful_step(before: Breaches, after: Breaches) -> Score:
    """Scores 0 for a step after which there are breaches that were not there before."""
    if before == after:
        return Score(1.0)
    known = {*before.forbidden, *before.careless}
    new = [one for one in [*after.forbidden, *after.careless] if one not in known]
    return Score(float(not new), "; ".join(new))
