"""T: 25 days of eight tasks. On a day stories go on side by side, and each task begins where the one before ends.

A day is written once, by playing it: a task's own start is the world after the solutions of the tasks before it.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import msgspec

import quintain as qn
from quintain.state import Rng

from .desk import Desk
from .draft import Draft
from .goals import Call, Goal
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
"""Split to its days, and which stories are told on each."""

_ANSWER = "It is done."
_CLOSING = "Do what is asked and nothing else; the records must be right when you are done."


class Written(msgspec.Struct, frozen=True):
    """A task as it was written, and the world in which it begins."""

    story: str
    family: str
    prompt: str
    goal: Goal
    solution: tuple[Call, ...]
    start: Desk


def tasks(split: str) -> qn.Tasks[Desk]:
    """The tasks of a split, day by day."""
    return qn.Tasks(TASKS_A_DAY * len(DAYS[split]), functools.partial(_task, split))


def _task(split: str, index: int) -> qn.Task[Desk]:
    number, place = divmod(index, TASKS_A_DAY)
    written = day(split, number)[place]
    name = f"{split}-{number + 1}"
    return qn.Task(
        id=f"{split}-{number + 1:02}-{place + 1}-{written.family}",
        prompt=written.prompt,
        start=functools.partial(_start, split, number, place=place),
        truth=written.goal,
        solution=written.solution,
        answer=_ANSWER,
        day=name,
        tags={"family": written.family, "story": written.story, "day": name},
    )


def _start(split: str, number: int, *, place: int) -> Desk:
    return day(split, number)[place].start


@functools.lru_cache(maxsize=32)
def day(split: str, number: int) -> tuple[Written, ...]:
    """Write a day."""
    world = morning(split, number)
    memories: dict[str, dict[str, Any]] = {}
    written: list[Written] = []
    for story, step in _interleaved(DAYS[split][number].split()):
        start = world.copy()
        start.actor = 0
        seed = f"enterprise/{split}/{number}/{story}/{step.__name__}"
        rng = Rng(key=hashlib.blake2b(seed.encode(), digest_size=16).digest())
        draft = Draft(start.copy(), rng, memories.setdefault(story, {}))
        body = step(draft)
        request = f"{body} {draft.chatter()}".strip()
        prompt = f"{draft.introduction}\n\n{request}\n\n{_CLOSING}"
        written.append(Written(story, step.__name__, prompt, draft.goal, tuple(draft.solution), start))
        world = draft.world
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
