"""Task chains: tasks that one member plays one after the other in one continuing world.

Each task begins in the final world of the last valid episode before it, right or wrong. After a failed episode, the
next one begins where the failed one did. A trace names the episode that it continues, so the episodes of a chain
replay in the order in which they were played.
"""

from __future__ import annotations

from typing import Generic

from .environment import Environment
from .errors import UsageError
from .record import Key
from .replay import replay_episode
from .state import S
from .task import Task
from .trace import Trace


class TaskChain(Generic[S]):
    """Position of each member in each task chain.

    Args:
        env: The environment of all its tasks.
    """

    def __init__(self, env: Environment[S]) -> None:
        self._env = env
        self._last: dict[tuple[str, int], Key] = {}
        self._worlds: dict[Key, S] = {}
        self._records: dict[Key, tuple[Task[S], Trace]] = {}  # of worlds that have to be made again

    def last(self, task: Task[S], member: int) -> Key | None:
        """The episode after which this member begins the task; None for the task's own world."""
        return self._last.get((task.day, member)) if task.day else None

    async def world(self, key: Key) -> S:
        """The world that an episode left; not to be changed. Replays what it must.

        Raises:
            UsageError: That episode is not known here.
            ReplayDivergence: It cannot be replayed.
        """
        missing: list[Key] = []
        place: Key | None = key
        while place is not None and place not in self._worlds:
            if place not in self._records:
                name = "task {!r}, member {}, attempt {}".format(*place)
                raise UsageError(f"the world after {name} is not known: that episode must come before")
            missing.append(place)
            place = before(self._records[place][1])
        for place in reversed(missing):
            await self.replay(*self._records.pop(place))
        return self._worlds[key]

    def advance(self, task: Task[S], trace: Trace, state: S | None) -> None:
        """A member's episode counts: what is a valid one's end is where its next begins.

        Args:
            task: A task of a day.
            trace: The record.
            state: The world that it left; None where only the record is at hand.
        """
        if trace.validity != "valid":
            return
        key: Key = (trace.task, trace.member, trace.attempt)
        passed = self._last.get((task.day, trace.member))
        self._last[task.day, trace.member] = key
        if state is None:
            self._records[key] = (task, trace)
            return
        self._worlds[key] = state
        if passed is not None:
            self._worlds.pop(passed, None)

    async def replay(self, task: Task[S], trace: Trace) -> Trace:
        """As `quintain.replay`, of any episode whose day has been replayed up to it.

        Raises:
            UsageError: It has not; or as there.
            ReplayDivergence: As there.
        """
        start = None if (place := before(trace)) is None else await self.world(place)
        again = await replay_episode(self._env, task, trace, start=start)
        if task.day and again.state is not None:
            self._worlds[trace.task, trace.member, trace.attempt] = again.state
        return again.record.trace


def before(trace: Trace) -> Key | None:
    """The episode in whose end this one began; None for one that began in its task's own world."""
    return (trace.continues[0], trace.member, trace.continues[1]) if trace.continues else None
