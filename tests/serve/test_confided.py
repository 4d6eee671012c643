"""Secrets are sought in all that a tool returns, in any form, however the call ends."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest

import quintain as qn
from quintain.episode import Episode
from quintain.errors import EpisodeError
from quintain.harness import Model
from quintain.models import Scripted
from quintain.serve import secret
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.secrets import SOUGHT, Secrets
from quintain.serve.errors import Void
from quintain.serve.http import limits as module
from quintain.serve.http.keys import ANYONE
from quintain.serve.http.limits import Limits
from quintain.trace import Message, Reply, ToolCall, Trace

KEY = '-----BEGIN KEY-----\nc2Vza\u00e9\'W1l\n-----END "KEY"-----\n'
PART = "c2Vza"
GATE = threading.Event()


class Drawer(qn.State):
    """World with a key."""

    @qn.tool
    def listed(self) -> dict[str, list[str | None]]:
        """Tell it, in JSON."""
        return {"key": [secret("KEY")]}

    @qn.tool
    def shown(self) -> str:
        """Tell it, as Python shows it."""
        return f"{[secret('KEY')]}"

    @qn.tool
    def asked(self) -> str:
        """Tell it as the name of what is not there."""
        return {"other": "key"}[str(secret("KEY"))]

    @qn.tool
    def dropped(self, at: int) -> str:
        """Tell it in the midst of many words.

        Args:
            at: Where.
        """
        raise RuntimeError("x" * at + str(secret("KEY")))

    @qn.tool
    def long(self) -> str:
        """Tell it among many words."""
        return f"{secret('KEY')}{'x' * 50_000}"

    @qn.tool
    def ends(self) -> str:
        """Tell it as the reason of the end."""
        self.finish(f"opened with {secret('KEY')}")
        return "open"

    @qn.tool
    def blocks(self) -> str:
        """Hold the thread."""
        while not GATE.wait(0.01):  # Where one never runs Python again, the tracer of coverage in 3.11 waits for ever.
            continue
        return "through"


@qn.reward
def nothing(_: qn.EpisodeView[Drawer]) -> float:
    return 0.0


ENV = qn.Environment(
    "drawer",
    tasks=lambda _split: [qn.Task(id="one", prompt="Open it.", start=Drawer())],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(nothing),
    state=Drawer,
    config=qn.Config(tool_timeout_s=0.1),
)


def call(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall("c", name, arguments)


class Breaks(qn.ToolLoop, frozen=True):
    """Harness that raises after the step that returns the secret."""

    async def play(self, session: qn.Session, model: Any) -> None:
        await session.step(await model(session.request()))
        raise RuntimeError("no more of this")


class Shrugs(qn.ToolLoop, frozen=True):
    """Harness that ignores the failure of a question to another role."""

    async def play(self, session: qn.Session, model: Any) -> None:
        await session.step(await model(session.request()))
        with contextlib.suppress(EpisodeError):
            await model(session.add_actor("user").request())
        session.terminate("never mind")


class Mute:
    """Simulated user."""

    name = "mute"

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        return Scripted([])


class Hangs(qn.ToolLoop, frozen=True):
    """Harness that hangs after the step that returns the secret."""

    async def play(self, session: qn.Session, model: Any) -> None:
        await session.step(await model(session.request()))
        await session.step(Reply(Message("assistant", calls=(call("blocks"),))))


def void(env: qn.Environment[Any], asked: ToolCall, **most: Any) -> Trace:
    """The record of an episode that fails over a call."""

    async def play() -> Trace:
        host = Host([env], limits=Limits(**most), user=Mute() if isinstance(env.harness, Shrugs) else None)
        live = await host.create(EpisodeSpec(task=0), ANYONE, secrets=Secrets({"KEY": KEY}))
        await live.ready()
        with pytest.raises(Void) as raised:
            await live.call(asked.name, asked.arguments)
        assert PART not in str(raised.value)
        assert PART not in "".join(one.text for one in live.messages)
        host.executor.close()
        return live.trace

    try:
        trace = asyncio.run(play())
    finally:
        GATE.set()
    assert PART not in repr(trace)
    return trace


def test_secrets_are_read_only_within_the_work_that_they_are_shown_to() -> None:
    outer, inner = Secrets({"KEY": "outer"}), Secrets({"KEY": "inner"})
    with outer.shown():
        with pytest.raises(ValueError, match="boom"), inner.shown():
            assert secret("KEY") == "inner"
            raise ValueError("boom")
        assert secret("KEY") == "outer"
    assert secret("KEY") is None


def test_secret_that_begins_with_another_is_hidden_whole() -> None:
    both = Secrets({"SHORT": "sk-0123456789", "LONG": "sk-0123456789-and-more"})
    assert both.hidden("It is sk-0123456789-and-more.") == "It is ***."


@pytest.mark.parametrize(("length", "is_hidden"), [(SOUGHT, True), (SOUGHT - 1, False)])
def test_only_what_is_too_long_to_stand_there_by_chance_is_looked_for(length: int, is_hidden: bool) -> None:
    value = "x" * length
    assert Secrets({"KEY": value}).hidden(value) == ("***" if is_hidden else value)


@pytest.mark.parametrize("harness", [qn.ToolLoop(), Breaks(), Shrugs()])
@pytest.mark.parametrize("tool", ["listed", "shown"])
def test_no_turn_is_kept_that_tells_it(harness: qn.ToolLoop, tool: str) -> None:
    trace = void(ENV.replace(harness=harness), call(tool))
    assert (len(trace.turns), trace.failure and trace.failure.message) == (0, f"{tool} returned a secret")


def test_no_question_is_asked_that_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that looks at the episode meanwhile would read it."""
    contents: list[str] = []
    begin, check = Live._begin, Secrets.check
    lives: list[Live] = []

    async def begun(live: Live) -> None:
        lives.append(live)
        await begin(live)

    def checked(secrets: Secrets, episode: Episode[Any]) -> None:
        contents.extend(one.text for live in lives if live.question for one in live.question.messages)
        check(secrets, episode)

    monkeypatch.setattr(Live, "_begin", begun)
    monkeypatch.setattr(Secrets, "check", checked)
    assert void(ENV, call("listed")).failure is not None
    assert contents == ["Open it."]


def test_nor_where_the_harness_hangs_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.1)
    GATE.clear()
    trace = void(ENV.replace(harness=Hangs()), call("listed"))
    assert (len(trace.turns), trace.failure and trace.failure.message) == (0, "listed returned a secret")


def test_nor_where_the_record_is_too_long() -> None:
    trace = void(ENV, call("long"), episode_bytes=20_000)
    assert (len(trace.turns), trace.failure and trace.failure.message) == (0, "long returned a secret")


def test_an_exception_that_shows_it_has_stars() -> None:
    trace = void(ENV, call("asked"))
    assert trace.failure is not None
    assert trace.failure.message == "'***'"


def test_the_reason_of_an_end_has_stars() -> None:
    async def play() -> None:
        host = Host([ENV])
        live = await host.create(EpisodeSpec(task=0), ANYONE, secrets=Secrets({"KEY": KEY}))
        answer = await live.call("ends", "{}")
        assert answer.meta["dev.quintain/reason"] == live.trace.reason == "opened with ***"
        host.executor.close()

    asyncio.run(play())


@pytest.mark.parametrize("left", [1, 5, 30, len(KEY) - 1, len(KEY)])
def test_nor_does_a_message_end_in_the_first_part_of_it(left: int) -> None:
    trace = void(ENV, call("dropped", f'{{"at": {2000 - left}}}'))
    assert trace.failure is not None
    assert trace.failure.message == "x" * (2000 - left) + "***"
