"""What is asked about the tasks of a split, and told, in every protocol that lists them; unknown fields are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from quintain.environment import Environment
from quintain.task import Task

from .host import Host

T = TypeVar("T")

Tell = Callable[[Task[Any], str, int], T]
"""What is told of a task, by its split and its place in it."""


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
    places = range(len(tasks))[part]

    async def show() -> list[T]:
        return [tell(tasks[place], split, place) for place in places]

    # Tasks may be made as they are listed: a few say nothing about how long it takes to make all.
    return await host.apart((env.name, "list", len(places).bit_length()), show)


async def one(host: Host, env: Environment[Any], wanted: Index, *, tell: Tell[T]) -> T:
    """What is told of one task.

    Raises:
        Refused: There is no such split or place.
    """
    count = len(await host.tasks(env, wanted.split))
    task = await host.task(env, wanted.split, wanted.index)
    return tell(task, wanted.split, wanted.index % count)
