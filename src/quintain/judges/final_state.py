"""State verifier: the goals hold at the end, and nothing else changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from quintain.changes import WorldChange, changes, shown
from quintain.errors import DefinitionError
from quintain.state import S, State
from quintain.verifier import Criterion, EpisodeView, Score, reward

BOOKKEEPING = ("finished", "clock.now", "clock.timers*", "ids*", "rng.counter")
"""Places that every world has and that no task names: they may change."""
LISTED = 20
"""Changes that a reward lists."""


def reaches(
    *goals: Callable[[EpisodeView[S]], bool],
    target: Callable[[EpisodeView[S]], S] | None = None,
    allowed: Iterable[str] | Callable[[EpisodeView[S]], Iterable[str]] = (),
) -> Criterion[S]:
    """Returns a criterion that is 1 if all goals hold and no other place of the world changed, else 0.

    A place is a path such as `crm.contacts["C7"].email`; in a pattern, `*` stands for any text.

    Args:
        goals: Functions from the view to True if the goal is reached; their names are those in the record.
        target: Function from the view to the world that the episode must reach. The end is then compared with it, else
            with the start.
        allowed: Patterns of places that may differ, besides the clock, identifiers and random draws; or a function from
            the view to them.

    Raises:
        DefinitionError: There is neither a goal nor a target, so that doing nothing would score 1.
    """
    if not goals and target is None:
        raise DefinitionError("pass a goal or a target; without one, an agent that does nothing scores 1")

    @reward
    async def reaches(view: EpisodeView[S]) -> Score:
        patterns = [*BOOKKEEPING, *(allowed(view) if callable(allowed) else allowed)]
        missed = [goal.__name__ for goal in goals if not _holds(goal, view)]
        from_world: State = target(view) if target else view.start
        found = await changes(from_world, view.state)
        extra = [change for change in found if not any(_matches(pattern, change.path) for pattern in patterns)]
        return _verdict(missed, extra, what="differs from the target" if target else "changed besides")

    return reaches


def _holds(goal: Callable[[EpisodeView[S]], bool], view: EpisodeView[S]) -> bool:
    found: object = goal(view)
    if found is not True and found is not False:
        raise TypeError(f"goal {goal.__name__!r} must return True or False, got {found!r}")
    return found


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), path, re.DOTALL) is not None


def _verdict(missed: list[str], extra: list[WorldChange], *, what: str) -> Score:
    details: dict[str, Any] = {"missed": missed, "extra": [_entry(change) for change in extra[:LISTED]]}
    if len(extra) > LISTED:
        details["more"] = len(extra) - LISTED
    said = [f"not reached: {', '.join(missed)}"] if missed else []
    if extra:
        first = extra[0]
        more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
        said.append(f"{what}: {first.path}: {shown(first.before)} -> {shown(first.after)}{more}")
    return Score(float(not said), "; ".join(said), details if said else {})


def _entry(change: WorldChange) -> dict[str, str]:
    return {"path": change.path, "before": shown(change.before), "after": shown(change.after)}
