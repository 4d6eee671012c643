"""Drafts: tasks that are written by a function, and record how they are solved."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, cast

from quintain.state import Rng, State
from quintain.task import Call, Task, Tasks

S = TypeVar("S", bound=State)
D = TypeVar("D", bound="Draft[Any]")

Level = Literal["easy", "medium", "hard"]
LEVELS: tuple[Level, ...] = ("easy", "medium", "hard")

Write = Callable[[D], str]
"""Writes a task into a draft and returns the last words of its solution."""
Family = Write[D] | Mapping[str, Sequence[Write[D]]]
"""One function for all levels, or several variants for each level."""


class Draft(Generic[S]):
    """Task in the making. Its random numbers come from the key alone, so equal keys make equal tasks.

    Subclasses add what their tasks need, and define `truth` and `world`.

    Attributes:
        key: Names the task's random stream.
        level: How hard the task is to be.
        rng: The random stream.
        request: The job, as the agent reads it.
        goals: Effects that the task asks for.
        calls: The solution so far.
    """

    def __init__(self, key: bytes, level: Level = "medium") -> None:
        self.key = key
        self.level: Level = level
        self.rng = Rng(key=key)
        self.request = ""
        self.goals: list[Any] = []
        self.calls: list[Call] = []

    @property
    def prompt(self) -> str:
        """The prompt; a subclass may add to the request."""
        return self.request

    def play(self, tool: str, /, **arguments: Any) -> None:
        """Adds a call to the solution; `arguments` are those of the tool."""
        self.calls.append((tool, arguments))

    def truth(self) -> Any:
        """Returns what the verifier needs, as plain data."""
        return tuple(self.goals)

    def world(self) -> S:
        """Builds the start state."""
        raise NotImplementedError(f"{type(self).__name__} has to define world(), which builds the start state")

    def task(self, id: str, *, answer: str, tags: dict[str, str]) -> Task[S]:
        """Returns the finished task. Its world is built on first use and shared by all episodes of the task."""
        return Task(
            id=id,
            prompt=self.prompt,
            start=functools.cache(self.world),
            truth=self.truth(),
            solution=tuple(self.calls),
            answer=answer,
            tags=tags,
        )


def key_of(*names: object) -> bytes:
    """Returns the key of a random stream, 16 bytes. Different names give independent streams."""
    return hashlib.blake2b("/".join(map(str, names)).encode(), digest_size=16).digest()


def generated(
    name: str, draft: Callable[[bytes, Level], D], families: Mapping[str, Family[D]], *, counts: Mapping[str, int]
) -> Callable[[str], Tasks[Any]]:
    """Returns the `tasks` of an environment: families alternate, then levels, then variants.

    Args:
        name: The environment's name, which keeps its random streams apart from those of others.
        draft: The class of the drafts.
        families: What writes the tasks, by the name of the family.
        counts: Tasks of each split.
    """

    def make(split: str, index: int) -> Task[Any]:
        family = list(families)[index % len(families)]
        level = LEVELS[index // len(families) % len(LEVELS)]
        # The split is part of the key, so that no two splits share a stream.
        case, writes = draft(key_of(name, split, index), level), families[family]
        tags: dict[str, str] = {"family": family, "level": level}
        if isinstance(writes, Mapping):
            variants: Sequence[Write[D]] = cast(Any, writes)[level]
            write = variants[index // (len(families) * len(LEVELS)) % len(variants)]
            tags["variant"] = write.__name__
        else:
            write = writes
        answer = write(case)
        return case.task(f"{family}-{level}-{index}", answer=answer, tags=tags)

    return lambda split: Tasks(counts[split], functools.partial(make, split))
