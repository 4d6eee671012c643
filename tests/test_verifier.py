"""Results of criteria, their ranges, and how they add up to a score."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import quintain as qn
from quintain import codec
from quintain.config import Config
from quintain.errors import DefinitionError, EpisodeError
from quintain.trace import Level, Message, Reply, Reward, Trace, Turn
from quintain.verifier import Criterion

FINITE = st.floats(allow_nan=False, allow_infinity=False)
Judged = Criterion[Any]


def criterion(name: str = "c", level: Level = Level.TRAJECTORY, **fields: Any) -> Judged:
    return Criterion(name=name, level=level, fn=lambda view: 1.0, **fields)


@given(st.floats(-1e6, 1e6), st.floats(1e-2, 1e6), st.floats(0, 1), st.booleans())
def test_a_verdict_within_its_range_is_delivered(low: float, width: float, place: float, normalize: bool) -> None:
    one = criterion(low=low, high=low + width, normalize=normalize)
    raw = min(max(low + place * width, one.low), one.high)
    given_ = one.reward(raw)
    assert given_.raw == raw
    assert given_.value is not None
    if normalize:
        assert 0 <= given_.value <= 1
        assert given_.value == pytest.approx(place, abs=1e-6)
    else:
        assert given_.value == raw
    assert one.reward(qn.Score(raw, "why")) == Reward(
        name="c", level=Level.TRAJECTORY, raw=raw, value=given_.value, weight=1.0, reason="why"
    )


@given(st.floats(), FINITE, FINITE)
def test_a_verdict_outside_its_range_is_a_failure_and_never_clipped(raw: float, low: float, high: float) -> None:
    assume(low < high < math.inf and math.isfinite(high - low))
    one = criterion(low=low, high=high)
    if low <= raw <= high:
        assert one.reward(raw).raw == raw
    else:
        with pytest.raises(EpisodeError) as raised:
            one.reward(raw)
        assert str(raised.value) == (
            f"criterion 'c' returned {raw}, outside its range (low={low}, high={high}); return a value inside, or "
            "declare the range, as in @reward(low=-1, high=2)"
        )
        assert (raised.value.component, raised.value.kind) == ("V", "quintain:reward_out_of_range")


@pytest.mark.parametrize("raw", [math.nan, math.inf, -math.inf, 10**400])
def test_a_value_that_is_not_finite_is_out_of_range(raw: float) -> None:
    with pytest.raises(EpisodeError, match="outside its range"):
        criterion(low=-8e307, high=8e307).reward(raw)


@pytest.mark.parametrize(("said", "value"), [(True, 1.0), (False, 0.0), (1, 1.0), (qn.Score(True), 1.0)])
def test_a_truth_is_a_number(said: Any, value: float) -> None:
    reward = criterion().reward(said)
    assert (repr(reward.raw), reward.value) == (repr(value), value)


def test_a_skipped_verdict_says_so() -> None:
    reward = criterion(normalize=True).reward(qn.Score(None, "no e-mail was sent"), turn=3, step=1)
    assert (reward.raw, reward.value, reward.reason) == (None, None, "no e-mail was sent")
    assert (reward.turn, reward.step) == (3, 1)


@pytest.mark.parametrize(
    ("said", "shown"),
    [(None, "None"), ("1", "'1'"), ([1.0], "[1.0]"), (qn.Score(cast(float, "1")), "'1'"), (1j, "1j")],
)
def test_anything_else_is_refused(said: Any, shown: str) -> None:
    with pytest.raises(TypeError) as raised:
        criterion().reward(said)
    assert str(raised.value) == f"criterion 'c' must return a number or a Score, got {shown}"


@pytest.mark.parametrize(
    "fields",
    [
        {"low": 1},
        {"low": 2, "high": 1},
        {"high": math.inf},
        {"low": -math.inf},
        {"low": math.nan},
        {"high": math.nan},
        {"weight": math.nan},
        {"weight": math.inf},
        {"low": -1.7e308, "high": 1.7e308},
    ],
)
def test_a_range_has_two_finite_ends(fields: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=r"criterion 'c' needs a finite weight and low < high, got weight="):
        criterion(**fields)


def test_an_int_is_the_float_it_stands_for() -> None:
    as_int, as_float = criterion(weight=2, low=-1, high=3), criterion(weight=2.0, low=-1.0, high=3.0)
    assert codec.dumps(as_int.reward(1)) == codec.dumps(as_float.reward(1.0))
    assert codec.loads(codec.dumps(as_int.reward(1)), Reward) == as_float.reward(1.0)
    assert codec.dumps(as_int.silent("x", 0.0)) == codec.dumps(as_float.silent("x", 0.0))


# --- decorators


def test_decorators_take_names_and_fields_from_what_they_decorate() -> None:
    @qn.reward
    def plain(outcome: qn.EpisodeView[qn.State]) -> float:
        return 1.0

    @qn.reward(level="step", weight=0.5, low=-1, normalize=True)
    def fancy(effect: qn.StepView[qn.State]) -> float:
        return 1.0

    @qn.reward(level="turn")
    def at_turn(transition: qn.TurnView[qn.State]) -> float:
        return 1.0

    @qn.phase(after="first", weight=2)
    def second(transition: qn.TurnView[qn.State]) -> bool:
        return True

    assert [(c.name, c.level, c.weight) for c in (plain, fancy, at_turn, second)] == [
        ("plain", Level.TRAJECTORY, 1.0),
        ("fancy", Level.STEP, 0.5),
        ("at_turn", Level.TURN, 1.0),
        ("second", Level.PHASE, 2.0),
    ]
    assert (fancy.low, fancy.high, fancy.normalize, second.after) == (-1.0, 1.0, True, "first")


@pytest.mark.parametrize("level", ["episode", "phase", ""])
def test_a_level_is_one_of_four(level: Any) -> None:
    with pytest.raises(DefinitionError, match=f"'trajectory' or 'group', got '{level}'"):
        qn.reward(level=level)


# --- verifiers


def verdict(value: float | None, *, weight: float = 1.0, level: Level = Level.TRAJECTORY) -> Reward:
    return Reward(name="r", level=level, raw=value, value=value, weight=weight)


VERDICTS = st.lists(
    st.builds(verdict, st.none() | st.floats(-10, 10), weight=st.floats(-10, 10), level=st.sampled_from(Level)),
    max_size=6,
)


@given(VERDICTS, st.randoms())
def test_a_sum_is_exact_and_knows_no_order(rewards: list[Reward], random: Any) -> None:
    counted = [r for r in rewards if r.level in (Level.TRAJECTORY, Level.GROUP) and r.value is not None]
    assume(counted)
    verifier = qn.Verifier(criterion())
    total = verifier.total(rewards)
    random.shuffle(rewards)
    assert verifier.total(rewards) == total == math.fsum((r.value or 0.0) * r.weight for r in counted)


def test_tenths_make_a_whole() -> None:
    assert qn.Verifier(criterion()).total([verdict(1.0, weight=0.1)] * 10) == 1.0


@given(VERDICTS)
def test_a_product_ignores_what_was_skipped(rewards: list[Reward]) -> None:
    values = [r.value for r in rewards if r.level in (Level.TRAJECTORY, Level.GROUP) and r.value is not None]
    assume(values)
    assert qn.Verifier(criterion(), combine="product").total(rewards) == math.prod(values)


@pytest.mark.parametrize("rewards", [[], [verdict(None)], [verdict(1.0, level=Level.TURN)]])
def test_no_verdict_is_no_score(rewards: list[Reward]) -> None:
    with pytest.raises(EpisodeError, match="every trajectory-level criterion was skipped") as raised:
        qn.Verifier(criterion()).total(rewards)
    assert (raised.value.component, raised.value.kind) == ("V", "verifier_error")


def test_a_score_is_finite() -> None:
    with pytest.raises(EpisodeError, match="the score is inf") as raised:
        qn.Verifier(criterion(), combine="product").total([verdict(1e300), verdict(1e300)])
    assert raised.value.kind == "quintain:reward_out_of_range"
    with pytest.raises(OverflowError):
        qn.Verifier(criterion()).total([verdict(1.5e308), verdict(1.5e308)])


def test_criteria_are_found_by_level_in_order() -> None:
    criteria = [criterion("a"), criterion("b", Level.TURN), criterion("c"), criterion("d", Level.PHASE)]
    verifier = qn.Verifier(*criteria)
    assert [c.name for c in verifier.at(Level.TRAJECTORY)] == ["a", "c"]
    assert [c.name for level in Level for c in verifier.at(level)] == ["b", "d", "a", "c"]
    assert verifier.at(Level.STEP) == ()


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (qn.Verifier, "nothing judges the whole trajectory, as a @reward does; criteria: []"),
        (
            lambda: qn.Verifier(cast(Any, id)),
            "Verifier takes functions with @reward or @phase, got <built-in function id>; put @reward above id",
        ),
        (
            lambda: qn.Verifier(criterion("a", Level.TURN)),
            "nothing judges the whole trajectory, as a @reward does; criteria: ['a']",
        ),
        (lambda: qn.Verifier(criterion("a"), criterion("a")), "criteria need distinct names, got ['a', 'a']"),
        (
            lambda: qn.Verifier(criterion("a"), criterion("b", Level.TURN), criterion("b", Level.STEP)),
            "criteria need distinct names, got ['a', 'b', 'b']",
        ),
        (
            lambda: qn.Verifier(criterion("p", Level.PHASE, after="q"), criterion("q", Level.PHASE), criterion("a")),
            "phase 'p' follows 'q', no phase listed before it: ['p', 'q', 'a']",
        ),
        (
            lambda: qn.Verifier(criterion("a"), criterion("p", Level.PHASE, after="a")),
            "phase 'p' follows 'a', no phase listed before it: ['a', 'p']",
        ),
        (
            lambda: qn.Verifier(criterion("a", weight=0.5), combine="product"),
            "criterion 'a' has weight 0.5, but values are multiplied",
        ),
    ],
)
def test_a_verifier_that_cannot_judge_is_refused(build: Callable[[], object], says: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        build()
    assert str(raised.value) == says


def test_phases_may_follow_each_other_and_weigh_where_values_are_multiplied() -> None:
    phases = [criterion("p", Level.PHASE, weight=3), criterion("q", Level.PHASE, after="p")]
    assert qn.Verifier(*phases, criterion("a"), combine="product").at(Level.PHASE) == tuple(phases)


# --- what a criterion sees


def test_the_answer_is_what_the_agent_said_last() -> None:
    def said(text: str, thread: int) -> Turn:
        return Turn(index=0, thread=thread, reply=Reply(Message("assistant", text)))

    trace = Trace(environment="e", fingerprint="", tools_digest="", task="t", task_digest="", seed=0, config=Config())
    task = qn.Task(id="t", prompt="p", start=qn.State())
    assert qn.EpisodeView(task, qn.State(), qn.State(), trace).answer == ""
    trace.turns = [said("first", 0), said("last", 0), said("a user's", 1)]
    assert qn.EpisodeView(task, qn.State(), qn.State(), trace).answer == "last"
