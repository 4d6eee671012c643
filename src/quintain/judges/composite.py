"""Composite criteria: several criteria as one, with each part in the record."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

from quintain.errors import DefinitionError
from quintain.state import S
from quintain.trace import Level, Reward
from quintain.verifier import Criterion, EpisodeView, Score


def weighted(*parts: Criterion[S], name: str = "weighted") -> Criterion[S]:
    """Returns a criterion with the weighted sum of its parts: the sum of weight * value.

    Its range is that of the sum. A part that does not apply counts in neither sum nor range; if none applies, neither
    does the composite.

    Args:
        parts: Criteria at trajectory level with distinct names; the value of one is raw, or normalized if it says so.
        name: Name of the criterion.

    Raises:
        DefinitionError: A part is at another level, or names repeat.
    """
    _check(parts)
    sides = [sorted(part.weight * value for value in _range(part)) for part in parts]

    async def judge(view: EpisodeView[S]) -> Score:
        found = [await _judged(part, view) for part in parts]
        counted = [one for one in found if one.value is not None]
        return _score(math.fsum(one.weight * (one.value or 0.0) for one in counted) if counted else None, found)

    return _composite(
        name, judge, parts, sides=(sum(min(0.0, low) for low, _ in sides), sum(max(0.0, high) for _, high in sides))
    )


def gated(*gates: Criterion[S], then: Criterion[S], name: str = "gated") -> Criterion[S]:
    """Returns a criterion with the value of `then` if every gate has its highest value, else 0.

    Gates are judged in their order; at the first that is below its highest value the rest is not run, so a costly part
    comes last. A gate that does not apply is open.

    Args:
        gates: Criteria at trajectory level, such as one that the answer has the right form.
        then: The criterion behind the gates.
        name: Name of the criterion.

    Raises:
        DefinitionError: A gate is missing, a part is at another level, or names repeat.
    """
    if not gates:
        raise DefinitionError("gated needs a gate before `then`")
    _check([*gates, then])

    async def judge(view: EpisodeView[S]) -> Score:
        found: list[Reward] = []
        for gate in gates:
            found.append(await _judged(gate, view))
            value = found[-1].value
            if value is not None and value < _range(gate)[1]:
                return _score(0.0, found, f"gate {gate.name!r} is closed: {found[-1].reason}".removesuffix(": "))
        found.append(await _judged(then, view))
        return _score(found[-1].value, found)

    low, high = _range(then)
    return _composite(name, judge, [*gates, then], sides=(min(0.0, low), max(0.0, high)))


def product(*parts: Criterion[S], name: str = "product") -> Criterion[S]:
    """Returns a criterion with the product of its parts. A part that does not apply is left out.

    Args:
        parts: Criteria at trajectory level with values from 0, weight 1 and distinct names.
        name: Name of the criterion.

    Raises:
        DefinitionError: A part is at another level, can be negative or has a weight, or names repeat.
    """
    _check(parts)
    for part in parts:
        if _range(part)[0] < 0 or part.weight != 1:
            raise DefinitionError(f"part {part.name!r} of a product must have values from 0 and weight 1, got {part}")

    async def judge(view: EpisodeView[S]) -> Score:
        found = [await _judged(part, view) for part in parts]
        values = [one.value for one in found if one.value is not None]
        return _score(math.prod(values) if values else None, found)

    return _composite(name, judge, parts, sides=(0.0, math.prod(max(1.0, _range(part)[1]) for part in parts)))


def _check(parts: Sequence[Criterion[Any]]) -> None:
    names = [part.name for part in parts]
    if not parts or len(set(names)) != len(names):
        raise DefinitionError(f"the parts of a composite need distinct names, at least one, got {names}")
    for part in parts:
        if part.level is not Level.TRAJECTORY:
            raise DefinitionError(f"part {part.name!r} of a composite must be at trajectory level, got {part.level}")


def _range(part: Criterion[Any]) -> tuple[float, float]:
    return (0.0, 1.0) if part.normalize else (part.low, part.high)


async def _judged(part: Criterion[S], view: EpisodeView[S]) -> Reward:
    """Returns the reward of one part, which must keep its own range."""
    verdict: Any = part.fn(view)
    return part.reward(await verdict if inspect.isawaitable(verdict) else verdict)


def _score(value: float | None, found: Sequence[Reward], reason: str = "") -> Score:
    parts = {
        one.name: {"value": one.value, "weight": one.weight, "reason": one.reason, "details": one.details}
        for one in found
    }
    shown = ", ".join(f"{one.name} {'skipped' if one.value is None else f'{one.value:.4g}'}" for one in found)
    return Score(value, reason or shown, {"parts": parts})


def _composite(name: str, judge: Any, parts: Sequence[Criterion[S]], *, sides: tuple[float, float]) -> Criterion[S]:
    is_external = any(part.external for part in parts)
    low, high = sides
    return Criterion(name=name, level=Level.TRAJECTORY, fn=judge, low=low, high=high, external=is_external)
