"""Poisson load: arrivals at the target rate, latency from the due time, and answers equal to the serial run's."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.audit.facts import load
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, call, reset, score


class Counter:
    """Subject that counts its calls; a wrong one counts those of all sessions."""

    all_calls = 0

    def __init__(self, *, wrong: bool = False) -> None:
        self.wrong, self.count = wrong, 0

    def tasks(self) -> list[str]:
        return ["one"]

    def reset(self, task: str, seed: int) -> str:
        self.count = 0
        return task

    def call(self, name: str, arguments: dict[str, Any]) -> int:
        self.count += 1
        Counter.all_calls += 1
        if self.wrong and name == "break" and threading.current_thread() is not threading.main_thread():
            return dict[str, int]()[name]
        return Counter.all_calls if self.wrong and name == "count" else self.count

    def score(self) -> float:
        return float(self.count)


def _asked(*ops: Op, rate: float = 200.0) -> dict[str, Any]:
    scripts = [[msgspec.to_builtins(op) for op in (reset("one"), *ops, score(mark=""))]]
    return {"rate": rate, "seconds": 0.5, "seed": 0, "scripts": scripts}


def test_a_sound_subject_answers_as_alone() -> None:
    point = load.poisson(Player(Counter), "a", _asked(call("count"), call("count")))
    assert point["calls"] == point["compared"] > 60
    assert (point["wrong"], point["errors"], point["unsteady"], point["first_wrong"]) == (0, 0, 0, None)
    assert 0 <= point["p50_ms"] <= point["p95_ms"] <= point["p99_ms"] <= point["max_ms"]
    assert point["achieved"] > 0


def test_unsteady_steps_are_not_compared() -> None:
    point = load.poisson(Player(lambda: Counter(wrong=True)), "a", _asked(call("count")))
    assert point["unsteady"] == 1
    assert point["compared"] < point["calls"]
    assert point["wrong"] == 0


def test_crashes_under_load_are_counted_and_shown() -> None:
    point = load.poisson(Player(lambda: Counter(wrong=True)), "a", _asked(call("break")))
    assert point["errors"] == point["wrong"] > 0
    assert point["first_wrong"]["name"] == "break"
    assert "KeyError" in point["first_wrong"]["observed"]


@given(rate=st.floats(1, 500), seconds=st.floats(0.1, 5), seed=st.integers(0, 1000))
def test_arrivals_come_in_order_and_in_time(rate: float, seconds: float, seed: int) -> None:
    due = load.arrivals(random.Random(seed), rate, seconds)
    assert due == sorted(due)
    assert due == load.arrivals(random.Random(seed), rate, seconds)
    assert all(moment < seconds for moment in due[1:])


def test_arrivals_have_the_target_rate() -> None:
    assert len(load.arrivals(random.Random(1), 200, 50)) == pytest.approx(10_000, rel=0.05)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 100))
def test_a_percentile_is_one_of_the_values(values: list[float], share: float) -> None:
    found = load.percentile(sorted(values), share)
    assert found in [round(one, 3) for one in values]
    assert load.percentile(sorted(values), 100) == round(max(values), 3)


def test_a_stall_shows_in_the_latency_of_what_it_delayed(tmp_path: Path) -> None:
    gate = threading.Event()

    class Stalling(Counter):
        def call(self, name: str, arguments: dict[str, Any]) -> int:
            if threading.current_thread() is not threading.main_thread() and not gate.is_set():
                gate.wait(0.4)
                gate.set()
            return super().call(name, arguments)

    point = load.poisson(Player(Stalling), "a", _asked(call("count")))
    assert point["max_ms"] >= 400
    assert point["wrong"] == 0
