"""T: 25 days of eight tasks. On a day stories go on side by side, and each task begins where the one before ends.

A day is written once, by playing it: a task's own start is the world after the solutions of the tasks before it.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

import quintain as qn
from quintain.authoring import key_of

from .desk import Desk
from .draft import CompanyDraft
from .schema import base
from .seeding import OPENING
from .state import Enterprise
from .stories import STORIES, Step

TASKS_A_DAY = 8
DAYS: dict[str, tuple[str, ...]] = {
    "train": (
        "onboarding incident",
        "purchase",
        "order price",
        "return expenses",
        "offboarding close",
        "ticket recruiting leave",
        "audit change budget",
        "transfer correction access visit",
        "renewal contract privacy policy",
        "supplier tender discount lead warranty",
        "onboarding recruiting",
        "order complaint",
        "offboarding budget discount",
        "incident change leave",
        "purchase",
    ),
    "validation": (
        "close access privacy",
        "return ticket",
        "onboarding transfer",
        "audit expenses role duplicate",
        "purchase",
    ),
    "test": (
        "purchase",
        "onboarding change",
        "order visit",
        "return incident",
        "offboarding renewal policy",
    ),
}
"""Stories of each day, by split."""

_ANSWER = "It is done."


def tasks(split: str) -> qn.Tasks[Desk]:
    """The tasks of a split, day by day."""
    return qn.Tasks(TASKS_A_DAY * len(DAYS[split]), lambda index: day(split, index // TASKS_A_DAY)[index % TASKS_A_DAY])


@functools.lru_cache(maxsize=32)
def day(split: str, number: int) -> tuple[qn.Task[Desk], ...]:
    """Writes the tasks of a day. Each begins in the world that the solutions of those before it leave."""
    world = morning(split, number)
    memories: dict[str, dict[str, Any]] = {}
    name = f"{split}-{number + 1}"
    written: list[qn.Task[Desk]] = []
    for place, (story, step) in enumerate(_interleaved(DAYS[split][number].split())):
        start = world.copy()
        start.actor = 0
        family = step.__name__
        draft = CompanyDraft(key_of("enterprise", split, number, story, family), start, memories.setdefault(story, {}))
        draft.request = f"{step(draft)} {draft.chatter()}".strip()
        tags = {"family": family, "story": story, "day": name}
        task = draft.task(f"{split}-{number + 1:02}-{place + 1}-{family}", answer=_ANSWER, tags=tags)
        written.append(msgspec.structs.replace(task, day=name))
        world = draft.desk
    return tuple(written)


def morning(split: str, number: int) -> Desk:
    """The company before a day's first task: every day begins in the same company, on another date."""
    world = Enterprise(db=base().fork())
    place = [(name, n) for name, days in DAYS.items() for n in range(len(days))].index((split, number))
    world.clock.now = OPENING + (place // 5 * 7 + place % 5) * 86400.0
    return world


def _interleaved(stories: list[str]) -> list[tuple[str, Step]]:
    """The steps of stories that go on side by side, each story's in order."""
    longest = max(len(STORIES[story]) for story in stories)
    return [
        (story, STORIES[story][place]) for place in range(longest) for story in stories if place < len(STORIES[story])
    ]
