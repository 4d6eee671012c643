"""Registry of bugs: each is a class that changes one thing of a clean world, under `@seeded`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

KLASSES = (
    "stale_cache", "reward_hack", "false_resolution", "silent_default", "reset_leak", "reward_clipping", "data_realism",
    "action_drift", "races", "judge", "leak", "unsolvable", "flaky_verifier",
)  # fmt: skip
World = TypeVar("World", bound=type[Any])


@dataclass(frozen=True)
class Bug:
    """One seeded bug."""

    name: str
    """Name of its factory in `subjects.py`."""
    environment: str
    """The clean world that it is made of, a key of CLEAN."""
    klass: str
    """One of the thirteen slugs."""
    part: str
    """Component to fix: T, H, V, S or C."""
    story: str
    """Description of the bug in a sentence."""
    needs: tuple[str, ...]
    """Abilities needed to see it besides calling tools: optional methods, or threads, load, process, sessions, time,
    reset (a second episode in one session), rescore, meaning (to understand a description in words, or the use of a
    result).
    """
    tasks: tuple[str, ...]
    """Beginnings of the ids of the tasks that it harms; empty: all."""
    also: tuple[str, ...] = ()
    """Other classes under which a finding names the same defect as rightly."""


FOUND: dict[str, tuple[Bug, Callable[[], Any]]] = {}


def seeded(
    klass: str, part: str, *needs: str, tasks: tuple[str, ...] = (), also: tuple[str, ...] = ()
) -> Callable[[World], World]:
    """Write a bug down; its story is the class's docstring."""
    assert {klass, *also} <= set(KLASSES)
    assert part in tuple("THVSC")

    def keep(world: World) -> World:
        environment = world.__mro__[1].__module__.rpartition(".")[2]
        name = f"{environment}__{re.sub(r'(?<!^)(?=[A-Z])', '_', world.__name__).lower()}"
        assert name not in FOUND
        assert world.__doc__
        story = " ".join(world.__doc__.split())
        FOUND[name] = (Bug(name, environment, klass, part, story, needs, tasks, also), world)
        return world

    return keep
