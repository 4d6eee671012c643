"""Loops see a Session and nothing else; here it is one of paper."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from quintain.config import Config
from quintain.harness import Agent, Request, Session, ToolLoop
from quintain.harnesses import Dialogue
from quintain.tools import Tool
from quintain.trace import Message, Reply, Step, ToolCall, Turn


class Paper:
    """A session that writes down what happens to it. Its world ends after `turns` replies of all its actors."""

    def __init__(self, *messages: Message, turns: int = 100, role: str = "agent", host: Paper | None = None) -> None:
        self.role = role
        self.messages: Sequence[Message] = list(messages)
        self.tools: Sequence[Tool] = ()
        self.config = Config()
        self.host = host or self
        self.left = turns
        self.reason = ""
        self.joined: list[Paper] = []

    @property
    def ended(self) -> bool:
        return bool(self.host.reason)

    def request(self) -> Request:
        return Request(messages=tuple(self.messages), tools=self.tools, role=self.role)

    def append(self, *messages: Message) -> None:
        self.messages = [*self.messages, *messages]

    def set_context(self, messages: Sequence[Message]) -> None:
        self.messages = list(messages)

    async def step(self, reply: Reply) -> Turn:
        assert not self.ended, "nobody plays on after the end"
        steps = tuple(Step(call, f"did {call.name}") for call in reply.message.calls)
        turn = Turn(index=0, role=self.role, reply=reply, steps=steps)
        self.append(*turn.produced())
        self.host.left -= 1
        if not self.host.left:
            self.host.terminate("max_turns")
        return turn

    def terminate(self, reason: str, *, truncated: bool = False) -> None:
        self.host.reason = self.host.reason or reason

    def add_actor(self, role: str, *messages: Message) -> Paper:
        script = Message("system", f"You are the {role}.")
        self.joined.append(Paper(script, *messages, role=role, host=self.host))
        return self.joined[-1]

    def heard(self) -> list[tuple[str, str]]:
        return [(message.role, message.text) for message in self.messages]


class Lines:
    """Says its lines in order; one in brackets is a call."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Reply:
        self.asked.append(request)
        line = self.lines.pop(0)
        calls = (ToolCall("1", line[1:-1], "{}"),) if line.startswith("[") else ()
        return Reply(Message("assistant", "" if calls else line, calls))


def play(harness: Any, session: Paper, *lines: str) -> Lines:
    model = Lines(*lines)
    is_session: Session = session
    asyncio.run(harness.play(is_session, model))
    return model


PROMPT = Message("user", "Sell a lamp.")


def test_a_tool_loop_asks_until_the_model_answers() -> None:
    session = Paper(PROMPT)
    model = play(ToolLoop(system="You sell."), session, "[look]", "[sell]", "sold", "never said")
    assert session.reason == "the agent answered"
    assert session.heard() == [
        ("system", "You sell."),
        ("user", "Sell a lamp."),
        ("assistant", ""),
        ("tool", "did look"),
        ("assistant", ""),
        ("tool", "did sell"),
        ("assistant", "sold"),
    ]
    assert [len(request.messages) for request in model.asked] == [2, 4, 6]


def test_a_tool_loop_without_a_system_prompt_changes_nothing() -> None:
    session = Paper(PROMPT)
    play(ToolLoop(), session, "sold")
    assert session.heard()[0] == ("user", "Sell a lamp.")


def test_a_loop_stops_when_the_world_does() -> None:
    session = Paper(PROMPT, turns=2)
    play(ToolLoop(), session, "[look]", "[look]", "never said")
    assert session.reason == "max_turns"


def test_a_harness_requests_nothing_after_the_end() -> None:
    session = Paper(PROMPT)
    session.terminate("before it began")
    assert play(ToolLoop(), session).asked == []
    assert play(Dialogue(), session).asked == []
    assert session.reason == "before it began"


def test_a_dialogue_takes_turns_until_the_user_stops() -> None:
    session = Paper()
    harness = Dialogue(system="You sell.", user_system="Play a customer.", stop=("BYE", "STOP"))
    model = play(harness, session, "a lamp, please", "[look]", "here", "[nod]", "thanks STOP", "never said")
    assert session.reason == "the user ended the conversation"
    assert [request.role for request in model.asked] == ["user", "agent", "agent", "user", "user"]
    assert session.heard() == [
        ("system", "You sell."),
        ("user", "a lamp, please"),
        ("assistant", ""),
        ("tool", "did look"),
        ("assistant", "here"),
    ]
    (user,) = session.joined
    assert user.heard() == [
        ("system", "Play a customer."),
        ("system", "You are the user."),
        ("assistant", "a lamp, please"),
        ("user", "here"),
        ("assistant", ""),
        ("tool", "did nod"),
        ("assistant", "thanks STOP"),
    ]


def test_the_house_may_speak_first() -> None:
    session = Paper()
    play(Dialogue(opening="How can I help?"), session, "###STOP###")
    assert session.heard() == [("assistant", "How can I help?")]
    assert session.joined[0].heard()[1:] == [("user", "How can I help?"), ("assistant", "###STOP###")]


def test_a_dialogue_stops_when_the_world_does() -> None:
    for turns in (1, 2, 3):
        session = Paper(turns=turns)
        model = play(Dialogue(), session, *["words"] * 10)
        assert (session.reason, len(model.asked)) == ("max_turns", turns)


def test_an_agent_is_told_from_a_model() -> None:
    class Player:
        name = "player"

        def model(self, task: Any, seed: int) -> Lines:
            return Lines()

    assert isinstance(Player(), Agent)
    assert not isinstance(Lines(), Agent)
