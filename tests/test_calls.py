"""A call reaches its tool only when it fits, and what does not fit is explained to the model."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.tools import collect
from tests.test_tools import TOOLS

GOLDEN: list[tuple[str, str, str | None]] = [
    ("plain", "", "Object missing required field `flag`"),
    ("plain", "  ", "Object missing required field `flag`"),
    ("plain", "[]", "Expected `object`, got `array`"),
    ("plain", '"{}"', "Expected `object`, got `str`"),
    ("plain", "null", "Expected `object`, got `null`"),
    ("plain", '{"flag": 1}', "Expected `bool`, got `int` - at `$.flag`"),
    ("plain", '{"count": true}', "Expected `int`, got `bool` - at `$.count`"),
    ("plain", '{"count": 1.5}', "Expected `int`, got `float` - at `$.count`"),
    ("plain", '{"words": 1}', "Expected `str`, got `int` - at `$.words`"),
    ("plain", '{"raw": "?"}', "Invalid base64 encoded string - at `$.raw`"),
    ("bounded", '{"age": 0}', "Expected `int` >= 1 - at `$.age`"),
    ("bounded", '{"age": 150}', "Expected `int` <= 149 - at `$.age`"),
    ("bounded", '{"age": 1, "code": "abc"}', "Expected `str` matching regex '^[A-Z]{3}$' - at `$.code`"),
    ("bounded", '{"age": 1, "tags": ["a", "b", "c"]}', "Expected `array` of length <= 2 - at `$.tags`"),
    ("structured", '{"point": {}}', "Object missing required field `x` - at `$.point`"),
    ("structured", '{"tree": {"value": 1, "children": [{"value": "x"}]}}', None),
    ("structured", '{"mode": "slowly"}', "Invalid enum value 'slowly' - at `$.mode`"),
    ("structured", '{"colours": {"green": 1}}', "Invalid enum value 'green' - at `key` in `$.colours`"),
]
STRICT: list[tuple[str, str, str | None]] = [
    ("plain", '{"count": "5"}', "Expected `int`, got `str` - at `$.count`"),
    ("bounded", '{"age": 1, "colour": "red"}', "Object contains unknown field `colour`"),
    ("structured", '{"either": 1.5}', "Expected `int | str`, got `float` - at `$.either`"),
]


@pytest.mark.parametrize(("name", "arguments", "says"), GOLDEN + STRICT)
def test_observation_of_an_invalid_call_names_the_place(name: str, arguments: str, says: str | None) -> None:
    with pytest.raises(msgspec.DecodeError) as raised:
        TOOLS[name].decode(arguments)
    assert str(raised.value) == (says or "Expected `int`, got `str` - at `$.tree.children[0].value`")


@pytest.mark.parametrize(("name", "arguments", "says"), GOLDEN[:5] + GOLDEN[10:])
def test_lenient_does_not_mean_anything_goes(name: str, arguments: str, says: str | None) -> None:
    with pytest.raises(msgspec.DecodeError):
        TOOLS[name].decode(arguments, strict=False)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "arguments",
    [
        "{",
        "{'age': 1}",
        '{"age": 1} and more',
        '{"age": 1, "code": "\\ud800"}',
        '{"age": 1, "code": "\ud800"}',
        '{"age": NaN}',
        '{"age": 1e999}',
        "\x00",
        '\ufeff{"age": 1}',
    ],
)
def test_arguments_that_are_not_json_are_refused(arguments: str, strict: bool) -> None:
    with pytest.raises(msgspec.DecodeError):
        TOOLS["bounded"].decode(arguments, strict=strict)


class Numbers(qn.State):
    @qn.tool
    def take(
        self,
        count: int = 0,
        share: float = 0.0,
        shares: list[float | None] = [],  # noqa: B006 (msgspec copies it)
        anything: Any = None,
        by_number: dict[int, float] = {},  # noqa: B006 (msgspec copies it)
    ) -> None:
        """Take.

        Args:
            count: An integer.
            share: A number.
            shares: Numbers.
            anything: Whatever.
            by_number: By number.
        """


TAKE = collect(Numbers)["take"]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "arguments", [f'{{"count": {2**64}}}', f'{{"count": {-(2**63) - 1}}}', f'{{"anything": [{10**30}]}}']
)
def test_an_integer_that_no_snapshot_can_hold_is_the_models_mistake(arguments: str, strict: bool) -> None:
    with pytest.raises(msgspec.ValidationError):
        TAKE.decode(arguments, strict=strict)


@pytest.mark.parametrize(
    "arguments",
    ['{"share": "nan"}', '{"share": "-inf"}', '{"shares": [null, "Infinity"]}', '{"by_number": {"1": "nan"}}'],
)
def test_a_lenient_number_is_one_that_json_can_say(arguments: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="JSON has no"):
        TAKE.decode(arguments, strict=False)


def test_lenient_converts_and_drops() -> None:
    arguments = '{"age": "5", "code": "XYZ", "tags": ["a"], "colour": "red"}'
    assert TOOLS["bounded"].decode(arguments, strict=False) == {"age": 5, "code": "XYZ", "tags": ["a"]}
    assert TAKE.decode('{"by_number": {"1": "2"}}', strict=False)["by_number"] == {1: 2.0}


@given(
    st.fixed_dictionaries(
        {"flag": st.booleans(), "count": st.integers(-(2**63), 2**64 - 1), "words": st.text()},
        optional={"extra": st.none()},
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
def test_valid_arguments_arrive_unchanged(sent: dict[str, Any], share: float, strict: bool) -> None:
    arguments = json.dumps({**sent, "share": share, "raw": "AAE="})
    expected = {"extra": None, **sent, "share": share, "raw": b"\x00\x01"}
    assert TOOLS["plain"].decode(arguments, strict=strict) == expected


@given(st.text() | st.binary().map(lambda data: data.decode(errors="surrogateescape")), st.booleans())
def test_any_text_is_decoded_or_refused(arguments: str, strict: bool) -> None:
    for tool in (TAKE, TOOLS["structured"]):
        try:
            tool.decode(arguments, strict=strict)
        except msgspec.DecodeError:
            continue


def test_defaults_are_fresh_for_every_call() -> None:
    TOOLS["bounded"].decode('{"age": 1}')["tags"].append("x")
    assert TOOLS["bounded"].decode('{"age": 1}')["tags"] == []
