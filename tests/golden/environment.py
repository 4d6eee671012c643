"""The environment that the golden traces were played in. It never changes: a change here would unsay what they prove.

python -m tests.golden.environment FILE     plays the traces again and writes them, for a new schema version
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import quintain as qn
from quintain.harness import Model, Request, Session
from quintain.harnesses import Dialogue
from quintain.trace import Content, Image, Message, Reply, Text, Tokens, ToolCall, Trace, Usage


class Crate(msgspec.Struct):
    """A row."""

    weight: float
    labels: list[str] = []


class Clockwork(qn.State):
    """A part with timers."""

    ticks: list[float] = []

    @qn.tool
    def wind(self, delay: float) -> str:
        """Let it tick later.

        Args:
            delay: Seconds until it ticks.
        """
        self.clock.after(delay, self.tick, note=f"after {delay}")
        return self.new_id("W")

    def tick(self, note: str) -> None:
        self.ticks.append(self.clock.now)
        if len(self.ticks) < 3:
            self.clock.after(1.5, self.tick, note="again")


class Harbour(qn.State):
    """Crates, dice and a clockwork."""

    crates: qn.Table[Crate] = msgspec.field(default_factory=lambda: qn.Table(Crate))
    log: dict[str, int] = {}
    clockwork: Clockwork = msgspec.field(default_factory=Clockwork)

    @qn.tool
    def load(self, weight: float, labels: list[str]) -> Crate:
        """Load a crate.

        Args:
            weight: In tons.
            labels: What is written on it.
        """
        key = self.new_id("C")
        self.crates[key] = Crate(weight, labels)
        self.log[key] = self.rng.below(1000)
        return self.crates[key]

    @qn.tool
    def unload(self, key: str) -> str:
        """Take a crate off.

        Args:
            key: Its name.
        """
        if key not in self.crates:
            raise qn.ToolError(f"no {key} among {sorted(self.crates)}")
        del self.crates[key]
        return f"{key} is off, {len(self.crates)} left"

    @qn.tool
    def look(self) -> Content:
        """Look around."""
        return (Text(f"{len(self.crates)} crates"), Image("image/png", b"\x89PNG\r\n"))

    @qn.tool
    def sail(self, seconds: float) -> float:
        """Sail for a while.

        Args:
            seconds: How long.
        """
        self.clock.advance(seconds)
        return self.clock.now

    @qn.tool
    def sink(self) -> str:
        """Do not."""
        raise OSError("a hole in the hull")

    @qn.tool(roles=("user",))
    def leave(self) -> str:
        """Leave the harbour."""
        self.finish("left the harbour")
        return "bye"


@qn.reward(weight=0.5)
def light(outcome: qn.EpisodeView[Harbour]) -> float:
    total = sum(crate.weight for crate in outcome.state.crates.values())
    return max(0.0, 1.0 - total / 100)


@qn.reward(weight=0.5)
def answered(outcome: qn.EpisodeView[Harbour]) -> qn.Score:
    return qn.Score(float(bool(outcome.answer)), f"said {outcome.answer!r}")


@qn.reward(level="turn", low=-5, high=5, normalize=True)
def growth(transition: qn.TurnView[Harbour]) -> float:
    return float(len(transition.after.crates) - len(transition.before.crates))


@qn.reward(level="step")
def polite(effect: qn.StepView[Harbour]) -> qn.Score:
    return qn.Score(None, "refused") if effect.step.is_error else qn.Score(1.0)


@qn.phase()
def loaded(transition: qn.TurnView[Harbour]) -> bool:
    return len(transition.after.crates) >= 2


@qn.phase(after="loaded")
def ticked(transition: qn.TurnView[Harbour]) -> bool:
    return bool(transition.after.clockwork.ticks)


class Folding(msgspec.Struct, frozen=True):
    """Folds its context every third turn."""

    async def play(self, session: Session, model: Model) -> None:
        while not session.ended:
            if len(session.messages) > 7:
                session.set_context([session.messages[0], Message("user", f"{len(session.messages)} messages before")])
            reply = await model(session.request())
            await session.step(reply)
            if not reply.message.calls:
                session.terminate("folded")


def environment(harness: Any, **config: Any) -> qn.Environment[Harbour]:
    def tasks(split: str) -> Sequence[qn.Task[Harbour]]:
        start = Harbour(crates=qn.Table(Crate, {"C0": Crate(2.5, ["old"])}))
        return [
            qn.Task(id="one", prompt="Load.", start=start, truth=(1, 2), roles={"user": "Be short."}, tags={"a": "b"})
        ]

    return qn.Environment(
        "harbour",
        tasks=tasks,
        harness=harness,
        verifier=qn.Verifier(light, answered, growth, polite, loaded, ticked),
        state=Harbour,
        config=qn.Config(max_turns=12, **config),
    )


ENVIRONMENTS = {
    "plain": environment(qn.ToolLoop(system="You load ships.")),
    "folding": environment(Folding()),
    "noisy": environment(qn.ToolLoop(), noise_rate=0.4, noise_budget=3),
    "talking": environment(Dialogue(system="You load.", user_system="You watch.")),
}

LINES: dict[str, list[str]] = {
    "plain": [
        'load {"weight": 1.5, "labels": ["x", "é"]}; clockwork_wind {"delay": 2}',
        'load {"weight": 1e3, "labels": []}; look; sail {"seconds": 7.25}; unload {"key": "C9"}',
        'load {"weight": "heavy"}; nothing {}; leave; unload {"key": "C0"}',
        "done",
    ],
    "broken": ['load {"weight": 1, "labels": []}', "sink; look"],
    "truncated": ["look"] * 12,
    "folding": ['load {"weight": 3, "labels": ["a"]}', "look", 'sail {"seconds": 1}', "look"] * 2 + ["done"],
    "noisy": ['load {"weight": 1, "labels": ["long enough to be cut"]}', "look"] * 5 + ["done"],
    "talking": ["go on", 'load {"weight": 1, "labels": []}', "loaded", "leave"],
}
"""Name of a play to its replies: calls separated by "; ", or words."""


def environment_of(name: str) -> qn.Environment[Harbour]:
    return ENVIRONMENTS.get(name, ENVIRONMENTS["plain"])


def player(lines: Sequence[str]) -> Model:
    """A model that reads its lines, with token ids."""
    left = iter(lines)

    async def model(request: Request) -> Reply:
        line = next(left)
        known = {tool.name for tool in request.tools} | {"nothing", "leave"}
        parts = [part.partition(" ") for part in line.split("; ")]
        calls = tuple(ToolCall(f"c{n}", part[0], part[2]) for n, part in enumerate(parts) if part[0] in known)
        prompt = [len(message.text) for message in request.messages]
        tokens = Tokens(prompt, [len("" if calls else line)], [-0.25])
        message = Message("assistant", "" if calls else line, calls=calls, reasoning="hm")
        return Reply(message, tokens, Usage(len(prompt), 1), policy_version=len(prompt) // 4)

    return model


def play(name: str) -> Trace:
    env = environment_of(name)
    return asyncio.run(qn.rollout(env, env.tasks("test")[0], player(LINES[name]), seed=11, agent=name)).trace


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(b"".join(play(name).to_json() + b"\n" for name in LINES))
