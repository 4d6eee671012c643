"""Goals: effects in the world, each of which can say why it is missing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from quintain.state import State
from quintain.task import Task
from quintain.verifier import Score, TurnView

from .changes import FieldChange
from .memory import content_of, per_task

S = TypeVar("S", bound=State)
W_contra = TypeVar("W_contra", bound=State, contravariant=True)


class Goal(Protocol[W_contra]):
    """An effect that a task asks for. A `TaskGoal`, or another `msgspec.Struct` with a tag: a truth can hold it."""

    def missing(self, world: W_contra, start: W_contra, /) -> str:
        """Returns why the world does not show the effect; empty when it does."""
        ...


class TaskGoal(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base class of goals, which add fields and `missing(world, start)`."""

    def allows(self, change: FieldChange) -> bool:
        """Returns True if the goal explains a changed field."""
        del change
        return False


class FieldGoal(TaskGoal, frozen=True, kw_only=True):
    """Base class of goals about one field of one row."""

    table: str
    key: Any
    field: str

    def allows(self, change: FieldChange) -> bool:
        return (change.table, change.key, change.field) == (self.table, self.key, self.field)


def _goals_of(truth: Any) -> Any:
    return getattr(truth, "goals", truth)


class Checklist(Generic[S]):
    """Evaluates the goals of a task, once for each content of the world.

    Args:
        goals: Function from the truth of a task to its goals; None takes `truth.goals`, or the truth itself.
        content: Function from a world to a key that is equal for worlds in which the same goals hold; None takes
            `content_of`.

    Attributes:
        missing: Function of a task and a world to the reason why each goal, in order, is not reached; empty where it
            is.
    """

    def __init__(
        self,
        goals: Callable[[Any], Sequence[Goal[S]]] | None = None,
        *,
        content: Callable[[S], Hashable] | None = None,
    ) -> None:
        self._goals = goals or _goals_of
        self.missing = per_task(content or content_of)(self._evaluate)

    def _evaluate(self, task: Task[S], world: S) -> tuple[str, ...]:
        start = task.world()
        return tuple(goal.missing(world, start) for goal in self._goals(task.truth))

    def reasons(self, task: Task[S], world: S, such: Callable[[Any], bool] | None = None) -> list[str]:
        """Returns why goals are not reached; with `such`, of the goals for which it is true."""
        pairs = zip(self._goals(task.truth), self.missing(task, world), strict=True)
        return [reason for goal, reason in pairs if reason and (such is None or such(goal))]

    def progress(self, view: TurnView[S]) -> Score:
        """Returns the share of the goals that a turn reached, less the share that it undid; in [-1, 1]."""
        before, after = self.missing(view.task, view.before), self.missing(view.task, view.after)
        if before is after:
            return Score(0.0)
        reached = sum(bool(old) and not new for old, new in zip(before, after, strict=True))
        undone = sum(bool(new) and not old for old, new in zip(before, after, strict=True))
        why = f"{reached} goals reached, {undone} undone" if reached or undone else ""
        return Score((reached - undone) / len(after), why)
