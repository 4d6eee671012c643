"""What is asked about the tasks of a split, and told, in every protocol that lists them; unknown fields are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from quintain.environment import Environment
from quintain.task import Task

from .host import Host

T = TypeVar("T")

Tell = Callable[[Task[Any], str, int], T]
"""What is told of a task, by its split and its place in it."""

KEPT = 5_000
"""So many of the tasks that a server has told of are not made again for the next who asks."""

_told: WeakKeyDictionary[Host, dict[tuple[object, ...], Any]] = WeakKeyDictionary()
"""What was told, by environment, split, way of telling and place; the oldest first."""


class Split(msgspec.Struct, forbid_unknown_fields=True):
    """Whose tasks."""

    split: str


class Index(msgspec.Struct, forbid_unknown_fields=True):
    """One task; from the end where the index is negative."""

    split: str
    index: int


class Range(msgspec.Struct, forbid_unknown_fields=True):
    """A slice, by Python's rules."""

    split: str
    start: int | None = None
    stop: int | None = None


def splits(env: Environment[Any]) -> list[dict[str, str]]:
    """The splits of an environment; one of a name of its own counts as a validation split, for clients know three."""
    kinds = {"train", "validation", "test"}
    return [{"name": name, "type": name if name in kinds else "validation"} for name in env.splits]


async def shown(host: Host, env: Environment[Any], split: str, *, part: slice, tell: Tell[T]) -> list[T]:
    """What is told of the tasks in a part of a split.

    Raises:
        Refused: The environment has no such split.
    """
    tasks = await host.tasks(env, split)
    told = _told.setdefault(host, {})
    keys: list[tuple[str, str, Tell[T], int]] = [(env.name, split, tell, place) for place in range(len(tasks))[part]]
    # A task is a pure function of its place, and many clients ask for the whole list each time that they come.
    found: dict[tuple[object, ...], T] = {key: told[key] for key in keys if key in told}
    missing = [key for key in keys if key not in found]

    async def show() -> list[T]:
        return [tell(tasks[place], split, place) for *_, place in missing]

    if missing:
        # Tasks may be made as they are listed: a few say nothing about how long it takes to make all.
        made = await host.apart((env.name, "list", len(missing).bit_length()), show)
        new: dict[tuple[object, ...], T] = dict(zip(missing, made, strict=True))
        found |= new
        told |= new
        while len(told) > KEPT:
            del told[next(iter(told))]
    return [found[key] for key in keys]


async def one(host: Host, env: Environment[Any], wanted: Index, *, tell: Tell[T]) -> T:
    """What is told of one task.

    Raises:
        Refused: There is no such split or place.
    """
    count = len(await host.tasks(env, wanted.split))
    task = await host.task(env, wanted.split, wanted.index)
    return tell(task, wanted.split, wanted.index % count)
