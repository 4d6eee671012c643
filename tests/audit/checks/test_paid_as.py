"""Tests of the relation between the rewards of several probes, and of the helpers on ops that checks share."""

from __future__ import annotations

import pytest

from quintain.audit.checks._reward_runs import paid_as, paid_so
from quintain.audit.facts.acts import giving, meets, replaced
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.probe import OpResult, Record, call, score


def _record(got: float | None, *, fails: bool = False) -> Record:
    called = OpResult(how="refused" if fails else "", raised="no" if fails else "")
    return Record((call("send", {}), score()), (called, OpResult(got)))


@pytest.mark.parametrize(
    ("got", "kinds"),
    [(1.0, {"full", "some"}), (0.5, {"less", "lost", "some"}), (0.0, {"less", "lost"}), (None, {"lost"})],
)
def test_reward_is_full_less_lost_or_some(got: float | None, kinds: set[str]) -> None:
    assert {how for how in ("full", "less", "lost", "some") if paid_so(_record(got), how, 1.0)} == kinds


@pytest.mark.parametrize(
    ("second", "works", "holds"),
    [
        (_record(1.0), True, True),
        (_record(0.5), True, False),
        (_record(1.0, fails=True), True, False),
        (_record(1.0, fails=True), False, True),
    ],
)
def test_each_probe_is_paid_as_the_data_says(second: Record, works: bool, holds: bool) -> None:
    data = {"full": 1.0, "paid": ["less", "full"], "works": works}
    assert paid_as([_record(0.5), second], Evidence("", data=data)) is holds


def test_an_op_is_replaced_and_given_other_arguments() -> None:
    ops = (call("a", {"x": 1, "y": 2}), call("b", {}))
    assert replaced(ops, 0, giving(ops[0], x=3)) == (call("a", {"x": 3, "y": 2}), call("b", {}))
    assert replaced(ops, 1) == ops[:1]


def test_paths_meet_where_one_begins_the_other() -> None:
    assert meets(("orders",), ("orders", "7", "status"))
    assert not meets(("orders", "8"), ("orders", "7", "status"))
