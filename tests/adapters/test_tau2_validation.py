"""Conversions and complaints of the reference's validator; every line was read off pydantic 2.14."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from quintain.adapters.tau2.validation import construct


class Whole(msgspec.Struct):
    a: int


class Real(msgspec.Struct):
    a: float


class Words(msgspec.Struct):
    a: str


class Many(msgspec.Struct):
    a: list[Words]
    b: int | None = None


@pytest.mark.parametrize(
    ("given", "whole", "real"),
    [
        ("5", 5, 5.0),
        (" +5\n", 5, 5.0),
        ("1_000", 1000, 1000.0),
        ("1.00", 1, 1.0),
        ("-1_0", -10, -10.0),
        ("007", 7, 7.0),
        (1e16, 10**16, 1e16),
        (True, 1, 1.0),
        (-(2**70), -(2**70), -(2.0**70)),
    ],
)
def test_numbers_that_both_take(given: Any, whole: int, real: float) -> None:
    assert construct(Whole, {"a": given}).a == whole
    assert type(construct(Whole, {"a": given}).a) is int
    assert construct(Real, {"a": given}).a == real
    assert type(construct(Real, {"a": given}).a) is float


def test_texts_that_only_a_float_takes() -> None:
    for given, real in (("1.", 1.0), ("1e3", 1e3), (".5", 0.5), ("inf", math.inf), ("9" * 4400, math.inf)):
        assert construct(Real, {"a": given}).a == real
    assert math.copysign(1, construct(Real, {"a": "-0"}).a) == -1


PARSING = "valid integer, unable to parse string as an integer [type=int_parsing,"
FRACTION = "valid number, unable to parse string as a number [type=float_parsing,"
UNICODE = "Input should be a valid string, unable to parse raw data as a unicode string"
SIZE = "Unable to parse input string as an integer, exceeded maximum size [type=int_parsing_size, input_value="


@pytest.mark.parametrize(
    ("model", "given", "complaint"),
    [
        (Whole, "1.5", f"Input should be a {PARSING} input_value='1.5', input_type=str]"),
        (Whole, "1__0", f"Input should be a {PARSING} input_value='1__0', input_type=str]"),
        (Whole, "٣", f"Input should be a {PARSING} input_value='٣', input_type=str]"),
        (Whole, "  ", f"Input should be a {PARSING} input_value='  ', input_type=str]"),
        (Whole, "9" * 4400, f"{SIZE}'999999999999999999999999...99999999999999999999999', input_type=str]"),
        (Whole, 1e30, f"{SIZE}1e+30, input_type=float]"),
        (Whole, math.nan, "Input should be a finite number [type=finite_number, input_value=nan, input_type=float]"),
        (Whole, None, "Input should be a valid integer [type=int_type, input_value=None, input_type=NoneType]"),
        (Real, "٣", f"Input should be a {FRACTION} input_value='٣', input_type=str]"),
        (Real, [], "Input should be a valid number [type=float_type, input_value=[], input_type=list]"),
        (Real, "x" * 49, f"Input should be a {FRACTION} input_value='{'x' * 24}...{'x' * 23}', input_type=str]"),
        (Real, "x" * 48, f"Input should be a {FRACTION} input_value='{'x' * 48}', input_type=str]"),
        (Real, "é" * 60, f"Input should be a {FRACTION} input_value='{'é' * 12}...{'é' * 11}', input_type=str]"),
        (Words, "\ud800", f"{UNICODE} [type=string_unicode, input_value='\\ud800', input_type=str]"),
        (Many, "ab", "Input should be a valid list [type=list_type, input_value='ab', input_type=str]"),
    ],
)
def test_complaints_are_those_of_pydantic(model: type[msgspec.Struct], given: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match="1 validation error") as caught:
        construct(model, {"a": given})
    kind = complaint.split("[type=")[1].split(",", maxsplit=1)[0]
    assert str(caught.value) == (
        f"1 validation error for {model.__name__}\na\n  {complaint}"
        f"\n    For further information visit https://errors.pydantic.dev/2.14/v/{kind}"
    )


def test_rows_in_lists_are_built_and_name_their_place() -> None:
    ready = Words("x")
    assert construct(Many, {"a": [{"a": "y", "extra": 1}, ready], "extra": 1}) == Many([Words("y"), ready])
    with pytest.raises(ValueError, match="3 validation errors for Many") as caught:
        construct(Many, {"a": [{"a": 1}, 5], "b": "x"})
    lines = str(caught.value).splitlines()
    assert [line for line in lines if not line.startswith(" ")][1:] == ["a.0.a", "a.1", "b"]
    assert "Input should be a valid dictionary or instance of Words [type=model_type, input_value=5" in lines[5]
