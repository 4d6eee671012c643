"""Rewards at four levels: who is asked when, what is recorded, and what happens to a criterion that misbehaves."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import JudgeError
from quintain.trace import Level, Reward, Trace
from quintain.verifier import Criterion, Score

from .worlds import Item, Yard, blamed, call, environment, fine, one_by_one, play, says, script, single


def given_by(trace: Trace, name: str) -> list[Reward]:
    return [reward for reward in trace.every_reward() if reward.name == name]


def notes(*texts: str) -> Any:
    return says(*(call("note", text=text) for text in texts))


def test_every_level_speaks_in_its_place() -> None:
    @qn.reward(level="step")
    def at_step(effect: qn.StepView[Yard]) -> float:
        return len(effect.after.notes) / 10 if effect.role == "agent" else 0.0

    @qn.reward(level="turn", low=0, high=20, normalize=True)
    def at_turn(transition: qn.TurnView[Yard]) -> float:
        return float(len(transition.after.notes) - len(transition.before.notes))

    @qn.reward(weight=0.5)
    def at_end(outcome: qn.EpisodeView[Yard]) -> float:
        assert [reward.name for reward in outcome.trace.rewards] == ["fine"]
        return len(outcome.state.notes) / 10

    env = environment(fine, at_step, at_turn, at_end)
    trace = play(env, script(notes("a", "b"), notes("c")))
    assert [(r.raw, r.turn, r.step) for r in given_by(trace, "at_step")] == [(0.1, 0, 0), (0.2, 0, 1), (0.3, 1, 0)]
    assert [(r.raw, r.value, r.turn) for r in given_by(trace, "at_turn")] == [(2, 0.1, 0), (1, 0.05, 1), (0, 0.0, 2)]
    assert [(r.raw, r.turn, r.step, r.weight) for r in given_by(trace, "at_end")] == [(0.3, None, None, 0.5)]
    assert trace.score == pytest.approx(1.15)
    assert trace.criteria == ("fine", "at_step", "at_turn", "at_end")


def phased(*predicates: Callable[[Any], Any], after: dict[int, int]) -> list[Criterion[Any]]:
    return [
        Criterion(name=f"p{n}", level=Level.PHASE, fn=judge, after=f"p{after[n]}" if n in after else None)
        for n, judge in enumerate(predicates)
    ]


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=6), st.data())
def test_phases_are_awarded_once_and_in_order(table: list[list[bool]], data: st.DataObject) -> None:
    """`table[turn][phase]` says whether the predicate holds; a model of the rule says who is awarded when."""
    after = {n: data.draw(st.integers(0, n - 1)) for n in range(1, 4) if data.draw(st.booleans())}
    judges = [lambda view, n=n: table[view.turn.index][n] for n in range(4)]
    env = environment(fine, *phased(*judges, after=after), max_turns=len(table))
    trace = play(env, script(*[says(call("nod"))] * len(table)))
    reached: dict[int, int] = {}
    for turn, row in enumerate(table):
        for n, holds in enumerate(row):
            if holds and n not in reached and (n not in after or after[n] in reached):
                reached[n] = turn
    for n in range(4):
        (reward,) = given_by(trace, f"p{n}")
        assert (reward.value, reward.turn) == ((1.0, reached[n]) if n in reached else (0.0, None))
        assert reward.reason == ("" if n in reached else "not reached")
        assert reward in (trace.turns[reached[n]].rewards if n in reached else trace.rewards)


def test_a_phase_that_does_not_apply_is_not_reached() -> None:
    trace = play(environment(fine, *phased(lambda view: Score(None, "not here"), after={})), script())
    assert given_by(trace, "p0")[0].value == 0.0


def test_criteria_without_a_call_to_score_are_recorded() -> None:
    trace = play(environment(), script())
    assert {reward.name for reward in trace.every_reward()} == set(trace.criteria)
    assert [(r.raw, r.value, r.reason) for r in given_by(trace, "cheap")] == [(None, None, "nothing to judge")]


def test_a_skipped_criterion_has_its_reason_and_no_vote() -> None:
    @qn.reward
    def skipped(outcome: qn.EpisodeView[Yard]) -> Score:
        return Score(None, "no judge today")

    trace = play(environment(fine, skipped), script())
    assert given_by(trace, "skipped") == [
        Reward(name="skipped", level=Level.TRAJECTORY, raw=None, value=None, reason="no judge today")
    ]
    assert trace.score == 1.0
    failure = blamed(play(environment(skipped), script()))
    assert (failure.component, failure.kind, failure.stage) == ("V", "verifier_error", "verification")


@given(st.floats(-5, 5), st.floats(0.5, 9), st.floats(0, 1))
def test_raw_is_what_was_said_and_value_its_place_in_the_range(low: float, width: float, place: float) -> None:
    high = low + width
    raw = min(high, low + place * width)

    @qn.reward(low=low, high=high, normalize=True, weight=2.0)
    def measured(outcome: qn.EpisodeView[Yard]) -> float:
        return raw

    (reward,) = given_by(trace := play(environment(measured), script()), "measured")
    assert reward.raw == raw
    assert reward.value == pytest.approx(place, abs=1e-6)
    assert trace.score == pytest.approx(2 * place, abs=1e-6)


def test_an_async_criterion_is_awaited() -> None:
    @qn.reward
    async def asked(outcome: qn.EpisodeView[Yard]) -> float:
        await asyncio.sleep(0)
        return 0.25

    assert play(environment(asked), script()).score == 0.25


def throw(error: BaseException) -> Callable[[Any], Any]:
    def judge(view: Any) -> Any:
        raise error

    return judge


async def hang(view: Any) -> float:
    await asyncio.Event().wait()
    return 1.0


def block(view: Any) -> float:
    time.sleep(20)
    return 1.0


ALONE = [level for level in Level if level is not Level.GROUP]
"""Levels that an episode played alone has."""
NONSENSE: Any = {"a": 1}
BROKEN: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "raises": (throw(KeyError("x")), "verifier_error", "KeyError"),
    "exits": (throw(SystemExit(1)), "verifier_error", "SystemExit"),
    "knows why": (throw(JudgeError("no verdict", kind="judge_unparseable")), "judge_unparseable", "JudgeError"),
    "too high": (lambda view: 1.5, "quintain:reward_out_of_range", "EpisodeError"),
    "too low": (lambda view: Score(-0.1), "quintain:reward_out_of_range", "EpisodeError"),
    "NaN": (lambda view: math.nan, "quintain:reward_out_of_range", "EpisodeError"),
    "infinite": (lambda view: Score(math.inf), "quintain:reward_out_of_range", "EpisodeError"),
    "a word": (lambda view: "good", "verifier_error", "TypeError"),
    "None": (lambda view: None, "verifier_error", "TypeError"),
    "a list": (lambda view: Score([1]), "verifier_error", "TypeError"),  # type: ignore[arg-type]
    "a reason of nonsense": (lambda view: Score(1.0, NONSENSE), "verifier_error", "ValidationError"),
    "a reason no file can hold": (lambda view: Score(1.0, "\ud800"), "verifier_error", "UnicodeEncodeError"),
    "blocks": (block, "quintain:verifier_timeout", "DeadlineExceeded"),
    "hangs": (hang, "quintain:verifier_timeout", "DeadlineExceeded"),
}


@pytest.mark.parametrize("level", ALONE)
@pytest.mark.parametrize("case", BROKEN)
def test_a_criterion_without_a_verdict_fails_the_episode(case: str, level: Level) -> None:
    judge, kind, type_ = BROKEN[case]
    criterion = Criterion[Any](name="bad", level=level, fn=judge)
    limit = 0.2 if case in {"blocks", "hangs"} else None
    trace = play(environment(fine, criterion, verifier_timeout_s=limit), script(says(call("nod"), call("nod"))))
    failure = blamed(trace)
    assert (failure.component, failure.kind, failure.type) == ("V", kind, type_)
    assert failure.stage == "verification"
    assert failure.turn == (2 if level is Level.TRAJECTORY else 0)
    assert trace.criteria == ("fine", "bad")


def test_values_that_multiply_to_no_number_are_no_score() -> None:
    criteria = [
        Criterion[Any](name=f"big{n}", level=Level.TRAJECTORY, fn=lambda view: 1e200, high=1e200) for n in range(2)
    ]
    env = environment().replace(verifier=qn.Verifier(*criteria, combine="product"))
    failure = blamed(play(env, script()))
    assert (failure.component, failure.message) == ("V", "the score is inf")


def vandalise(view: Any) -> float:
    for world in (getattr(view, name, None) for name in ("before", "after", "state")):
        if world is not None:
            world.notes.append("x")
            world.items.clear()
            world.vault.gold = 10**6
            world.bell.ring(0)
            world.clock.advance(99)
            world.rng.bits()
            world.finish("enough")
    return 1.0


def deface(view: Any) -> float:
    if isinstance(view, qn.EpisodeView):
        view.trace.turns.clear()
        view.trace.rewards.clear()
        view.trace.tags.clear()
        view.trace.score = 9.0
    return 1.0


MODEL = one_by_one(call("note", text="a"), call("roll", sides=100), call("put", key="box"), call("pay", gold=3))


def on_all_levels(fn: Any) -> list[Criterion[Any]]:
    return [Criterion[Any](name=f"c{n}", level=level, fn=fn) for n, level in enumerate(ALONE)]


def test_criteria_that_change_a_trace_change_nothing() -> None:
    one, other = (play(environment(*on_all_levels(fn)), MODEL) for fn in (lambda view: 1.0, deface))
    assert one.turns == other.turns
    assert (one.rewards, one.score, one.tags) == (other.rewards, other.score, other.tags)


@pytest.mark.parametrize("level", ALONE)
def test_a_criterion_that_changes_a_view_is_named_in_a_failure(level: Level) -> None:
    """The world stays as it was, and the episode has no score."""
    calm = on_all_levels(lambda view: 1.0)
    wild = Criterion[Any](name="wild", level=level, fn=vandalise)
    expected, found = play(environment(*calm), MODEL), play(environment(*calm, wild, fine), MODEL)
    assert found.failure is not None
    assert (found.failure.component, found.failure.kind) == ("V", "verifier_error")
    assert found.failure.message == (
        "scoring function 'wild' changed the world that it may only read; let it change a .copy()"
    )
    assert found.score is None
    digests = [turn.state_digest for turn in found.turns]
    assert digests[:1] == [turn.state_digest for turn in expected.turns][:1] or level is Level.STEP


def test_a_change_in_a_table_or_in_one_of_two_worlds_is_found() -> None:
    def before_only(view: qn.TurnView[Any]) -> float:
        view.before.items["stone"] = Item(1)
        return 1.0

    failure = play(environment(fine, Criterion[Any](name="sly", level=Level.TURN, fn=before_only)), MODEL).failure
    assert failure is not None
    assert "'sly'" in failure.message


def test_a_change_that_does_not_come_again_has_all_names() -> None:
    once = iter([True])

    def moody(view: qn.TurnView[Any]) -> float:
        if next(once, False):
            view.after.notes.append("x")
        return 1.0

    criteria = [Criterion[Any](name="calm", level=Level.TURN, fn=lambda view: 1.0)]
    criteria.append(Criterion[Any](name="moody", level=Level.TURN, fn=moody))
    failure = play(environment(fine, *criteria), MODEL).failure
    assert failure is not None
    assert "scoring function 'calm' or 'moody' changed" in failure.message


def test_scoring_functions_share_one_view_of_each_world() -> None:
    seen: list[Any] = []

    def look(view: Any) -> float:
        seen.extend(world for name in ("before", "after", "state") if (world := getattr(view, name, None)) is not None)
        return 1.0

    trace = play(environment(*on_all_levels(look)), MODEL)
    assert trace.score == 1
    worlds = {turn.state_digest for turn in trace.turns}
    assert len({id(world) for world in seen}) <= len(worlds) + 1


class Loose(qn.State):
    """A world whose copy has other bytes: an int in a float's place, and a set."""

    weight: float = 0.0
    words: set[str] = set()

    @qn.tool
    def append_word(self, word: str) -> str:
        """Add a word.

        Args:
            word: Any.
        """
        self.words.add(word)
        self.weight = len(self.words)
        return "ok"


def test_a_view_whose_bytes_differ_from_its_world_counts_as_unchanged() -> None:
    same = Criterion[Any](name="same", level=Level.TURN, fn=lambda view: float(view.after.weight > 0))
    env = single(Loose(), fine, same)
    trace = play(env, script(*(says(call("append_word", word=f"w{n}")) for n in range(9)), says()))
    assert (trace.failure, trace.score) == (None, 1.0)
