"""T: incidents without end; task i of a split is a pure function of (split, i)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quintain.authoring import LEVELS, generated

from .description import families
from .draft import Incident, RoutedIncident

COUNTS = {"train": 2400, "validation": 240, "test": 480}
"""Tasks of a split."""
_ANSWER = "The incident is repaired and reported."


def _write(name: str) -> Callable[[Incident], str]:
    def write(case: Incident) -> str:
        case.befall(name)
        return _ANSWER

    write.__name__ = name
    return write


FAMILIES: Mapping[str, Mapping[str, tuple[Callable[[Incident], str], ...]]] = {
    family: {level: tuple(map(_write, known)) for level in LEVELS} for family, known in families().items()
}
"""Family of root causes to what writes their incidents, by level."""

tasks = generated("ops", Incident, FAMILIES, counts=COUNTS)
routed_tasks = generated("ops", RoutedIncident, FAMILIES, counts=COUNTS)
"""The same tasks in worlds whose tools belong to subagents."""
