"""In the child: whether a mutated expression ever had another value than the one that the author wrote."""

from __future__ import annotations

from typing import Any

_SEEN: list[tuple[str, str]] = []


def saw(original: Any, mutated: Any) -> Any:
    """Remember two values that are different; the mutated one is what goes on."""
    if len(_SEEN) < 3 and _differ(original, mutated):
        _SEEN.append((repr(original)[:200], repr(mutated)[:200]))
    return mutated


def _differ(one: Any, other: Any) -> bool:
    return type(one) is not type(other) or not bool(one == other)


def taken(_player: Any, _on: str, _value: Any) -> list[list[str]]:
    """What was seen since it was last asked; played by an op `ask`."""
    seen = [list(pair) for pair in _SEEN]
    _SEEN.clear()
    return seen
