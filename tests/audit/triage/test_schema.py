from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.audit.triage.schema import violation
from quintain.environments.sales import env as sales
from quintain.models.baselines import draw
from quintain.state import Rng

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
        "size": {"anyOf": [{"type": "integer", "minimum": 0, "exclusiveMaximum": 10}, {"type": "null"}]},
        "kind": {"enum": ["leaf", "node"]},
        "below": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"name": "a"}, ""),
        ({"name": "a", "size": None, "kind": "leaf", "below": [{"name": "b", "size": 9}]}, ""),
        ({"name": "a", "size": 3.0}, ""),
        ({}, "$: 'name' is missing"),
        ({"name": 1}, "$.name: 1 is not string"),
        ({"name": ""}, "$.name: 0 is not between"),
        ({"name": "A"}, "does not match"),
        ({"name": "a", "size": 10}, "fits none of the 2 forms"),
        ({"name": "a", "size": True}, "fits none"),
        ({"name": "a", "size": float("nan")}, "fits none"),
        ({"name": "a", "kind": "root"}, "is none of"),
        ({"name": "a", "more": 1}, "unknown parameter 'more'"),
        ({"name": "a", "below": [{"name": "b", "below": [{}]}]}, "$.below[0].below[0]: 'name' is missing"),
        ({"name": "a", "below": [{"name": "b"}] * 3}, "$.below: 3 is not between"),
        ([], "is not object"),
    ],
)
def test_the_first_violation_is_named_with_its_path(value: Any, wrong: str) -> None:
    said = violation(TREE, value)
    assert wrong in said
    assert bool(said) == bool(wrong)


def test_unknown_keywords_allow_everything() -> None:
    assert not violation({"type": "tuple", "format": "date", "if": {}, "pattern": "(?<bad"}, "x")
    assert violation({"additionalProperties": False}, {"a": 1})
    assert violation({"properties": {"a": False}}, {"a": 1}) == "$.a: nothing is allowed here"


def test_references_that_go_in_circles_end() -> None:
    assert not violation({"$ref": "#"}, 1)


@pytest.mark.parametrize("name", sorted(sales.tools))
def test_arguments_that_a_tool_accepts_fit_its_schema(name: str) -> None:
    tool, rng = sales.tools[name], Rng(key=name.encode())
    for _ in range(20):
        arguments = draw(tool, rng, ["C-1", "2025-03-11"])
        if arguments is not None:
            assert not violation(tool.parameters, json.loads(arguments)), arguments


@given(st.sampled_from(sorted(sales.tools)), st.data())
def test_arguments_that_the_decoder_refuses_do_not_fit(name: str, data: st.DataObject) -> None:
    tool = sales.tools[name]
    names = st.sampled_from([*tool.parameters["properties"], "nonsense"])
    arguments = data.draw(
        st.dictionaries(names, st.none() | st.booleans() | st.integers(-5, 5) | st.just("x"), max_size=3)
    )
    try:
        tool.decode(json.dumps(arguments))
    except msgspec.DecodeError:
        assert violation(tool.parameters, arguments)
    else:
        assert not violation(tool.parameters, arguments)
