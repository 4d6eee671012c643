"""Ladder: a procedure of six steps, of which a task of level L asks for the first L, in order.

Nobody says which step is next: only the score, 1 for all L in order, shows it. The skills nest by construction, so this
is the case for which curricula are made.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import quintain as qn
from quintain.trace import Message

STEPS = ("unlock", "open", "enter", "greet", "sign", "pay")
ACTS = (*STEPS, "wait")
POOL = {1: 5, 2: 5, 3: 10, 4: 10, 5: 30, 6: 40}
"""Tasks of each level: most are hard, as in a pool that a strong model left over."""
TAIL, CUT = 1.3, 40.0
"""Pareto exponent of the seconds that a tool takes, and the longest in units of the shortest."""


class House(qn.State):
    """A house, and what was done in it.

    Attributes:
        level: Number of the steps that the task asks for.
        tool_s: Shortest time that an episode's tool takes, in seconds; 0 for none.
        done: Steps so far.
    """

    level: int
    tool_s: float = 0.0
    done: list[str] = []

    @qn.tool
    async def do(self, step: str) -> str:
        """Do a step; the first one may take long.

        Args:
            step: Its name.
        """
        if self.tool_s and not self.done:
            await asyncio.sleep(self.tool_s * min(CUT, random.paretovariate(TAIL)))
        self.done.append(step)
        if len(self.done) == self.level:
            self.finish("all steps are done")
        return "ok"


@qn.reward
def in_order(view: qn.EpisodeView[House]) -> float:
    """Returns 1 for all steps of the level in order."""
    return float(tuple(view.state.done) == STEPS[: view.state.level])


def task(split: str, level: int, n: int, tool_s: float) -> qn.Task[House]:
    """Returns a task of a level."""
    solution = tuple(("do", {"step": step}) for step in STEPS[:level])
    start = House(level=level, tool_s=tool_s)
    name = f"{split}-{level}-{n}"
    return qn.Task(id=name, prompt=f"Do {level} steps.", start=start, solution=solution, tags={"level": str(level)})


def environment(pool: dict[int, int] | None = None, *, tool_s: float = 0.0) -> qn.Environment[House]:
    """Returns the ladder with so many tasks of each level."""
    counts = POOL if pool is None else pool
    return qn.Environment(
        "ladder",
        tasks=lambda split: [task(split, level, n, tool_s) for level, count in counts.items() for n in range(count)],
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(in_order),
        state=House,
        config=qn.Config(max_turns=len(STEPS) + 1),
    )


class LadderReader:
    """View of a house: the number of the steps that were done."""

    acts = ACTS

    def __init__(self) -> None:
        self._done = 0

    def read(self, message: Message) -> None:
        """Counts the observations."""
        self._done += message.role == "tool"

    def key(self) -> str:
        """Returns the state."""
        return str(self._done)

    def call(self, act: str) -> tuple[str, dict[str, Any]]:
        """Returns the call of an act."""
        return "do", {"step": act}
