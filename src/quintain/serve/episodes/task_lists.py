"""Lists of the tasks of a split, in every protocol that has them; unknown fields are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from quintain.environment import Environment
from quintain.task import Task

from .host import Host

T = TypeVar("T")

Describe = Callable[[Task[Any], str, int], T]
"""Describes a task to a client, by its split and its index."""

KEPT = 5_000
"""Descriptions of tasks that a server keeps."""

_descriptions: WeakKeyDictionary[Host, dict[tuple[object, ...], Any]] = WeakKeyDictionary()
"""Descriptions by environment, split, function and index; the oldest first."""


class Split(msgspec.Struct, forbid_unknown_fields=True):
    """A split by its name."""

    split: str


class Index(Split):
    """A task by its index in a split; negative from the end."""

    index: int


class Range(Split):
    """Tasks by a slice of a split, by Python's rules."""

    start: int | None = None
    stop: int | None = None


def splits(env: Environment[Any]) -> list[dict[str, str]]:
    """Returns the splits of an environment; one of a name of its own counts as a validation split for the clients."""
    kinds = {"train", "validation", "test"}
    return [{"name": name, "type": name if name in kinds else "validation"} for name in env.splits]


async def shown(host: Host, env: Environment[Any], split: str, *, part: slice, describe: Describe[T]) -> list[T]:
    """Returns descriptions of the tasks in a part of a split; raises Refused for an unknown split."""
    tasks = await host.tasks(env, split)
    known = _descriptions.setdefault(host, {})
    keys = [(env.name, split, describe, place) for place in range(len(tasks))[part]]
    # A task is a pure function of its place, and many clients ask for the whole list each time that they come.
    found: dict[tuple[object, ...], T] = {key: known[key] for key in keys if key in known}
    missing = [key for key in keys if key not in found]

    async def show() -> dict[tuple[object, ...], T]:
        return {key: describe(tasks[key[-1]], split, key[-1]) for key in missing}

    if missing:
        # Tasks may be made as they are listed: a few say nothing about how long it takes to make all.
        made = await host.apart((env.name, "list", len(missing).bit_length()), show)
        found |= made
        known |= made
        while len(known) > KEPT:
            del known[next(iter(known))]
    return [found[key] for key in keys]


async def one(host: Host, env: Environment[Any], wanted: Index, *, describe: Describe[T]) -> T:
    """Returns the description of one task; raises Refused for an unknown split or index."""
    count = len(await host.tasks(env, wanted.split))
    task = await host.task(env, wanted.split, wanted.index)
    return describe(task, wanted.split, wanted.index % count)
