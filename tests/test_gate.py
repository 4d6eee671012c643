"""The failure gate: when a run stops, and what it says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.episode import blank
from quintain.errors import Failure, RunStopped
from quintain.gate import Gate, Z, enough, wilson
from quintain.record import EpisodeRecord
from quintain.trace import Timing, Trace

from .worlds import environment, first_task

ENV = environment()


def records(failed: int, episodes: int) -> list[EpisodeRecord]:
    """Records of the same episodes."""
    return [EpisodeRecord(trace, Timing()) for trace in traces(failed, episodes)]


def traces(failed: int, episodes: int) -> list[Trace]:
    """So many episodes, of which the last ones failed."""
    made = [blank(ENV, first_task(ENV)) for _ in range(episodes)]
    for trace in made[episodes - failed :]:
        trace.failure = Failure(
            component="S", kind="quintain:tool_bug", stage="agent", type="KeyError", message="x", turn=0
        )
    return made


def watch(gate: Gate, episodes: list[EpisodeRecord]) -> int | None:
    """Counts the episodes until the gate stopped the run; None if it did not."""
    for number, record in enumerate(episodes, 1):
        try:
            gate.observe(record)
        except RunStopped:
            return number
    return None


@pytest.mark.parametrize(
    ("failures", "episodes", "low", "high"),
    [(1, 10, 0.0179, 0.4042), (12, 100, 0.0700, 0.1981), (0, 20, 0.0, 0.1611), (20, 20, 0.8389, 1.0), (0, 0, 0, 1)],
)
def test_wilson_has_the_published_values(failures: int, episodes: int, low: float, high: float) -> None:
    assert wilson(failures, episodes) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_solves_its_quadratic(case: tuple[int, int]) -> None:
    """The bounds are the rates p that lie Z standard errors from the observed r: n (r - p)^2 = Z^2 p (1 - p)."""
    failures, n = case
    rate, square = failures / n, Z * Z
    a, b, c = 1 + square / n, -(2 * rate + square / n), rate * rate
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    low, high = wilson(failures, n)
    assert low == pytest.approx((-b - root) / (2 * a), abs=1e-9)
    assert high == pytest.approx((-b + root) / (2 * a), abs=1e-9)
    assert 0 <= low <= rate + 1e-12
    assert rate - 1e-12 <= high <= 1


@pytest.mark.parametrize(("size", "least"), [(1, 1), (2, 2), (3, 2), (4, 2), (5, 3), (8, 4), (9, 5)])
def test_enough_requires_half_of_a_group(size: int, least: int) -> None:
    assert [enough(valid, size) for valid in range(size + 1)] == [valid >= least for valid in range(size + 1)]


def test_one_in_ten_goes_on_and_twelve_in_a_hundred_stop() -> None:
    assert watch(Gate(qn.Config()), records(1, 10)) is None
    assert watch(Gate(qn.Config()), records(12, 100)) is not None
    assert watch(Gate(qn.Config()), records(5, 100)) is None
    assert watch(Gate(qn.Config(gate_rate=None)), records(100, 100)) is None


def test_the_gate_stops_at_the_minimum_number_of_episodes() -> None:
    assert watch(Gate(qn.Config(gate_minimum=20)), records(20, 20)) == 20
    mostly = records(19, 19) + records(0, 1)
    assert watch(Gate(qn.Config(gate_minimum=20)), mostly) == 20, "a success at the minimum hides nothing"
    assert watch(Gate(qn.Config(gate_minimum=50, gate_window=10)), records(50, 50)) == 10


@given(st.lists(st.booleans(), max_size=80), st.integers(1, 40), st.integers(1, 40), st.floats(0.01, 1))
def test_the_gate_stops_exactly_at_the_wilson_bound(fails: list[bool], window: int, minimum: int, rate: float) -> None:
    config = qn.Config(gate_window=window, gate_minimum=minimum, gate_rate=rate)
    expected = None
    for seen in range(min(window, minimum), len(fails) + 1):
        recent = fails[max(0, seen - window) : seen]
        if wilson(sum(recent), len(recent))[0] > rate:
            expected = seen
            break
    episodes = [record for failed in fails for record in records(int(failed), 1)]
    assert watch(Gate(config), episodes) == expected


def test_a_first_group_in_which_all_failed_stops_the_run() -> None:
    with pytest.raises(RunStopped, match="4 episodes played so far, and every one failed"):
        Gate(qn.Config()).observe_group(traces(4, 4))
    Gate(qn.Config(gate_rate=None)).observe_group(traces(4, 4))
    gate = Gate(qn.Config())
    gate.observe_group(traces(3, 4))
    gate.observe_group(traces(4, 4))
    gate.close()


def test_one_alone_may_be_bad_luck() -> None:
    gate = Gate(qn.Config())
    gate.observe_group(traces(1, 1))
    gate.observe_group(traces(1, 1))
    with pytest.raises(RunStopped, match="3 episodes played so far, and every one failed"):
        gate.observe_group(traces(1, 1))
    lucky = Gate(qn.Config())
    for failed in (1, 1, 0, 1, 1):
        lucky.observe_group(traces(failed, 1))
    lucky.close()


def test_a_run_of_which_nothing_succeeded_was_none() -> None:
    gate = Gate(qn.Config())
    gate.close()
    gate.observe_group(traces(1, 1))
    with pytest.raises(RunStopped, match="1 episode played so far, and every one failed"):
        gate.close()


def test_the_report_names_letter_kind_and_task() -> None:
    gate = Gate(qn.Config(gate_rate=None))
    for record in records(3, 5):
        gate.observe(record)
    (other,) = traces(1, 1)
    other.task = "t2"
    assert other.failure is not None
    other.failure = Failure(component="H", kind="agent_timeout", stage="agent", type="X", message="slow", turn=0)
    gate.observe(EpisodeRecord(other, Timing()))
    assert gate.report().splitlines() == [
        "  S  quintain:tool_bug: 3, in test-0 (3); e.g. KeyError: x",
        "  H  agent_timeout: 1, in t2 (1); e.g. X: slow",
    ]
