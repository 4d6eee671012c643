"""A world with long results, and models for it, that the tests of this folder share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import quintain as qn
from quintain.harness import Harness, Request
from quintain.replay import replay
from quintain.rollout import play_episode
from quintain.trace import Message, Reply, ToolCall, Trace


class Library(qn.State):
    """Pages of a length that the agent chooses."""

    read: int = 0

    @qn.tool
    def look(self, page: int, length: int = 200) -> str:
        """Read a page.

        Args:
            page: Its number.
            length: Characters that it has at most.
        """
        self.read += 1
        return f"page {page} of {self.read}\n" + f"line {page} has {page * 37} words. " * (min(length, 100_000) // 20)

    @qn.tool
    def fail(self) -> str:
        """Fail."""
        raise qn.ToolError("no such page")


@qn.reward
def done(view: qn.EpisodeView[Library]) -> float:
    return float(view.answer == "done")


TASK = qn.Task(id="t", prompt="Read the pages.", start=Library(), roles={"user": "You know a secret."})


def env_of(harness: Harness, **config: Any) -> qn.Environment[Library]:
    return qn.Environment(
        "library",
        tasks=lambda split: [TASK],
        harness=harness,
        verifier=qn.Verifier(done),
        state=Library,
        config=qn.Config(max_turns=2000).override(config),
    )


def say(text: str, *calls: tuple[str, str]) -> Reply:
    made = tuple(ToolCall(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(calls))
    return Reply(Message("assistant", text, made))


class Lines:
    """Model that gives replies by role in order, and remembers the requests."""

    def __init__(self, *replies: Reply, **others: Sequence[Reply]) -> None:
        self.left = {"agent": list(replies)} | {role: list(given) for role, given in others.items()}
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Reply:
        self.asked.append(request)
        return self.left[request.role].pop(0)


def run(harness: Harness, model: Callable[[Request], Any], **config: Any) -> Trace:
    """Plays an episode and shows that its replay gives the same bytes."""
    env = env_of(harness, **config)
    trace = asyncio.run(play_episode(env, TASK, model, start=None)).record.trace
    assert trace.failure is None, trace.failure
    assert asyncio.run(replay(env, TASK, trace)).to_bytes() == trace.to_bytes()
    return trace


def texts(request: Request, role: str) -> list[str]:
    return [message.text for message in request.messages if message.role == role]
