"""Composite criteria: value, range, order of the parts, and what stands in the record."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import DefinitionError
from quintain.judges import gated, product, weighted
from quintain.trace import Level
from quintain.verifier import Criterion
from tests.judges.helpers import play, shelf


def part(name: str, value: float | None, *, run: list[str] | None = None, **rule: Any) -> Criterion[Any]:
    async def fn(_: qn.EpisodeView[Any]) -> qn.Score:
        if run is not None:
            run.append(name)
        return qn.Score(value, f"because of {name}", {"of": name})

    return Criterion(name=name, level=Level.TRAJECTORY, fn=fn, **rule)


def test_weighted_sum_by_hand() -> None:
    criterion = weighted(part("a", 0.5, weight=2), part("b", 1.0, weight=-0.25), part("c", 8, high=10, normalize=True))
    reward = play(shelf(criterion)).rewards[0]
    assert (criterion.low, criterion.high) == (-0.25, 3.0)
    assert reward.value == pytest.approx(2 * 0.5 - 0.25 + 0.8)
    assert reward.details["parts"]["a"] == {
        "value": 0.5,
        "weight": 2.0,
        "reason": "because of a",
        "details": {"of": "a"},
    }
    assert reward.reason == "a 0.5, b 1, c 0.8"


@given(st.lists(st.tuples(st.floats(0, 1) | st.none(), st.floats(-5, 5)), min_size=1, max_size=4))
def test_weighted_sum_stays_in_its_range(parts: list[tuple[float | None, float]]) -> None:
    if not any(weight for _, weight in parts):
        return
    criterion = weighted(*(part(f"p{n}", value, weight=weight) for n, (value, weight) in enumerate(parts)))
    given_ = [(value, weight) for value, weight in parts if value is not None]
    trace = play(shelf(criterion, part("other", 1)))
    assert trace.failure is None
    expected = math.fsum(value * weight for value, weight in given_) if given_ else None
    assert trace.rewards[0].raw == expected


def test_closed_gate_gives_zero_and_saves_the_rest() -> None:
    run: list[str] = []
    criterion = gated(part("form", 1, run=run), part("cited", 0.5, run=run), then=part("judge", 0.9, run=run))
    reward = play(shelf(criterion)).rewards[0]
    assert (reward.value, reward.reason) == (0.0, "gate 'cited' is closed: because of cited")
    assert run == ["form", "cited"]
    assert reward.details["parts"].keys() == {"form", "cited"}


@pytest.mark.parametrize("gate", [1.0, None])
def test_open_gates_give_the_value_behind_them(gate: float | None) -> None:
    criterion = gated(part("form", gate), then=part("judge", -0.5, low=-1))
    assert (criterion.low, criterion.high) == (-1, 1)
    assert play(shelf(criterion)).score == -0.5


def test_product_multiplies() -> None:
    assert play(shelf(product(part("a", 0.5), part("b", 0.5), part("c", None)))).score == 0.25


def test_part_outside_its_own_range_is_a_failure() -> None:
    failure = play(
        shelf(weighted(part("a", 0.5), part("b", 1.5, high=1), weighted(part("c", 1), name="inner")))
    ).failure
    assert failure is not None
    assert failure.kind == "quintain:reward_out_of_range"
    assert "'b' returned 1.5" in failure.message


def test_composite_of_an_outside_verdict_is_an_outside_verdict() -> None:
    assert gated(part("a", 1), then=part("judge", 1, external=True)).external
    assert not gated(part("a", 1), then=part("b", 1)).external


@pytest.mark.parametrize(
    "make",
    [
        weighted,
        lambda: weighted(part("a", 1), part("a", 1)),
        lambda: gated(then=part("a", 1)),
        lambda: product(part("a", 1, weight=2)),
        lambda: product(part("a", 1, low=-1)),
        lambda: weighted(Criterion(name="t", level=Level.TURN, fn=lambda _: 1.0)),
    ],
)
def test_parts_that_make_no_composite_are_refused(make: Any) -> None:
    with pytest.raises(DefinitionError, match=r"part|gate"):
        make()
