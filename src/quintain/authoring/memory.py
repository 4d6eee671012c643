"""Results by the content of a world, which criteria share without ever reading a stale one."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from quintain import resource
from quintain.errors import DefinitionError
from quintain.state import State
from quintain.table import Table
from quintain.task import Task

S = TypeVar("S", bound=State)
T = TypeVar("T")

MAX_RESULTS_PER_TASK = 64


def content_of(world: State) -> Hashable:
    """Returns a key that is equal for worlds of equal content. An environment may have a cheaper one of its own.

    Raises:
        DefinitionError: The digest of a resource must be awaited.
    """
    plain, held = resource.split(world, canonical=True)
    keys = [one.content_key() if isinstance(one, Table) else one.digest() for one in held]
    if any(map(inspect.isawaitable, keys)):
        raise DefinitionError(f"a resource of {type(world).__name__} has an async digest(): give a content function")
    return plain, *keys


class Recent(Generic[T]):
    """The latest results by key, at most `most` of them. They are shared: do not change them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[Hashable, T] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Returns the result for the key; makes it if it is not known."""
        try:
            return self._known[key]
        except KeyError:
            found = make()
        for old in list(self._known)[: max(0, 1 + len(self._known) - self._most)]:
            self._known.pop(old, None)
        self._known[key] = found
        return found


def per_task(
    content: Callable[[S], Hashable],
) -> Callable[[Callable[[Task[Any], S], T]], Callable[[Task[Any], S], T]]:
    """Remembers the latest results of a function of a task and a world; do not change the results.

    Args:
        content: World to a key that is equal for worlds in which the function has the same result.
    """

    def wrap(function: Callable[[Task[Any], S], T]) -> Callable[[Task[Any], S], T]:
        known: dict[int, tuple[weakref.ref[Task[Any]], Recent[T]]] = {}  # Dropped with the task.

        @functools.wraps(function)
        def remembered(task: Task[Any], world: S) -> T:
            number = id(task)
            entry = known.get(number)
            if entry is None or entry[0]() is not task:
                reference = weakref.ref(task, lambda _: known.pop(number, None))
                entry = known[number] = reference, Recent(MAX_RESULTS_PER_TASK)
            return entry[1].get(content(world), lambda: function(task, world))

        return remembered

    return wrap


def by_content(most: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Remembers the latest results of a function of tables by what stands in the tables; do not change the results."""

    def wrap(function: Callable[..., T]) -> Callable[..., T]:
        recent: Recent[T] = Recent(most)

        @functools.wraps(function)
        def remembered(*tables: Table[Any]) -> T:
            return recent.get(tuple(table.content_key() for table in tables), lambda: function(*tables))

        return remembered

    return wrap
