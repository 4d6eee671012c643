"""Base of timers, jobs and the outbox: calls by name, and one timer in the world's clock for all of them.

An `Agenda` is a part with a queue of rows. Its one timer in the clock is set to the first row. When it fires, the rows
that are due *and were there before* run by (due, number); rows that these put for the same instant run in another wave.
The timer is set anew before each method is called, so a method may copy its world and play it on. The result does not
depend on the steps in which a caller advances time.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any

import msgspec

from quintain import codec
from quintain.errors import ToolError, UsageError
from quintain.state import State

from .queues import Queue

Method = Callable[..., object] | str
"""A method of the world or of one of its parts; or its name, with the names of the parts in front: "mailbox.sweep"."""


class TimerState(msgspec.Struct, frozen=True):
    """State of an agenda's timer in the clock.

    Attributes:
        number: Number of the timer; 0 if none is set.
        due: Time at which it fires.
        woke: Time at which it fired last.
        rush: Number of rows put and run at that instant.
    """

    number: int = 0
    due: float = math.inf
    woke: float = -math.inf
    rush: int = 0


class Agenda(State):
    """Base class of the parts that call methods later. Such a part joins its world first, and is used then.

    Attributes:
        limit: How many rows may run at one instant that were put at this very instant by others of the same part.
        alarm: The one timer in the clock.
    """

    limit: int = 10_000
    alarm: TimerState = TimerState()

    def agenda(self) -> Queue[Any]:
        """Returns the rows that wait."""
        raise NotImplementedError(f"{type(self).__name__} has no queue")

    def run_due(self, key: str, row: Any) -> None:
        """Runs a row, and removes it from the queue or moves it."""
        raise NotImplementedError(f"{type(self).__name__} does nothing with its rows")

    def wake(self) -> None:
        """Runs what is due. The world's clock calls it.

        Raises:
            RuntimeError: Rows put rows for one and the same instant, beyond the limit; or a method raised a ToolError.
        """
        now, queue, last = self.clock.now, self.agenda(), self.latest()
        again = self.alarm.woke == now
        self.alarm = TimerState(woke=now, rush=self.alarm.rush if again else 0)
        while (first := queue.first()) is not None and (first.row.due, first.row.number) <= (now, last):
            if again:
                self._count(first.row)
            self.run_due(first.key, first.row)

    def _count(self, row: Any) -> None:
        alarm = self.alarm = msgspec.structs.replace(self.alarm, rush=self.alarm.rush + 1)
        if alarm.rush > self.limit:
            self.arm()
            name = type(self).__name__
            raise RuntimeError(f"{name}: {row} is one of over {self.limit} that set off each other at {alarm.woke}")

    def latest(self) -> int:
        """Returns the greatest number given to a row so far."""
        raise NotImplementedError(f"{type(self).__name__} gives no numbers")

    def arm(self) -> None:
        """Sets the timer in the clock to the first row. Call it after every change of the queue, before any method."""
        first, alarm = self.agenda().first(), self.alarm
        due = math.inf if first is None else first.row.due
        if due == alarm.due:
            return
        if alarm.number:
            self.clock.cancel(alarm.number)
        number = 0 if due == math.inf else self.clock.at(due, self.wake)
        self.alarm = TimerState(number, due, alarm.woke, alarm.rush)


def named(agenda: State, method: Method) -> str:
    """Returns the name under which the world can find a method again.

    Raises:
        TypeError: The method is not one of this world or of one of its parts, or it is async.
        UsageError: The world has no method of that name; the message lists those that it has.
    """
    world = agenda.clock.world
    if isinstance(method, str):
        _find(world, method)
        return method
    target, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
    path = _path(world, target)
    if path is None:
        raise TypeError(f"{method!r} is not a method of this {type(world).__name__} or of one of its parts")
    found = ".".join((*path, name))
    _find(world, found)
    return found


def frozen(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments as plain data, as they are after any copy.

    Raises:
        TypeError: The arguments are not plain data.
    """
    return codec.loads(codec.dumps(dict(arguments)), dict[str, Any])


def check(agenda: State, method: str, /, *values: Any, **arguments: Any) -> None:
    """Checks that a method takes these arguments, so that the mistake shows where it is made.

    Raises:
        TypeError: The method does not take them.
    """
    function: Any = _find(agenda.clock.world, method).__func__
    try:
        _signature(function).bind(None, *values, **arguments)
    except TypeError as error:
        raise TypeError(f"{method!r} takes {_signature(function)}: {error}") from error


def call(agenda: State, method: str, /, *values: Any, **arguments: Any) -> None:
    """Calls a method of the world.

    Raises:
        RuntimeError: It raised a ToolError: no model is there to read it.
    """
    try:
        _find(agenda.clock.world, method)(*values, **arguments)
    except ToolError as error:
        raise RuntimeError(f"{method!r} raised ToolError({error}) while time passed: no model reads it") from error


@functools.lru_cache(maxsize=1024)
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)


@functools.lru_cache(maxsize=1024)
def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function)


def _path(world: State, target: object) -> tuple[str, ...] | None:
    if world is target:
        return ()
    for name, part in _held(world).items():
        rest = _path(part, target)
        if rest is not None:
            return (name, *rest)
    return None


def _held(world: State) -> dict[str, State]:
    fields = ((name, getattr(world, name)) for name in world.__struct_fields__)
    return {name: part for name, part in fields if isinstance(part, State)}


def _find(world: State, name: str) -> MethodType:
    target = world
    *path, last = name.split(".")
    for step in path:
        part = getattr(target, step, None)
        if not isinstance(part, State):
            has = ", ".join(_held(target)) or "none"
            raise UsageError(f"{name!r}: {type(target).__name__} has no part {step!r}; it has {has}")
        target = part
    method = getattr(target, last, None)
    if not inspect.ismethod(method):
        raise UsageError(f"{name!r}: {type(target).__name__} has no method {last!r}; it has {_methods(target)}")
    if _is_async(method.__func__):
        raise TypeError(f"{name!r} is async; time passes inside one call, so it cannot wait")
    return method


def _methods(world: State) -> str:
    own = (name for name in dir(type(world)) if not name.startswith("_") and not hasattr(State, name))
    return ", ".join(name for name in own if inspect.isfunction(getattr(type(world), name))) or "none"
