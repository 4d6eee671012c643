"""Probes as plain data that survives every encoding, and records with the result of each op."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain import codec
from quintain.audit.kernel.finding import trajectory
from quintain.audit.kernel.probe import (
    Op,
    OpResult,
    Probe,
    ProcessContext,
    Record,
    answer,
    ask,
    call,
    masked,
    number,
    reset,
    same,
    score,
    state,
    together,
)
from quintain.audit.report.document import exact, restored

PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(), one, max_size=3),
    max_leaves=8,
)
WILD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text() | st.binary(),
    lambda one: (
        st.lists(one, max_size=3)
        | st.dictionaries(st.text() | st.integers(0, 9) | st.sampled_from(["$float", "$map"]), one, max_size=3)
    ),
    max_leaves=8,
)
SIMPLE = st.builds(
    Op, st.sampled_from(["call", "reset", "score", "wait"]), st.sampled_from("ab"), st.text(), PLAIN,
    seed=st.integers(0, 9), times=st.integers(1, 3), mark=st.text(max_size=3),
)  # fmt: skip
OPS = SIMPLE | st.builds(Op, st.just("together"), lanes=st.lists(st.lists(SIMPLE, max_size=2).map(tuple)).map(tuple))
PROBES = st.builds(
    Probe, st.lists(OPS, max_size=5).map(tuple), st.builds(ProcessContext, st.integers(0, 9), elsewhere=st.booleans())
)


@given(PROBES)
def test_a_probe_is_the_same_after_json_and_messagepack(probe: Probe) -> None:
    written = codec.json(exact(msgspec.to_builtins(probe, builtin_types=(bytes,))))
    assert msgspec.convert(restored(msgspec.json.decode(written)), Probe) == probe
    assert codec.loads(codec.dumps(probe), Probe) == probe


@given(WILD)
def test_values_without_a_json_form_are_restored(value: Any) -> None:
    found = restored(json.loads(json.dumps(exact(value))))
    assert repr(found) == repr(value)


@given(PROBES, st.sets(st.integers(0, 9)))
def test_without_keeps_the_others_in_order(probe: Probe, gone: set[int]) -> None:
    left = probe.without(gone)
    assert left.ops == tuple(op for place, op in enumerate(probe.ops) if place not in gone)
    assert left.context == probe.context


def test_constructors_make_ops() -> None:
    assert reset("a", seed=3) == Op("reset", "a", "a", seed=3)
    assert call("f") == Op("call", name="f", value={})
    assert answer("yes", on="b") == Op("answer", "b", value="yes")
    assert (score().mark, state().mark, ask("m:f").mark, together([score()]).mark) == (
        "score",
        "state",
        "ask",
        "together",
    )
    assert call("f").marked("x").moved("b") == call("f", on="b", mark="x")


def test_an_unreached_mark_is_hung_and_an_unknown_one_raises() -> None:
    record = Record((reset("a"), score()), (OpResult("hello"),), died="it was killed")
    assert record.at("score") == OpResult(how="hung", raised="it was killed")
    with pytest.raises(KeyError, match=r"no op of this probe is marked 'state': \['score'\]"):
        record.at("state")
    assert record.broken is None
    assert trajectory(record) == [
        {"do": "reset", "name": "a", "observed": "hello"},
        {"do": "score", "hung": "it was killed"},
    ]


def test_a_record_has_lanes_and_the_first_broken_op() -> None:
    lanes = msgspec.to_builtins(
        [[OpResult(1), OpResult(2)], [OpResult(raised="KeyError: x", how="crashed", where="f.py:3")]]
    )
    record = Record(
        (together([], []), call("f")), (OpResult(lanes), OpResult(how="crashed", raised="KeyError: x", where="f.py:3"))
    )
    assert [one.value for one in record.lane("together", 0)] == [1, 2]
    assert record.lane("together", 1)[0].how == "crashed"
    assert record.lane("together", 7) == []
    assert record.broken is not None
    assert trajectory(record)[1] == {
        "do": "call", "name": "f", "arguments": {}, "crashed": "KeyError: x", "where": "f.py:3",
    }  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), [({"error": "no"}, True), ("no error", False), (None, False)])
def test_a_result_is_an_error_if_the_answer_says_so_or_the_call_was_refused(value: Any, expected: bool) -> None:
    assert OpResult(value).is_error is expected
    assert OpResult(value, how="refused").is_error


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (OpResult({"score": 1}), 1.0), (OpResult({"score": None}), None), (OpResult(0.5), 0.5), (OpResult(None), None),
        (OpResult("1"), None), (OpResult({"score": 1}, how="crashed"), None), (OpResult({}), None),
    ],
)  # fmt: skip
def test_the_number_of_a_score(seen: OpResult, wanted: float | None) -> None:
    assert number(seen) == wanted


def test_same_means_values_and_types_and_not_seconds() -> None:
    assert same(OpResult({"a": 1, "b": 2}, seconds=1), OpResult({"b": 2, "a": 1}, seconds=2))
    assert not same(OpResult(1), OpResult(1.0))
    assert not same(OpResult(1), OpResult(True))
    assert not same(OpResult([1, 2]), OpResult([2, 1]))
    assert same(OpResult(raised="KeyError: a", how="crashed"), OpResult(raised="KeyError: b", how="crashed"))
    assert not same(OpResult(raised="KeyError: a", how="crashed"), OpResult(raised="KeyError: a", how="refused"))
    assert same(OpResult({"id": 1, "x": [{"id": 2}]}), OpResult({"id": 3, "x": [{"id": 4}]}), volatile=("id",))


@given(PLAIN)
def test_masking_nothing_changes_nothing(value: Any) -> None:
    assert masked(value, ()) is value
    assert masked(value, ["no such name"]) == value
