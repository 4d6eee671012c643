"""Baselines of a task: its own solution must score, and doing nothing must not.

Triage plays this small part of the audit if it has no audit report, because a reward that the task made impossible, or
gave away, says nothing about the policy.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.errors import ModelError
from quintain.harness import Harness, Request
from quintain.rollout import play_episode
from quintain.task import Call, Task
from quintain.trace import SOLVED, Message, Reply, ToolCall

from .evidence import content


class Baselines(msgspec.Struct, kw_only=True):
    """Scores of two baselines on one task.

    Attributes:
        missing: Why they could not be played; empty if they could.
        solution: Score of the task's own solution; None if it failed or is missing.
        has_solution: The task has a solution.
        refused: First refused call of the solution, with the error.
        writes: The solution changes the world.
        nothing: Score of an agent that makes no call and says nothing; None if it failed.
    """

    missing: str = ""
    solution: float | None = None
    has_solution: bool = False
    refused: str = ""
    writes: bool = False
    nothing: float | None = None

    @property
    def unsolvable(self) -> bool:
        """True if the task's own solution earns less than the whole reward."""
        return self.has_solution and (self.solution is None or self.solution < SOLVED)

    @property
    def free(self) -> bool:
        """True if doing nothing earns the whole reward."""
        return self.nothing is not None and self.nothing >= SOLVED

    @property
    def trivial(self) -> bool:
        """True if doing nothing earns the whole reward although the solution changes the world."""
        return self.free and self.writes


class _Fixed:
    """Model that makes given calls, one a turn, and then answers."""

    name = "fixed"

    def __init__(self, calls: tuple[Call, ...], answer: str) -> None:
        self._calls = list(calls)
        self._answer = answer
        self._made = 0

    async def __call__(self, request: Request) -> Reply:
        """Returns the next call, or the answer.

        Raises:
            ModelError: The request is for another actor than the agent.
        """
        if request.role != "agent":
            raise ModelError(f"the task has a further actor, {request.role!r}, and the baselines have no model for it")
        if not self._calls:
            return Reply(Message("assistant", self._answer))
        self._made += 1
        name, arguments = self._calls.pop(0)
        return Reply(Message("assistant", calls=(ToolCall(f"call_{self._made}", name, codec.text(arguments)),)))


async def play_baselines(env: Environment[Any], task: Task[Any], *, seed: int) -> Baselines:
    """Plays the solution and an idle episode, without fault injection."""
    # Where a program is the agent, the environment's own harness says what the task is worth.
    own: Harness | None = getattr(env.harness, "own", None)
    calm = env.replace(config=env.config.override({"noise_rate": 0.0}), harness=own)
    nothing = await play_episode(calm, task, _Fixed((), ""), start=None, seed=seed)
    failure = nothing.record.trace.failure
    if failure is not None and failure.component == "model":
        return Baselines(missing=failure.message)
    found = Baselines(nothing=nothing.record.trace.score)
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
