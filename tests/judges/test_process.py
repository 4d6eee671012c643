"""Process rewards: the value of a turn from continuations of a fork."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

import quintain as qn
from quintain.errors import ModelError, ReplayDivergence, UsageError
from quintain.harness import Model, Request
from quintain.harnesses import Dialogue
from quintain.judges import monte_carlo_values
from quintain.judges.process import TurnValue
from quintain.models import Scripted
from quintain.trace import Message, Reply, ToolCall
from tests.judges.helpers import Shelf, shelf

THREE = ("set", {"book": "emma", "copies": 3})
NOTE = ("note", {"text": "counted"})


@qn.reward
def ordered(view: qn.EpisodeView[Shelf]) -> float:
    """Share of the copies that were wanted."""
    return min(view.state.books["emma"], 3) / 3


ENV = shelf(ordered)
TASK = ENV.tasks("test")[0]


def played(*calls: tuple[str, dict[str, Any]]) -> qn.Trace:
    return asyncio.run(qn.rollout(ENV, TASK, Scripted.calls(calls))).trace


def values(
    trace: qn.Trace, model: Callable[[], Model], env: qn.Environment[Shelf] = ENV, **rule: Any
) -> list[TurnValue]:
    return asyncio.run(monte_carlo_values(env, TASK, trace, model=model, **rule))


def test_turn_that_reaches_the_goal_makes_the_difference() -> None:
    """A policy that stops at once: before the order a third is there, after it all."""
    found = values(played(NOTE, THREE, NOTE), lambda: Scripted.calls(()), m=2)
    assert [(one.turn, one.value) for one in found] == [
        (0, pytest.approx(1 / 3)),
        (1, pytest.approx(1 / 3)),
        (2, 1.0),
        (3, 1.0),
    ]
    assert {one.standard_error for one in found} == {0.0}


def test_mean_and_standard_error_by_hand() -> None:
    copies = itertools.cycle([0, 3, 0, 0])
    found = values(
        played(NOTE), lambda: Scripted.calls([("set", {"book": "emma", "copies": next(copies)})]), m=4, turns=[1]
    )
    assert [one.turn for one in found] == [1]
    assert sorted(found[0].scores) == [0, 0, 0, 1]
    assert found[0].value == 0.25
    assert found[0].standard_error == pytest.approx(0.25)


def test_continuations_have_their_own_seeds_and_leave_the_record_alone() -> None:
    trace, seeds = played(NOTE), []

    def model() -> Model:
        async def ask(request: Request) -> Reply:
            seeds.append(request.seed)
            if random.Random(request.seed).random() < 0.5 and len(request.messages) < 6:
                return Reply(Message("assistant", calls=(ToolCall("c", "note", '{"text": "x"}'),)))
            return Reply(Message("assistant", "Done."))

        return ask

    before = trace.to_bytes()
    first = values(trace, model, m=4)
    assert len(set(seeds)) == len(seeds)
    assert trace.to_bytes() == before
    again = seeds.copy()
    seeds.clear()
    assert values(trace, model, m=4) == first
    assert sorted(seeds) == sorted(again)


def test_failed_continuations_count_in_nothing() -> None:
    def model(number: Any = itertools.count()) -> Model:  # noqa: B008  # One counter for all continuations.
        async def ask(_: Request) -> Reply:
            if next(number) % 4:
                raise ModelError("HTTP 503")
            return Reply(Message("assistant", "Done."))

        return ask

    (found,) = values(played(), model, m=4)
    assert (found.value, found.standard_error, len(found.scores), found.failed) == (None, None, 1, 3)


def test_a_world_that_answers_differently_is_refused() -> None:
    trace = played(NOTE)
    other = shelf(ordered)
    other.tools["note"] = other.tools["set"]
    with pytest.raises(ReplayDivergence):
        values(trace, lambda: Scripted.calls(()), other)


def test_wrong_arguments_are_refused() -> None:
    trace = played(NOTE)
    with pytest.raises(UsageError, match="at least 2"):
        values(trace, lambda: Scripted.calls(()), m=1)
    with pytest.raises(UsageError, match=r"turns \[7\] are not turns of the agent"):
        values(trace, lambda: Scripted.calls(()), turns=[7])
    with pytest.raises(UsageError, match="pass play_on: how Dialogue goes on"):
        values(trace, lambda: Scripted.calls(()), ENV.replace(harness=Dialogue()))
