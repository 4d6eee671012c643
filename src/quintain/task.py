"""Task (T): a prompt, the world in which it begins, and the truth that only the verifier sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, cast, overload

import msgspec

from . import codec, resource
from .errors import DefinitionError, short
from .state import S
from .trace import Content

Call = tuple[str, dict[str, Any]]
"""Tool name and arguments."""


class Task(msgspec.Struct, Generic[S], frozen=True, kw_only=True, weakref=True):
    """One problem. Only `prompt` crosses to the agent, and to another actor its entry of `roles`; the rest is sealed.

    Attributes:
        id: Unique in its split.
        prompt: First message to the agent.
        start: The world when the episode begins, or a function that builds it; each episode works on its own copy.
        truth: What the verifier may know; any plain data.
        solution: Calls of the agent that solve the task, for the oracle; None if unknown.
        answer: What the oracle says at the end.
        roles: First message to each other actor, such as a simulated user's script.
        day: Within a run, tasks of one day are played one after the other, each in the world that the one before left
            to the same member; the first of them, or one that is played alone, begins in its own `start`.
        tags: Labels for reports, such as family and level; they are in the record.
        tools: Names of the environment's tools that exist in this task, for every role; None for all of them.
    """

    id: str
    prompt: Content
    start: S | Callable[[], S]
    truth: Any = None
    solution: tuple[Call, ...] | None = None
    answer: str = "done"
    roles: dict[str, str] = {}
    day: str = ""
    tags: dict[str, str] = {}
    tools: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.prompt), str | tuple | list):
            raise DefinitionError(f"task {self.id!r}: prompt must be text or blocks, got {short(self.prompt)}")
        for call in cast(tuple[Any, ...], self.solution or ()):
            if not (len(call) == 2 and isinstance(call[0], str) and isinstance(call[1], dict)):
                form = '(("tool", {"argument": value}), ...)'
                raise DefinitionError(f"task {self.id!r}: solution must be {form}, its call {short(call)} is not")

    def world(self) -> S:
        """The start state; not to be changed."""
        return self.start() if callable(self.start) else self.start

    async def digest(self, world: S) -> str:
        """Names the task's content, its start state `world` included.

        Raises:
            DefinitionError: The truth or the solution is not plain data.
        """
        tools = () if self.tools is None else (sorted(self.tools),)
        sealed = (self.prompt, self.truth, self.solution, self.answer, self.roles, self.tags, *tools)
        try:
            return codec.digest(codec.dumps((self.id, *sealed, await resource.digest(world))))
        except TypeError as error:
            raise DefinitionError(f"task {self.id!r}: {self._not_data()}{error}") from error

    def _not_data(self) -> str:
        for name, value in (("truth", self.truth), ("solution", self.solution), ("prompt", self.prompt)):
            try:
                codec.dumps(value)
            except TypeError:
                return f"{name} must be plain data (numbers, texts, lists, dicts, Structs), got {short(value)}: "
        return ""


class Tasks(Sequence[Task[S]], Generic[S]):
    """Tasks that are made when they are asked for: task i is a pure function of i.

    Args:
        count: How many there are.
        make: Index in [0, count) to the task.
    """

    def __init__(self, count: int, make: Callable[[int], Task[S]]) -> None:
        self._range = range(count)
        self._make = make

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, index: int) -> Task[S]: ...
    @overload
    def __getitem__(self, index: slice) -> Tasks[S]: ...
    def __getitem__(self, index: int | slice) -> Task[S] | Tasks[S]:
        if isinstance(index, int):
            return self._make(self._range[index])
        part: Tasks[S] = Tasks(0, self._make)
        part._range = self._range[index]
        return part

    def __iter__(self) -> Iterator[Task[S]]:
        return map(self._make, self._range)
