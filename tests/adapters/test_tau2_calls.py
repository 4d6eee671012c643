"""Calls as the reference makes them: what reaches a tool, what doesn't, and what is said of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quintain.adapters.tau2.airline import Airline
from quintain.adapters.tau2.calculator import calculated
from quintain.adapters.tau2.convention import respond
from quintain.adapters.tau2.retail import Retail
from quintain.adapters.tau2.world import World
from quintain.errors import ToolError
from quintain.tools import collect
from tests.adapters.conftest import Ask, asker


@pytest.fixture
def shop(retail: World) -> Ask:
    return asker(retail)


def test_worlds_have_16_and_14_tools() -> None:
    assert (len(collect(Retail)), len(collect(Airline))) == (16, 14)


def test_calls_that_do_not_reach_a_tool(shop: Ask, retail: World) -> None:
    assert shop("bake", x=1) == "Error: Tool 'bake' not found."
    assert shop("get_order_details") == (
        "Error: RetailTools.get_order_details() missing 1 required positional argument: 'order_id'"
    )
    assert shop("cancel_pending_order") == (
        "Error: RetailTools.cancel_pending_order() missing 2 required positional arguments: 'order_id' and 'reason'"
    )
    assert shop("find_user_id_by_name_zip").endswith("arguments: 'first_name', 'last_name', and 'zip'")
    assert shop("get_order_details", order_id="#W1", x=1) == (
        "Error: RetailTools.get_order_details() got an unexpected keyword argument 'x'"
    )
    assert shop("get_order_details", tool_name=1) == (
        "Error: Environment.make_tool_call() got multiple values for argument 'tool_name'"
    )


def test_a_direct_call_raises_what_the_model_would_read(retail: World) -> None:
    assert isinstance(retail, Retail)
    assert json.loads(retail.get_order_details(order_id="#W1"))["order_id"] == "#W1"
    with pytest.raises(ToolError, match=r"^Error: Order not found$"):
        retail.get_order_details(order_id="#W9")


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2 + 2", "4.0"),
        ("  (1+2) * 3.5 ", "10.5"),
        ("-7//2", "-4.0"),
        ("2**-1 + +1", "1.5"),
        ("1.005*1000", "1005.0"),
        ("100000000000000000000*3", "3e+20"),
    ],
)
def test_calculator_computes_like_the_reference(expression: str, result: str) -> None:
    assert calculated(expression) == result


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("1e5", ValueError, "Invalid characters in expression"),
        ("", SyntaxError, "invalid syntax (<string>, line 0)"),
        ("1 +", SyntaxError, "invalid syntax (<string>, line 1)"),
        ("1/0", ZeroDivisionError, "division by zero"),
        ("()", TypeError, "float() argument must be a string or a real number, not 'tuple'"),
        ("...", TypeError, "float() argument must be a string or a real number, not 'ellipsis'"),
        ("(-8)**0.5", TypeError, "float() argument must be a string or a real number, not 'complex'"),
        ("5(3)", TypeError, "'int' object is not callable"),
        ("5(*())", TypeError, "'int' object is not callable"),
        ("5(*1)", TypeError, "5 argument after * must be an iterable, not int"),
        ("5(**1)", TypeError, "5 argument after ** must be a mapping, not int"),
        ("(*())", SyntaxError, "cannot use starred expression here"),
        ("9**9**9**9", OverflowError, "int too large to convert to float"),
        ([], TypeError, "eval() arg 1 must be a string, bytes or code object"),
    ],
)
def test_arithmetic_that_fails(expression: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        calculated(expression)
    assert message in str(caught.value)


def test_other_callers_have_no_tools(retail: World) -> None:
    assert respond(retail, "get_order_details", {}, requestor="user") == ("Error: User tools not available", True)
    assert respond(retail, "get_order_details", {}, requestor="cat") == ("Error: Invalid requestor: cat", True)
    said, _ = respond(retail, "get_order_details", {"requestor": 1, "self": 2})
    assert said.endswith("Environment.make_tool_call() got multiple values for keyword argument 'requestor'")
