"""Delta debugging: the smallest probe for which a claim still holds (Zeller and Hildebrandt, TSE 2002, "ddmin").

First over ops, in halves, quarters, eighths..., then over the arguments of the remaining calls. Marked ops, which the
claim reads, and resets stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict

from .probe import Op, Probe

Holds = Callable[[Probe], bool]


def smaller(probe: Probe, holds: Holds, most: int) -> Probe:
    """Returns a probe from which no single op can be removed, as far as `most` candidates go.

    Args:
        probe: Probe for which the claim holds.
        holds: True if the claim still holds for a candidate.
        most: Number of candidates to play.
    """
    left = [most]

    def trial(candidate: Probe) -> bool:
        if left[0] <= 0:
            return False
        left[0] -= 1
        return holds(candidate)

    return _arguments(_ops(probe, trial), trial)


def _removable(probe: Probe) -> list[int]:
    return [place for place, op in enumerate(probe.ops) if not op.mark and op.do != "reset"]


def _ops(probe: Probe, holds: Holds) -> Probe:
    parts = 1
    while places := _removable(probe):
        size = max(1, len(places) // parts)
        for start in range(0, len(places), size):
            candidate = probe.without(places[start : start + size])
            if holds(candidate):
                probe, parts = candidate, max(1, parts - 1)
                break
        else:
            if size == 1:
                break
            parts *= 2
    return probe


def _arguments(probe: Probe, holds: Holds) -> Probe:
    place = 0
    while place < len(probe.ops):
        for candidate in _simpler(probe.ops[place]):
            tried = Probe((*probe.ops[:place], candidate, *probe.ops[place + 1 :]), probe.context)
            if holds(tried):
                probe = tried
                break
        else:
            place += 1
    return probe


def _simpler(op: Op) -> Iterator[Op]:
    """Yields the call with fewer and with shorter arguments, the simplest first."""
    arguments: Any = op.value
    if op.do != "call" or not is_dict(arguments):
        return
    if len(arguments) > 1:
        yield msgspec.structs.replace(op, value={})
    for name, value in arguments.items():
        yield msgspec.structs.replace(op, value={key: one for key, one in arguments.items() if key != name})
        if isinstance(value, str) and len(value) > 40:
            yield msgspec.structs.replace(op, value=arguments | {name: value[:8]})
