"""Planned faults: as often as asked for, and the same for everyone who plays the task."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.config import Config
from quintain.noise import FAULTS, Fault, sample_fault
from quintain.trace import Image, Text

CALLS = 20_000


def storm(rate: float, *, seed: int = 0, task: str = "t", calls: int = CALLS, **more: Any) -> list[Fault | None]:
    config = Config(noise_rate=rate, **more)
    return [sample_fault(config, seed=seed, task=task, call=call) for call in range(calls)]


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.99])
def test_faults_are_as_frequent_as_the_rate(rate: float) -> None:
    count = sum(fault is not None for fault in storm(rate))
    deviation = (CALLS * rate * (1 - rate)) ** 0.5
    assert abs(count - CALLS * rate) < 4 * deviation


def test_kinds_are_as_frequent_as_their_weights() -> None:
    met = Counter(fault.kind for fault in storm(0.5) if fault)
    assert sum(fault.weight for fault in FAULTS) == pytest.approx(1.0)
    assert len({fault.kind for fault in FAULTS}) == len(FAULTS)
    for fault in FAULTS:
        assert met[fault.kind] / met.total() == pytest.approx(fault.weight, abs=0.02)


def test_all_kinds_are_as_frequent_as_their_shares() -> None:
    met = Counter(fault.kind for fault in storm(0.5, noise_weights="all") if fault)
    assert sum(fault.share for fault in FAULTS) == pytest.approx(1.0)
    for fault in FAULTS:
        assert met[fault.kind] / met.total() == pytest.approx(fault.share, abs=0.02)


@given(st.dictionaries(st.sampled_from([fault.kind for fault in FAULTS]), st.floats(0.01, 1), min_size=1))
def test_chosen_weights_move_no_fault_and_give_no_other_kind(weights: dict[str, float]) -> None:
    chosen, usual = storm(0.5, calls=300, noise_weights=weights), storm(0.5, calls=300)
    assert [fault is None for fault in chosen] == [fault is None for fault in usual]
    assert {fault.kind for fault in chosen if fault} <= weights.keys()


def test_the_default_weights_as_a_dict_give_the_default_faults() -> None:
    weights = {fault.kind: fault.weight for fault in FAULTS if fault.weight}
    assert storm(0.5, noise_weights=weights) == storm(0.5)


@given(st.text())
def test_malformed_json_is_no_json(text: str) -> None:
    (malformed,) = (fault for fault in FAULTS if fault.kind == "malformed")
    observation, is_error = malformed.corrupt(text)
    assert isinstance(observation, str)
    assert not is_error
    with pytest.raises(json.JSONDecodeError):
        json.loads(observation)


def test_no_noise_is_none() -> None:
    assert set(storm(0.0)) == {None}


@given(st.floats(0, 0.99), st.integers(), st.text(), st.integers(0, 10**6))
def test_the_weather_depends_on_its_arguments_alone(rate: float, seed: int, task: str, call: int) -> None:
    one, two = (sample_fault(Config(noise_rate=rate, max_turns=n), seed=seed, task=task, call=call) for n in (1, 600))
    assert one == two


@given(st.floats(0, 0.98), st.floats(0, 0.01), st.integers(0, 100), st.integers(0, 100))
def test_more_noise_only_adds_faults(rate: float, more: float, seed: int, call: int) -> None:
    calm = sample_fault(Config(noise_rate=rate), seed=seed, task="t", call=call)
    rough = sample_fault(Config(noise_rate=rate + more), seed=seed, task="t", call=call)
    assert calm is None or rough == calm


def test_seeds_and_tasks_have_their_own_next_fault() -> None:
    storms = [storm(0.5, seed=seed, task=task, calls=200) for seed in (0, 1) for task in ("t", "u")]
    assert len({tuple(one) for one in storms}) == 4


def test_the_weather_is_golden() -> None:
    kinds = [fault.kind if fault else None for fault in storm(0.5, calls=12)]
    assert kinds == [
        "unavailable",
        "unavailable",
        "empty",
        None,
        "truncated",
        "truncated",
        "unavailable",
        None,
        None,
        None,
        "truncated",
        None,
    ]


@pytest.mark.parametrize(
    ("kind", "text", "is_error", "runs"),
    [
        ("timeout", "error: the request timed out", True, False),
        ("unavailable", "error: 503 service unavailable", True, False),
        ("rate_limited", "error: 429 too many requests, try again", True, False),
        ("truncated", "0123", False, True),
        ("empty", "", False, True),
        ("malformed", "01234567,", False, True),
        ("stale", "01234567", False, False),
        ("duplicate", "01234567\n01234567", False, True),
    ],
)
def test_a_fault_replaces_the_observation(kind: str, text: str, is_error: bool, runs: bool) -> None:
    (fault,) = (fault for fault in FAULTS if fault.kind == kind)
    assert fault.corrupt("01234567") == (text, is_error)
    assert fault.runs == runs
    assert fault.corrupt("")[1] == is_error


def test_pictures_are_spoiled_as_words() -> None:
    (truncated,) = (fault for fault in FAULTS if fault.kind == "truncated")
    assert truncated.corrupt((Text("ab"), Image("image/png", b"12"))) == ("ab\n[image/p", False)


def test_pictures_are_delivered_twice() -> None:
    (duplicate,) = (fault for fault in FAULTS if fault.kind == "duplicate")
    blocks = (Text("ab"), Image("image/png", b"12"))
    assert duplicate.corrupt(blocks) == (blocks * 2, False)
