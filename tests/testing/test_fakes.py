"""The fakes do what they say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import quintain as qn
from quintain.testing import Counter, Script, bank, counter
from quintain.testing.fakes import Ledger
from quintain.trace import End, Level


def play(env: qn.Environment[Any], n: int, script: Script) -> qn.Trace:
    return asyncio.run(qn.rollout(env, env.tasks("test")[n], script)).trace


def test_a_script_makes_its_calls_and_then_answers() -> None:
    script = Script([("add", {"amount": 2}), ("add", {})], "three")
    trace = play(counter(), 2, script)
    assert trace.score == 1.0
    assert [turn.reply.message.text for turn in trace.turns] == ["", "", "three"]
    assert [step.observation for turn in trace.turns for step in turn.steps] == ["2", "3"]
    assert [len(request.messages) for request in script.asked] == [1, 3, 5]


def test_a_script_that_is_at_its_end_repeats_its_answer() -> None:
    script = Script(answer="hm")
    trace = play(counter(max_turns=1), 0, script)
    assert (trace.end, trace.score) == (End.TERMINATED, 0.0)
    assert asyncio.run(script(script.asked[0])).message.text == "hm"


def test_configurations_are_passed_on() -> None:
    assert counter(max_turns=3).config.max_turns == bank(max_turns=3).config.max_turns == 3


def test_the_bank_judges_at_every_level() -> None:
    env = bank()
    task = env.tasks("test")[1]
    assert task.solution is not None
    trace = play(env, 1, Script(task.solution))
    assert {reward.level for reward in trace.every_reward()} == set(Level) - {Level.GROUP}
    assert [turn.steps[0].observation for turn in trace.turns[:2]] == ["T1", "1970-01-02"]
    assert trace.score == 1.0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            ("transfer", {"source": "ann", "target": "eve", "cents": 1}),
            "there is no account 'eve'; there are ann, bob",
        ),
        (("transfer", {"source": "ann", "target": "bob", "cents": 0}), "cents must be above 0, and days from 0"),
        (("transfer", {"source": "ann", "target": "ann", "cents": 1}), "the two accounts are the same"),
        (("wait", {"days": -1}), "days must be from 0 to 365"),
        (("audit", {}), '{"owner":"'),
        (("ledger_read", {}), "[]"),
    ],
)
def test_bank_observations_are_fixed(call: tuple[str, dict[str, object]], says: str) -> None:
    trace = play(bank(), 0, Script([call]))
    observation = trace.turns[0].steps[0].observation
    assert isinstance(observation, str)
    assert observation.startswith(says)
    assert trace.score == 0.0


def test_payer_without_funds_does_not_pay() -> None:
    trace = play(bank(), 0, Script([("transfer", {"source": "bob", "target": "ann", "cents": 1}), ("ledger_read", {})]))
    assert trace.turns[1].steps[0].observation == '["B1 bob could not pay 1"]'


def test_a_part_can_be_used_alone() -> None:
    ledger = Ledger()
    ledger.book("x")
    assert ledger.read() == ["B1 x"]
    assert Counter(count=1).add() == 2
