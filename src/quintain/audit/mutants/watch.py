"""Watch in the worker: records whether a mutated expression ever differs from the author's."""

from __future__ import annotations

from typing import Any

from quintain.audit.kernel.registry import probe_function

_SEEN: list[tuple[str, str]] = []


def saw(original: Any, mutated: Any) -> Any:
    """Records two values that differ, and returns the mutated one."""
    if len(_SEEN) < 3 and _differ(original, mutated):
        _SEEN.append((repr(original)[:200], repr(mutated)[:200]))
    return mutated


def _differ(one: Any, other: Any) -> bool:
    return type(one) is not type(other) or not bool(one == other)


@probe_function
def taken(_player: Any, _on: str, _value: Any) -> list[list[str]]:
    """Returns the values recorded since the last call; an op `ask` plays it."""
    seen = [list(pair) for pair in _SEEN]
    _SEEN.clear()
    return seen
