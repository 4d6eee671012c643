"""Ends of episodes with a program, and refusals after them."""

from __future__ import annotations

import asyncio

import pytest

import quintain as qn
from quintain.errors import ModelError
from quintain.serve.model import conversation
from quintain.trace import End
from tests.serve.model.bell import Model, says, talking

USER = {"role": "user", "content": "Go on."}


def test_limits_end_the_episode_and_every_call_after_it_is_refused() -> None:
    model = Model(says("", ("ring", {})), says("", ("ring", {})))

    async def play() -> None:
        async with talking(model, listed=True, config=qn.Config(max_turns=1)) as talk:
            said = await talk.chat(USER, tools=["ring"])
            await talk.act("ring")
            assert talk.conversation.over.is_set()
            result = await talk.act("ring")
            assert result["isError"]
            assert "ended: max_turns" in result["content"][0]["text"]
            answer = await talk.post("v1/chat/completions", {"messages": [USER, said]})
            assert (answer.status_code, answer.headers["x-should-retry"]) == (403, "false")
            assert answer.json()["error"]["code"] == "episode_ended"
            trace = await talk.end()
        assert (trace.end, trace.reason, len(model.asked)) == (End.TRUNCATED, "max_turns", 1)

    asyncio.run(play())


@pytest.mark.parametrize(("limit", "turns"), [("max_tokens", 2), ("context_tokens", 1), ("max_calls", 2)])
def test_every_limit_holds(limit: str, turns: int) -> None:
    value = {"max_tokens": 10, "context_tokens": 5, "max_calls": 2}[limit]
    model = Model(*(says("", ("ring", {})) for _ in range(9)))

    async def play() -> None:
        async with talking(model, config=qn.Config().override({limit: value})) as talk:
            assert (await talk.chat(USER))["error"]["code"] == "episode_ended"
            trace = await talk.end()
        assert (trace.reason, len(trace.turns)) == (limit, turns)

    asyncio.run(play())


@pytest.mark.parametrize(("limit", "value"), [("max_turns", 3), ("max_tokens", 15), ("context_tokens", 5)])
def test_a_limit_holds_beside_a_turn_that_stays_open(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies beside an open turn are recorded after it, and count before."""
    monkeypatch.setattr(conversation, "_TURN_S", 0.05)
    model = Model(says("", ("ring", {})), *(says("Words.") for _ in range(9)))

    async def play() -> None:
        config = qn.Config().override({limit: value})
        async with talking(model, listed=True, config=config) as talk:
            await talk.chat(USER, tools=["ring"])
            while "error" not in (said := await talk.chat({"role": "user", "content": "Help."}, tools=["ring"])):
                assert len(model.asked) <= 3
            assert said["error"]["code"] == "episode_ended"
            trace = await talk.end()
        assert len(trace.turns) == (1 if limit == "context_tokens" else len(model.asked))

    asyncio.run(play())


def test_a_limit_holds_for_what_is_asked_at_once() -> None:
    model = Model(*(says("Words.") for _ in range(9)))

    async def play() -> None:
        async with talking(model, listed=True, config=qn.Config(max_turns=3)) as talk:
            said = await asyncio.gather(*(talk.chat({"role": "user", "content": f"{n}"}) for n in range(9)))
            assert [one.get("content", "refused") for one in said].count("Words.") == 3
            trace = await talk.end()
        assert (len(trace.turns), len(model.asked)) == (3, 3)

    asyncio.run(play())


def test_the_shorter_limit_of_a_reply_counts() -> None:
    model = Model(says(), says(), says())

    async def play() -> None:
        async with talking(model, config=qn.Config(max_reply_tokens=20, temperature=0.5)) as talk:
            await talk.chat(USER, max_tokens=30, temperature=2)
            await talk.chat(USER, max_completion_tokens=10)
            await talk.chat(USER)
        assert [request.max_tokens for request in model.asked] == [20, 10, 20]
        assert model.asked[0].temperature == 0.5, "how the model is sampled is the configuration's"

    asyncio.run(play())


def test_the_world_may_end_it() -> None:
    async def play() -> None:
        async with talking(Model(says("", ("leave", {}))), listed=True) as talk:
            await talk.chat(USER, tools=["leave"])
            assert (await talk.act("leave"))["content"][0]["text"] == "bye"
            assert talk.conversation.over.is_set()
            trace = await talk.end()
        assert trace.reason == "gone home"

    asyncio.run(play())


@pytest.mark.parametrize("listed", [True, False])
def test_a_broken_world_is_a_failure(*, listed: bool) -> None:
    async def play() -> None:
        async with talking(Model(says("", ("crack", {}), ("ring", {}))), listed=listed) as talk:
            said = await talk.chat(USER, tools=["crack", "ring"] if listed else None)
            if listed:
                assert (await talk.act("crack"))["isError"]
            else:
                assert said["error"]["code"] == "episode_ended"
            assert talk.conversation.over.is_set()
            trace = await talk.end()
        assert trace.failure is not None
        assert trace.failure.kind == "quintain:tool_bug"
        assert len(trace.turns[0].steps) == 1

    asyncio.run(play())


def test_a_model_that_fails_is_nobody_elses_fault() -> None:
    async def play() -> None:
        async with talking(Model(ModelError("no weights", kind="provider_unavailable"))) as talk:
            refused = await talk.chat(USER)
            assert refused["error"]["code"] == "model_failed"
            trace = await talk.end()
        assert trace.failure is not None
        assert (trace.failure.component, trace.failure.kind) == ("model", "provider_unavailable")

    asyncio.run(play())
