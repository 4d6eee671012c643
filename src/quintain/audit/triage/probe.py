"""What a task itself is worth: its own solution must score, and doing nothing must not.

A small part of the audit, played where no report of it is at hand, for a reward that the task made impossible, or gave
away, says nothing about the policy.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.errors import ModelError
from quintain.harness import Harness, Request
from quintain.report import SOLVED
from quintain.rollout import play_episode
from quintain.task import Call, Task
from quintain.trace import Message, Reply, ToolCall

from .evidence import content


class Probe(msgspec.Struct, kw_only=True):
    """What two baselines earn on one task.

    Attributes:
        missing: Why they could not be played; empty when they could.
        solution: Score of the task's own solution; None when it failed, or there is none.
        has_solution: Whether the task brings one.
        refused: The first call of the solution that was refused, and how.
        writes: Whether the solution changes the world.
        nothing: Score of an agent that calls nothing and says nothing; None when it failed.
    """

    missing: str = ""
    solution: float | None = None
    has_solution: bool = False
    refused: str = ""
    writes: bool = False
    nothing: float | None = None

    @property
    def unsolvable(self) -> bool:
        """Whether the task's own solution earns less than the whole reward."""
        return self.has_solution and (self.solution is None or self.solution < SOLVED)

    @property
    def free(self) -> bool:
        """Whether doing nothing earns the whole reward."""
        return self.nothing is not None and self.nothing >= SOLVED

    @property
    def trivial(self) -> bool:
        """Whether it does though the solution changes the world; else doing nothing may be what is right."""
        return self.free and self.writes


class _Fixed:
    """Makes given calls, one a turn, and then answers."""

    name = "fixed"

    def __init__(self, calls: tuple[Call, ...], answer: str) -> None:
        self._calls = list(calls)
        self._answer = answer
        self._made = 0

    async def __call__(self, request: Request) -> Reply:
        """The next call, or the answer.

        Raises:
            ModelError: Another actor is asked, and nobody plays it here.
        """
        if request.role != "agent":
            raise ModelError(f"the task has a further actor, {request.role!r}, and nobody plays it here")
        if not self._calls:
            return Reply(Message("assistant", self._answer))
        self._made += 1
        name, arguments = self._calls.pop(0)
        return Reply(Message("assistant", calls=(ToolCall(f"call_{self._made}", name, codec.text(arguments)),)))


async def probe(env: Environment[Any], task: Task[Any], *, seed: int) -> Probe:
    """Play the solution and nothing, without planned faults."""
    # Where a program is the agent, the environment's own harness says what the task is worth.
    own: Harness | None = getattr(env.harness, "own", None)
    calm = env.replace(config=env.config.override({"noise_rate": 0.0}), harness=own)
    nothing = await play_episode(calm, task, _Fixed((), ""), start=None, seed=seed)
    failure = nothing.record.trace.failure
    if failure is not None and failure.component == "model":
        return Probe(missing=failure.message)
    found = Probe(nothing=nothing.record.trace.score)
    if task.solution is None:
        return found
    best = await play_episode(calm, task, _Fixed(task.solution, task.answer), start=None, seed=seed)
    trace = best.record.trace
    refused = next((step for turn in trace.turns for step in turn.steps if step.is_error), None)
    found.has_solution, found.solution = True, trace.score
    if refused is not None:
        found.refused = f"{refused.call.name} {refused.call.arguments}: {refused.observation}"[:300]
    if best.state is not None:
        found.writes = await content(task.world()) != await content(best.state)
    return found
