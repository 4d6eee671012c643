"""Worlds that the tests of play share: small, and with everything a world can have."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Self

import msgspec

import quintain as qn
from quintain import codec
from quintain.context import Snapshot
from quintain.errors import Failure
from quintain.harness import Model, Request, Session
from quintain.trace import End, Message, Reply, Tokens, ToolCall, Trace, Usage


class Vault:
    """A resource whose verbs must be awaited."""

    def __init__(self, gold: int = 0) -> None:
        self.gold = gold

    async def fork(self) -> Self:
        await asyncio.sleep(0)
        return type(self)(self.gold)

    async def dump(self) -> bytes:
        return str(self.gold).encode()

    async def digest(self) -> str:
        return codec.digest(await self.dump())

    @classmethod
    def load(cls, data: bytes, *arguments: Any) -> Self:
        return cls(int(data))

    async def ready(self) -> None:
        await asyncio.sleep(0)


class Item(msgspec.Struct):
    """A row."""

    count: int


class Bell(qn.State):
    """A part, usable alone."""

    tolls: list[float] = []

    @qn.tool
    def ring(self, delay: int) -> str:
        """Have the bell ring later.

        Args:
            delay: Seconds until it rings.
        """
        self.clock.after(delay, self.toll, times=delay % 3)
        return self.new_id("R")

    def toll(self, times: int) -> None:
        self.tolls += [self.clock.now] * times


class Yard(qn.State):
    """A world with parts, timers, a table, a resource that blocks, two roles and dice."""

    notes: list[str] = []
    by_word: dict[str, int] = {}
    items: qn.Table[Item] = msgspec.field(default_factory=lambda: qn.Table(Item))
    vault: Vault = msgspec.field(default_factory=Vault)
    bell: Bell = msgspec.field(default_factory=Bell)

    @qn.tool
    def note(self, text: str) -> int:
        """Write something down.

        Args:
            text: The words.
        """
        self.notes.append(text)
        self.by_word[text] = len(self.notes)
        return len(self.notes)

    @qn.tool
    def roll(self, sides: int) -> int:
        """Roll a die.

        Args:
            sides: How many it has.
        """
        return self.rng.below(sides) + 1

    @qn.tool
    def wait(self, seconds: int) -> float:
        """Let time pass.

        Args:
            seconds: How many.
        """
        self.clock.advance(seconds)
        return self.clock.now

    @qn.tool
    def put(self, key: str, count: int = 1) -> list[str]:
        """Put an item on the shelf.

        Args:
            key: Its name.
            count: How many.
        """
        self.items[key] = Item(count)
        return list(self.items)

    @qn.tool
    def take(self, key: str) -> Item:
        """Take an item from the shelf.

        Args:
            key: Its name.
        """
        if key not in self.items:
            raise qn.ToolError(f"there is no {key}, only {list(self.items)}")
        return self.items.pop(key)

    @qn.tool
    async def pay(self, gold: int) -> int:
        """Put gold into the vault.

        Args:
            gold: How much.
        """
        await asyncio.sleep(0)
        self.vault.gold += gold
        return self.vault.gold

    @qn.tool(roles=("user", "agent"))
    def nod(self) -> str:
        """Nod."""
        return self.new_id("nod")

    @qn.tool(roles=("user",))
    def leave(self) -> str:
        """End it all."""
        self.finish("the user left")
        return "bye"


@qn.reward
def noted(outcome: qn.EpisodeView[Yard]) -> float:
    return min(1.0, len(outcome.state.notes) / 4)


@qn.reward(level="turn", low=-10, high=10)
def progress(transition: qn.TurnView[Yard]) -> float:
    return float(min(10, len(transition.after.notes) - len(transition.before.notes)))


@qn.reward(level="step", normalize=True, high=4)
def cheap(effect: qn.StepView[Yard]) -> qn.Score:
    if effect.step.is_error:
        return qn.Score(None, "it was refused")
    return qn.Score(min(4.0, float(effect.after.vault.gold - effect.before.vault.gold)), "gold")


@qn.phase()
def began(transition: qn.TurnView[Yard]) -> bool:
    return bool(transition.after.notes)


@qn.phase(after="began")
def stocked(transition: qn.TurnView[Yard]) -> bool:
    return len(transition.after.items) > 0


def yard_tasks(split: str) -> qn.Tasks[Yard]:
    def make(index: int) -> qn.Task[Yard]:
        return qn.Task(
            id=f"{split}-{index}",
            prompt=f"Task {index}.",
            start=lambda: Yard(notes=[], items=qn.Table(Item, {"lamp": Item(index)})),
            truth={"index": index},
            solution=(("note", {"text": "a"}), ("put", {"key": "box"})),
            roles={"user": "You are the user."},
            tags={"parity": "odd" if index % 2 else "even"},
        )

    return qn.Tasks(1000, make)


def environment(
    *criteria: Any, state: type[Any] = Yard, tasks: Any = yard_tasks, harness: Any = None, **config: Any
) -> qn.Environment[Any]:
    """The yard, or another world under the same roof."""
    return qn.Environment(
        "yard",
        tasks=tasks,
        harness=harness or qn.ToolLoop(system="You work in the yard."),
        verifier=qn.Verifier(*(criteria or (noted, progress, cheap, began, stocked))),
        state=state,
        config=qn.Config(**config),
    )


def single(state: Any, *criteria: Any, harness: Any = None, **config: Any) -> qn.Environment[Any]:
    """An environment of one task, "t", that starts in `state`."""
    return environment(
        *(criteria or (fine,)),
        state=type(state),
        tasks=lambda split: [qn.Task(id="t", prompt="Go.", start=state)],
        harness=harness,
        **config,
    )


@qn.reward
def fine(outcome: qn.EpisodeView[Any]) -> float:
    return 1.0


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(f"c-{name}", name, codec.text(arguments))


def says(*calls: ToolCall, text: str = "", **fields: Any) -> Reply:
    return Reply(Message("assistant", text, calls=calls), **fields)


def script(*replies: Reply) -> Callable[[Request], Any]:
    """A model that answers by the number of its own replies in the context, so one serves many episodes."""

    async def model(request: Request) -> Reply:
        said = sum(message.role == "assistant" for message in request.messages)
        return replies[said] if said < len(replies) else says(text="done")

    return model


def one_by_one(*calls: ToolCall) -> Model:
    """A model that makes one call a turn, then answers."""
    return script(*(says(one) for one in calls))


def first_task(env: qn.Environment[Any], split: str = "test") -> qn.Task[Any]:
    return env.tasks(split)[0]


def play(env: qn.Environment[Any], model: Model, **names: Any) -> Trace:
    """The record of one episode, which a file must be able to hold."""
    trace = asyncio.run(qn.rollout(env, first_task(env), model, **names)).trace
    assert Trace.from_json(trace.to_json()) == trace
    assert Trace.from_json(trace.to_json()).to_bytes() == trace.to_bytes()
    return trace


def blamed(trace: Trace) -> Failure:
    """Returns the failure of an episode."""
    assert (trace.validity, trace.end, trace.score) == ("invalid", End.FAILED, None)
    assert trace.failure is not None
    assert trace.reason == trace.failure.kind
    return trace.failure


class Forgiving(msgspec.Struct, frozen=True):
    """Continues regardless of the model; leaves early if configured to."""

    stop: int = 99

    async def play(self, session: Session, model: Model) -> None:
        for _ in range(self.stop):
            try:
                await session.step(await model(session.request()))
            except Exception:  # noqa: BLE001  # that is the point
                continue
            if session.ended:
                return
        session.terminate("enough")


# --- random play ---

Op = tuple[Any, ...]
"""("join", role), ("tell", who, text), ("rewrite", who, keep, texts) or ("step", who, calls, text, salt)."""


async def act(episode: qn.Episode[Any], op: Op) -> None:
    """One move of whoever drives an episode; without effect when it has ended."""
    kind, *rest = op
    if kind == "join":
        episode.session.add_actor(rest[0], Message("user", "hello"))
        return
    session = episode.sessions[rest[0] % len(episode.sessions)]
    if kind == "tell":
        session.append(Message("user", rest[1]))
    elif kind == "rewrite":
        session.set_context([*session.messages[: rest[1]], *(Message("user", text) for text in rest[2])])
    elif not episode.ended:
        calls = tuple(ToolCall(f"c{n}", name, arguments) for n, (name, arguments) in enumerate(rest[1]))
        message = Message("assistant", rest[2], calls=calls)
        prompt = [word for one in session.messages for word in words(one, rest[3])]
        versions = [(0, rest[3]), (1, rest[3] + 1)] if rest[3] else msgspec.UNSET
        tokens = Tokens(prompt, words(message, rest[3]), [-0.5] * 2, versions) if rest[3] is not None else None
        usage = Usage(len(prompt), 2)
        await session.step(Reply(message, tokens, usage, policy_version=rest[3]))


def words(message: Message, salt: int | None) -> list[int]:
    """Two token ids for a message; another salt is another tokenizer."""
    text = repr((message.role, message.text, [one.arguments for one in message.calls]))
    return [zlib.crc32(text.encode()), salt or 0]


async def finish(episode: qn.Episode[Any], ops: Sequence[Op]) -> bytes:
    """The trace of an episode that goes on with these moves and is judged."""
    for op in ops:
        await act(episode, op)
    episode.terminate("the end")
    await episode.verify()
    return episode.trace.to_bytes()


class Errand(msgspec.Struct):
    """A snapshot and how it is to go on, for another process."""

    snapshot: bytes
    task: int
    ops: list[list[Any]]


async def run_errand(errand: Errand) -> bytes:
    env = environment(max_turns=30)
    episode = await qn.Episode[Any].restore(env, env.tasks("test")[errand.task], Snapshot.from_bytes(errand.snapshot))
    return await finish(episode, [tuple(op) for op in errand.ops])
