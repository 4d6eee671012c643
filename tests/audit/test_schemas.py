"""Parameters in short forms, as a schema of an object."""

from __future__ import annotations

from typing import Any

import pytest

from quintain.audit.kernel.adapter import schema_of

TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@pytest.mark.parametrize(
    "given",
    [
        {"text": {"type": "string"}},
        {"text": {"type": "str"}},
        {"text": {"type": "string", "required": True}},
        {"text": "string"},
        {"text": str},
        [{"name": "text", "type": "string"}],
        TEXT,
    ],
)
def test_short_forms_name_the_required_properties(given: Any) -> None:
    assert schema_of(given) == TEXT


@pytest.mark.parametrize(
    "given",
    [{"type": "string", "default": "x"}, {"type": "string", "required": False}, {"type": "string", "optional": True}],
)
def test_a_property_with_a_default_is_optional(given: dict[str, Any]) -> None:
    assert "required" not in schema_of({"text": given})


@pytest.mark.parametrize("given", [{}, {"type": "object"}, {"$ref": "#/x"}, {"type": "object", "properties": {}}])
def test_a_schema_is_left_as_it_is(given: dict[str, Any]) -> None:
    assert schema_of(given) == given


def test_a_parameter_called_type_is_one_and_words_describe() -> None:
    assert schema_of({"type": {"type": "string"}})["required"] == ["type"]
    assert schema_of({"text": "what to write"})["properties"] == {"text": {"description": "what to write"}}
    assert schema_of("nonsense") == {}
