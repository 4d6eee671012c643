"""Reports of runs: means, bounds and failures."""

from __future__ import annotations

import io
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from quintain.cli.summary import print_summary, to_dict
from quintain.episode import blank
from quintain.errors import Failure
from quintain.record import EpisodeRecord
from quintain.report import Summary, indistinguishable, score_range
from quintain.trace import SOLVED, End, Level, Message, Reply, Step, Timing, Turn, Usage
from quintain.verifier import Criterion, Verifier

from .worlds import call, environment, first_task

ENV = environment()
SCORES = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
GROUPS = st.lists(st.lists(SCORES, min_size=1, max_size=5), max_size=6)


def play(score: float | None, *, turns: int = 1, tags: dict[str, str] | None = None, kind: str = "") -> EpisodeRecord:
    """An episode with this score; None is a failed one."""
    trace = blank(ENV, first_task(ENV))
    step = Step(call("nod"), "ok")
    reply = Reply(Message("assistant"), usage=Usage(10, 1))
    trace.turns = [Turn(index=n, reply=reply, steps=(step, step)) for n in range(turns)]
    trace.tags = tags or {}
    trace.score, trace.end = score, End.TERMINATED
    if score is None:
        trace.end = End.FAILED
        trace.failure = Failure(
            component="H", kind=kind or "agent_timeout", stage="agent", type="X", message="", turn=0
        )
    return EpisodeRecord(trace, Timing(model_s=1.0, total_s=2.0))


def summary(*groups: Sequence[float | None]) -> Summary:
    made = Summary()
    for scores in groups:
        made.add([play(score) for score in scores])
    return made


@given(GROUPS)
def test_pass_hat_k_is_the_share_of_draws_that_all_succeed(groups: list[list[float | None]]) -> None:
    shares: dict[int, list[float]] = {}
    for scores in groups:
        valid = [score >= SOLVED for score in scores if score is not None]
        for k in range(1, len(valid) + 1):
            draws = list(itertools.combinations(valid, k))
            shares.setdefault(k, []).append(sum(map(all, draws)) / len(draws))
    expected = {k: statistics.mean(values) for k, values in shares.items()}
    assert summary(*groups).pass_hat_k == pytest.approx(expected)


@given(GROUPS)
def test_mean_standard_error_and_interval(groups: list[list[float | None]]) -> None:
    made = summary(*groups)
    everything = [score for scores in groups for score in scores]
    valid = [score for score in everything if score is not None]
    means = [statistics.mean(kept) for scores in groups if (kept := [s for s in scores if s is not None])]
    assert made.all.mean == (pytest.approx(statistics.mean(valid)) if valid else None)
    assert made.failed == len(everything) - len(valid)
    if len(means) < 2:
        assert made.standard_error is None
    else:
        assert made.standard_error == pytest.approx(statistics.stdev(means) / math.sqrt(len(means)), abs=1e-7)
    if not everything:
        assert made.interval is None
        return
    bounds = [statistics.mean([fill if score is None else score for score in everything]) for fill in (0.0, 1.0)]
    assert made.interval == pytest.approx(tuple(bounds))


@pytest.mark.parametrize(
    ("criteria", "combine", "expected"),
    [
        ([{}], "sum", (0.0, 1.0)),
        ([{"low": -2.0, "high": 3.0, "weight": 2.0}], "sum", (-4.0, 6.0)),
        ([{"low": 5.0, "high": 10.0}], "sum", (5.0, 10.0)),
        ([{"low": 5.0, "high": 10.0, "normalize": True}], "sum", (0.0, 1.0)),
        ([{}, {"weight": -0.5}], "sum", (-0.5, 1.0)),
        ([{"low": 5.0, "high": 10.0}, {"low": 1.0, "high": 2.0}], "sum", (0.0, 12.0)),
        ([{"low": -2.0, "high": 3.0}, {"low": -4.0, "high": 0.5}], "product", (-12.0, 8.0)),
        ([{"low": 2.0, "high": 3.0}, {"low": 0.5, "high": 0.6}], "product", (0.5, 3.0)),
        ([{"low": -8e307, "high": 8e307}], "sum", None),
        ([{}, {"low": -1e9, "high": 1e9, "weight": 0.0}], "sum", (0.0, 1.0)),
        ([{}, {"level": Level.STEP, "low": -5.0}], "sum", (0.0, 1.0)),
    ],
)
def test_score_range_is_what_the_criteria_can_give(
    criteria: list[dict[str, Any]], combine: Literal["sum", "product"], expected: tuple[float, float] | None
) -> None:
    rules: list[dict[str, Any]] = [{"level": Level.TRAJECTORY} | rule for rule in criteria]
    made = [Criterion[Any](name=str(n), fn=lambda _: 0.0, **rule) for n, rule in enumerate(rules)]
    assert score_range(Verifier(*made, combine=combine)) == expected


def test_failed_episodes_count_as_the_lowest_and_highest_score() -> None:
    declared = Summary((-1.0, 1.0))
    declared.add([play(score) for score in (0.5, None)])
    assert declared.interval == (-0.25, 0.75)
    returns = summary([200.0, -30.0, None], [500.0])
    assert returns.interval == pytest.approx(((670 - 30) / 4, (670 + 500) / 4))
    assert to_dict(returns)["failed_tasks"]["test-0"]["mean_reward_bounds"] == pytest.approx((140 / 3, 670 / 3))
    with io.StringIO() as text:
        print_summary(Console(file=text, width=200), returns)
        assert "between 160 and 292.5, counting each failed episode as -30 or as 500" in text.getvalue()


def test_standard_error_has_a_task_as_its_unit() -> None:
    assert summary([1.0, None, 1.0], [0.0]).standard_error == pytest.approx(0.5)
    assert summary([1.0, 0.0]).standard_error is None


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=20))
def test_failure_by_length_compares_the_shorter_with_the_longer_half(episodes: list[tuple[int, bool]]) -> None:
    made = Summary()
    for turns, failed in episodes:
        made.add([play(None if failed else 1.0, turns=turns)])
    lengths = sorted(turns for turns, _ in episodes)
    short = [failed for turns, failed in episodes if lengths.index(turns) < len(lengths) / 2]
    long = [failed for turns, failed in episodes if lengths.index(turns) >= len(lengths) / 2]
    rates = tuple(sum(half) / len(half) if half else None for half in (short, long))
    assert made.failure_by_length == rates


@given(GROUPS)
def test_the_order_of_the_groups_does_not_matter(groups: list[list[float | None]]) -> None:
    one, other = to_dict(summary(*groups)), to_dict(summary(*reversed(groups)))
    assert one.keys() == other.keys()
    nested = {"seconds", "failures", "by", "pass_hat_k", "mean_reward_bounds", "failed_tasks", "failure_examples"}
    for name in one.keys() - nested:
        assert one[name] == pytest.approx(other[name], abs=1e-7), name
    assert one["failures"] == other["failures"]
    assert one["failed_tasks"].keys() == other["failed_tasks"].keys()
    for task, sums in one["failed_tasks"].items():
        low, high = other["failed_tasks"][task]["mean_reward_bounds"]
        assert sums["mean_reward_bounds"] == pytest.approx((low, high), abs=1e-7), task


def test_everything_is_counted() -> None:
    made = Summary()
    easy, hard = {"level": "easy"}, {"level": "hard", "family": "f"}
    made.add([play(1.0, turns=2, tags=easy), play(0.0, tags=hard)], [play(None, tags=hard, kind="session_lost")])
    made.add([play(None, tags=easy), play(None, tags=easy)], kept=False)
    assert msgspec.json.decode(msgspec.json.encode(to_dict(made))) == {
        "episodes": 5,
        "scored": 2,
        "mean_reward": 0.5,
        "standard_error": None,
        "mean_reward_bounds": [0.2, 0.8],
        "pass_at_1": 0.5,
        "pass_hat_k": {"1": 0.5, "2": 0.0},
        "failed": 3,
        "failures": {"H": {"session_lost": 1, "agent_timeout": 2}},
        "failure_examples": [
            {"component": "H", "kind": "session_lost", "text": "X: ", "hint": None},
            {"component": "H", "kind": "agent_timeout", "text": "X: ", "hint": None},
        ],
        "failure_rate_short": 0.75,
        "failure_rate_long": 0.0,
        "failed_tasks": {"test-0": {"episodes": 5, "failed": 3, "mean_reward": 0.5, "mean_reward_bounds": [0.2, 0.8]}},
        "dropped_groups": 1,
        "turns": 6,
        "tool_calls": 12,
        "tokens": 66,
        "seconds": {"model": 5.0, "tool": 0.0, "verifier": 0.0, "queue": 0.0, "total": 10.0, "other": 5.0},
        "by": {
            "family": {"f": {"episodes": 2, "failed": 1, "mean_reward": 0.0}},
            "level": {
                "easy": {"episodes": 3, "failed": 2, "mean_reward": 1.0},
                "hard": {"episodes": 2, "failed": 1, "mean_reward": 0.0},
            },
        },
    }


def test_tasks_that_never_failed_are_not_listed() -> None:
    assert summary([0.0, 1.0]).failed_tasks == {}


def test_an_empty_summary_has_no_means() -> None:
    made = to_dict(Summary())
    assert (made["mean_reward"], made["pass_at_1"], made["mean_reward_bounds"]) == (None, None, None)
    assert (made["failure_rate_short"], made["failure_rate_long"], made["failed"]) == (None, None, 0)


def test_a_difference_smaller_than_what_failures_leave_open_is_none() -> None:
    sound, better = summary([0.0, 1.0]), summary([1.0, 1.0])
    holey = summary([1.0, 1.0, None, None])
    assert indistinguishable(sound, better) is None
    assert indistinguishable(sound, sound) is None
    assert indistinguishable(better, holey) == (
        "the difference of 0.000 is smaller than what the failures leave open (0.500)"
    )
    assert indistinguishable(sound, holey) is None, "0.5 apart, and 0.5 open"
    for nothing in (summary(), summary([None])):
        for pair in ((sound, nothing), (nothing, sound)):
            assert indistinguishable(*pair) == "a run without scored episodes cannot be compared"
