"""Tokens of a record, which are those that the model read and drew, for every change of the context."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

import quintain as qn
from quintain.harness import Request
from quintain.trace import Message, Reply, Tokens, Trace, Usage
from tests.serve.model.bell import Talk, says, talking
from tests.serve.model.test_conversation import answered

CONFIG = qn.Config(max_turns=200)


def ids(*messages: Message) -> list[int]:
    """Three tokens for each message, by what a model would see of it."""
    seen = [(m.role, m.text, [(call.name, call.arguments) for call in m.calls]) for m in messages]
    return [byte for one in seen for byte in hashlib.blake2b(repr(one).encode(), digest_size=3).digest()]


class Sampler:
    """Says something new each time, with a call or without; keeps what it saw by what it said. Weights change."""

    name = "sampler"

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.saw: dict[str, tuple[Sequence[Message], Tokens, int]] = {}

    async def __call__(self, request: Request) -> Reply:
        version = len(self.saw) // 3
        times = {"times": self.dice.randint(1, 2)}
        calls = [("ring", times)] * self.dice.choice([0, 1, 1, 2]) if request.tools else []
        reply = says(f"thought {len(self.saw)}", *calls)
        prompt, completion = ids(*request.messages), ids(reply.message)
        tokens = Tokens(prompt, completion, [-0.5] * len(completion))
        self.saw[reply.message.text] = request.messages, tokens, version
        return Reply(reply.message, tokens, Usage(len(prompt), len(completion)), version)


class Program:
    """Talks on, and now and then cuts, sums up, rewords, asks aside, or rings by itself."""

    def __init__(self, talk: Talk, dice: random.Random) -> None:
        self.talk, self.dice = talk, dice
        self.context: list[dict[str, Any]] = [{"role": "user", "content": "Go on."}]

    async def step(self) -> None:
        said = await self.talk.chat(*self.context, tools=["ring"])
        self.context.append(said)
        for call in said.get("tool_calls") or ():
            rung = (await self.talk.act("ring", **json.loads(call["function"]["arguments"])))["content"][0]["text"]
            self.context.append(answered(call, self.dice.choice([rung, f"The bell: {rung}"])))
        if "tool_calls" not in said:
            self.context.append({"role": "user", "content": "And?"})

    async def meddle(self) -> None:
        match self.dice.randrange(8):
            case 0:  # Truncates.
                users = [n for n, one in enumerate(self.context) if one["role"] == "user"]
                self.context = self.context[self.dice.choice(users) :]
            case 1:  # Compacts.
                words = await self.talk.chat(*self.context, {"role": "user", "content": "Sum up."})
                self.context = [{"role": "user", "content": f"So far: {words['content']}"}]
            case 2:  # Takes the words out of old observations.
                self.context = [
                    {**one, "content": "[elided]"} if one["role"] == "tool" else one for one in self.context[:-2]
                ] + self.context[-2:]
            case 3:  # Has a helper.
                mine, self.context = self.context, [{"role": "user", "content": f"Help {self.dice.random()}."}]
                await self.step()
                self.context = mine
            case 4:
                await self.talk.act("ring", times=1)
            case _:
                return


def prompts(trace: Trace) -> list[list[int]]:
    """The whole prompt of each turn, put together from what the record keeps."""
    branches: dict[tuple[int, int], list[int]] = {}
    whole: list[list[int]] = []
    for turn in trace.turns:
        tokens = turn.reply.tokens
        assert tokens is not None
        before = branches.setdefault((turn.thread, turn.branch), [])
        whole.append(before + tokens.prompt)
        before += tokens.prompt + tokens.completion
    return whole


@pytest.mark.parametrize("seed", range(12))
def test_every_recorded_sequence_is_what_the_model_saw(seed: int) -> None:
    dice = random.Random(seed)
    model = Sampler(dice)

    async def play() -> Trace:
        async with talking(model, listed=True, config=CONFIG) as talk:
            program = Program(talk, dice)
            for _ in range(12):
                await program.step()
                await program.meddle()
            return await talk.end()

    trace = asyncio.run(play())
    drawn = [turn for turn in trace.turns if turn.reply.message.text]
    assert {turn.reply.message.text for turn in drawn} == model.saw.keys(), "each reply once"
    for turn, whole in zip(trace.turns, prompts(trace), strict=True):
        if turn not in drawn:
            assert turn.reply.tokens == Tokens([], []), "nobody drew what the program did by itself"
            continue
        context, tokens, version = model.saw[turn.reply.message.text]
        assert ids(*trace.context(turn.index)) == ids(*context) == whole == tokens.prompt
        assert turn.reply.tokens is not None
        assert (turn.reply.tokens.completion, turn.reply.tokens.logprobs) == (tokens.completion, tokens.logprobs)
        assert turn.reply.policy_version == version
    trained = qn.trajectories([trace])
    assert sum(sum(one.mask) for one in trained) == sum(len(tokens.completion) for _, tokens, _ in model.saw.values())
    for one in trained:
        assert len(one.token_ids) == len(one.mask) == len(one.logprobs)
        assert [logprob for logprob, own in zip(one.logprobs, one.mask, strict=True) if own] == [-0.5] * sum(one.mask)
        assert all(one.mask[place] and not one.mask[place - 1] for place, _ in one.versions)
    assert [one.score for one in trained if one.last] == [trace.score]


def test_a_program_that_words_observations_its_own_way_stays_in_one_branch() -> None:
    """The next prompt need not continue a tool's output that the model did not see."""
    dice = random.Random(1)
    model = Sampler(dice)

    async def play() -> Trace:
        async with talking(model, listed=True, config=CONFIG) as talk:
            program = Program(talk, dice)
            for _ in range(8):
                await program.step()
            return await talk.end()

    trace = asyncio.run(play())
    assert any(turn.keep is not None for turn in trace.turns), "it did word some"
    assert {turn.branch for turn in trace.turns} == {0}
    (trained,) = qn.trajectories([trace])
    last = trace.turns[-1].reply.tokens
    assert last is not None
    assert trained.token_ids == prompts(trace)[-1] + last.completion
