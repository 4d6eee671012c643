"""Differences of two states by path, and values that fit their schema."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from quintain.audit.facts.data import MAX_CHANGES, Differ, changes, glance, tabled
from quintain.audit.facts.generate import ODD, Values, fits, odd, one, valid
from quintain.audit.kernel.adapter import ToolSpec

SCALARS: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
TREES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda one: st.dictionaries(st.sampled_from("abc"), one, max_size=3) | st.lists(SCALARS, max_size=3),
    max_leaves=10,
)


def typed(value: Any) -> Any:
    """Returns a value that equals another one only if their types are equal; NaN equals NaN."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return (
        [typed(item) for item in value]
        if isinstance(value, list)
        else (type(value).__name__, repr(value + 0.0 if isinstance(value, float) else value))
    )


@given(TREES, TREES)
def test_changes_are_empty_exactly_for_equal_values(before: Any, after: Any) -> None:
    assert (changes(before, after) == {}) == (typed(before) == typed(after))
    assert changes(before, before) == {}


@given(st.dictionaries(st.sampled_from("abc"), TREES, min_size=1), st.data(), TREES)
def test_a_field_that_became_another_is_found_at_its_place(
    before: dict[str, Any], data: st.DataObject, new: Any
) -> None:
    name = data.draw(st.sampled_from(sorted(before)))
    assume(typed(before[name]) != typed(new))
    found = changes(before, before | {name: new})
    assert found
    assert all(path.partition("/")[0] == name for path in found)


@given(TREES, TREES)
def test_changes_have_the_same_paths_in_both_directions(before: Any, after: Any) -> None:
    there, back = changes(before, after), changes(after, before)
    assert sorted(there) == sorted(back)
    assert all(typed(there[path]) == typed(back[path][::-1]) for path in there)


@given(st.permutations([{"id": n, "x": n % 2} for n in range(4)]))
def test_rows_are_known_by_their_id_in_any_order(rows: list[dict[str, Any]]) -> None:
    before = {"rows": [{"id": n, "x": n % 2} for n in range(4)]}
    assert changes(before, {"rows": rows}) == {}
    changed = [row | {"x": 9} if row["id"] == 3 else row for row in rows]
    assert changes(before, {"rows": changed}) == {"rows/3/x": [1, 9]}
    assert changes(before, {"rows": rows[1:]}) == {f"rows/{rows[0]['id']}": [rows[0], None]}


RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["id", "key", "size"]), st.integers(0, 4) | st.sampled_from("01ab"), max_size=3),
    max_size=4,
)


@given(RECORDS, st.lists(RECORDS, min_size=1, max_size=3), st.data())
def test_differ_finds_the_same_in_shared_rows_as_in_copies(
    before: list[Any], made: list[list[Any]], data: st.DataObject
) -> None:
    differ = Differ({"rows": before})
    for new in made:
        after = data.draw(st.permutations([*data.draw(st.sampled_from([before, before[1:], before[:-1]])), *new]))
        found = differ.changes({"rows": after})
        copied = changes(copy.deepcopy({"rows": before}), copy.deepcopy({"rows": after}))
        assert list(found.items()) == list(copied.items())


def test_ids_that_look_alike_are_two_rows() -> None:
    before = [{"id": 1, "x": 1}, {"id": "1", "x": 1}]
    assert changes(before, [{"id": 1, "x": 5}, {"id": "1", "x": 1}]) == {"0/x": [1, 5]}


def test_differences_beyond_the_limit_are_counted() -> None:
    found = changes({str(n): 0 for n in range(MAX_CHANGES + 7)}, {str(n): 1 for n in range(MAX_CHANGES + 7)})
    assert len(found) == MAX_CHANGES + 1
    assert found["<more>"] == [None, 7]


def test_a_glance_keeps_the_top_and_shortens_below() -> None:
    found = glance({"rows": list(range(100)), "by": {str(n): n for n in range(100)}, "n": 1}, most=3)
    assert found == {"rows": [0, 1, 2], "by": {"0": 0, "1": 1, "2": 2}, "n": 1}
    assert glance([1, 2, 3], most=2) == [1, 2]


# --- values by schema ---

INTEGERS = st.integers(-50, 50).flatmap(
    lambda low: st.integers(low, low + 20).flatmap(
        lambda high: st.sampled_from(
            [
                {"type": "integer", "minimum": low, "maximum": high},
                {"type": "integer", "minimum": low},
                {"type": "integer", "maximum": high},
                {"type": "integer", "exclusiveMinimum": low, "exclusiveMaximum": high + 2},
                {"type": "integer", "minimum": low + 0.5, "maximum": high + 1.5},
                {"type": "number", "minimum": low / 1000, "maximum": (high + 1) / 1000},
                {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high + 1},
                {"type": "number", "maximum": low},
            ]
        )
    )
)
LEAVES = st.one_of(
    INTEGERS,
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": "string", "format": "date"}, {"const": 3}]),
    st.integers(0, 30).map(lambda low: {"type": "string", "minLength": low, "maxLength": low + 5}),
    st.lists(st.text() | st.integers(), min_size=1).map(lambda values: {"enum": values}),
    st.just({"type": ["string", "null"]}),
    st.just({"$ref": "#/$defs/color"}),
)  # fmt: skip


def _object(properties: dict[str, Any], required: bool) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": sorted(properties) if required else [],
        "additionalProperties": False,
    }  # fmt: skip


SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        inner.map(lambda items: {"type": "array", "items": items, "minItems": 1})
        | st.lists(inner, min_size=1, max_size=2).map(lambda choices: {"anyOf": choices})
        | st.builds(_object, st.dictionaries(st.sampled_from("abc"), inner, max_size=2), st.booleans())
    ),
    max_leaves=5,
)
SEEN = st.dictionaries(st.sampled_from("abcx"), SCALARS, max_size=4)


@given(st.dictionaries(st.sampled_from(["a", "b", "order_id"]), SCHEMAS), SEEN, st.integers(0, 99))
@example({"a": {"type": "integer", "minimum": 5, "maximum": 5}}, {}, 0)
@example({"a": {"type": "string", "minLength": 30}}, {}, 0)
def test_drawn_arguments_fit_their_schema(properties: dict[str, Any], seen: dict[str, Any], seed: int) -> None:
    colors = {"color": {"enum": ["red", "green"]}}
    parameters = _object(properties, True) | {"$defs": colors}
    values = Values()
    values.take(seen)
    arguments = valid(ToolSpec("f", parameters=parameters), values, random.Random(seed))
    assert fits(arguments, parameters, parameters), arguments


def test_drawing_is_the_same_for_the_same_seed() -> None:
    tool = ToolSpec("f", parameters=_object({"a": {"type": "number"}, "b": {"type": "string"}}, False))
    drawn = [[valid(tool, Values(), rng) for _ in range(9)] for rng in (random.Random(1), random.Random(1))]
    assert drawn[0] == drawn[1]
    assert len({json.dumps(arguments) for arguments in drawn[0]}) > 1


def test_seen_ids_are_used_as_arguments() -> None:
    values = Values()
    values.take({"orders": {"O-1": {"total": 3}}, "customers": [{"id": "C-9"}], "cities": [{"id": "P-4"}]})
    assert values.of("order_id") == ["O-1"]
    assert values.of("customer_id") == ["C-9"] or "C-9" in values.of("id")
    assert "total" in values.names()
    assert "C-9" in values.strings()
    drawn = {one({"type": "string"}, values, random.Random(n), name="order_id") for n in range(40)}
    assert "O-1" in drawn


@pytest.mark.parametrize(
    ("value", "schema", "wanted"),
    [
        (True, {"type": "integer"}, False), (1, {"type": "number"}, True), (1.5, {"type": "integer"}, False),
        ({}, {"type": "object", "required": ["a"]}, False), ("a", {"enum": ["b"]}, False), (None, {}, True),
        ([1, "x"], {"type": "array", "items": {"type": "integer"}}, False), ("abc", {"maxLength": 2}, False),
        (3, {"exclusiveMaximum": 3}, False), ({"x": 1}, {"additionalProperties": False}, False),
        (1, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, True),
    ],
)  # fmt: skip
def test_a_value_fits_its_schema(value: Any, schema: dict[str, Any], wanted: bool) -> None:
    assert fits(value, schema) is wanted


def test_odd_calls_differ_from_the_good_one_in_one_place() -> None:
    tool = ToolSpec("f", parameters=_object({"a": {"type": "string"}, "b": {"type": "integer"}}, True))
    base = {"a": "word", "b": 3}
    calls = list(odd(tool, base, Values(), rng=random.Random(0)))
    assert len(calls) > 2 * len(ODD)
    assert {} in calls
    assert base | {"no_such_parameter": 1} in calls
    places = [{key for key in (*base, *call) if repr(base.get(key)) != repr(call.get(key))} for call in calls if call]
    assert all(len(place) <= 1 for place in places)


@pytest.mark.parametrize(
    "world",
    [
        {"t1": {"owner": "ann", "left": 1}, "t2": {"owner": None, "left": 2}},
        {"ann": {"role": "a"}, "bob": {"role": "b"}, "cem": {"role": "a"}},
        [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    ],
)
def test_a_state_that_is_one_table_is_put_under_rows(world: Any) -> None:
    assert tabled(world) == {"rows": world}


@pytest.mark.parametrize(
    "world",
    [
        {"orders": {"o1": {"total": 1}}, "users": {"u1": {"name": "a"}}},
        {"left": {"a": 1, "b": 2}, "sold": {"a": 3, "b": 1}, "kept": {"a": 0, "b": 0}},
        {"o1": {"total": 1}, "o2": {"total": 1, "paid": True}},
        {"user": {"name": "a"}, "admin": {"name": "b"}},
        {"o1": {"name": "a"}},
        {},
        [],
        [1, 2],
        None,
        "a",
    ],
)
def test_a_state_of_several_tables_is_unchanged(world: Any) -> None:
    assert tabled(world) is world
