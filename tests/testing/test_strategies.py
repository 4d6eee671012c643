"""Drawn values fit their type, and every value of a small type is drawn."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import subprocess
import sys
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from msgspec import Meta

import quintain as qn
from quintain.errors import UsageError
from quintain.testing import Bank, bank, strategies
from quintain.testing.fakes import Account
from tests.test_tools import TOOLS


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Tree(msgspec.Struct):
    value: int
    children: list[Tree] = []


class Size(TypedDict):
    width: int


class Pair(NamedTuple):
    left: int
    right: str = ""


@dataclass
class Point:
    x: float
    y: float = 0.0


TYPES: list[Any] = [
    None,
    bool,
    int,
    float,
    str,
    bytes,
    dt.datetime,
    Annotated[dt.datetime, Meta(tz=True)],
    dt.date,
    dt.time,
    dt.timedelta,
    uuid.UUID,
    decimal.Decimal,
    Colour,
    Literal["a", 1],
    int | str | None,
    list[int],
    set[str],
    frozenset[bool],
    tuple[int, ...],
    tuple[int, str],
    dict[str, list[int]],
    dict[int, str],
    Tree,
    Size,
    Pair,
    Point,
    Annotated[int, Meta(ge=3, le=5)],
    Annotated[int, Meta(gt=3, lt=5)],
    Annotated[int, Meta(ge=-7, multiple_of=5)],
    Annotated[float, Meta(gt=0, lt=1)],
    Annotated[float, Meta(ge=0, le=1)],
    Annotated[float, Meta(multiple_of=0.1, le=100)],
    Annotated[str, Meta(min_length=2, max_length=3)],
    Annotated[str, Meta(pattern="^[A-Z]{2}$", max_length=2)],
    Annotated[bytes, Meta(max_length=1)],
    Annotated[list[int], Meta(min_length=1, max_length=1)],
    Annotated[dict[str, int], Meta(min_length=4)],
    Annotated[int, Meta(description="words only")],
]


@pytest.mark.parametrize("type_", TYPES, ids=str)
@settings(max_examples=25)
@given(data=st.data())
def test_a_value_fits_its_type(type_: Any, data: st.DataObject) -> None:
    value = data.draw(strategies.values(type_))
    again: Any = msgspec.json.decode(msgspec.json.encode(value), type=type_)
    assert again == value or isinstance(value, dt.time | dt.timedelta)
    msgspec.convert(msgspec.to_builtins(value, builtin_types=(bytes,)), type_)


@given(strategies.values(Any))
def test_anything_is_something_that_json_knows(value: Any) -> None:
    assert msgspec.json.decode(msgspec.json.encode(value)) == value


@pytest.mark.slow
def test_deep_values_are_drawn_too() -> None:
    assert find(strategies.values(Tree), lambda tree: bool(tree.children)) == Tree(0, [Tree(0)])


class Opaque:
    pass


class Holder(msgspec.Struct):
    thing: Opaque


@pytest.mark.parametrize("type_", [Opaque, Holder])
def test_an_opaque_type_needs_a_strategy(type_: Any) -> None:
    with pytest.raises(UsageError, match=r"no strategy is known for a Opaque; pass one for its field to states\(\)"):
        strategies.values(type_)


class Desk(qn.State):
    count: int = 0
    words: list[str] = []
    accounts: qn.Table[Account] = msgspec.field(default_factory=lambda: qn.Table(Account, {"ann": Account("Ann", 1)}))


TABLES = st.lists(strategies.values(Account)).map(lambda rows: qn.Table(Account, enumerate_(rows)))


def enumerate_(rows: list[Account]) -> dict[str, Account]:
    return {f"k{n}": row for n, row in enumerate(rows)}


@given(strategies.states(Desk), strategies.states(Bank, accounts=TABLES))
def test_states_are_fresh_worlds(desk: Desk, world: Bank) -> None:
    assert list(desk.accounts) == ["ann"]
    assert desk.copy() == desk
    assert world.new_id("R") == "R1"
    assert world.ledger.new_id("R") == "R2"
    assert world.copy() == world


def test_a_resource_without_a_default_needs_a_strategy() -> None:
    with pytest.raises(UsageError, match="no strategy is known for a Table"):
        strategies.states(Bank)


@given(st.data())
def test_calls_are_accepted(data: st.DataObject) -> None:
    tool = data.draw(st.sampled_from(list(TOOLS.values())))
    call = data.draw(strategies.calls(tool))
    assert call.name == tool.name
    tool.decode(call.arguments)


def test_calls_leave_out_what_has_a_default() -> None:
    tool = bank().tools["transfer"]
    first = settings(phases=[Phase.generate], database=None)  # Any call will do, it need not be the smallest.
    find(strategies.calls(tool), lambda call: "days" not in call.arguments, settings=first)
    find(strategies.calls(tool), lambda call: "days" in call.arguments, settings=first)


@given(strategies.replies(list(TOOLS.values()), most=3), strategies.replies([]))
def test_replies_hold_numbered_calls(reply: Any, silent: Any) -> None:
    calls = reply.message.calls
    assert len(calls) <= 3
    assert [call.id for call in calls] == [f"call-{n}" for n in range(len(calls))]
    assert silent.message.calls == ()


def test_without_hypothesis_the_error_is_the_pip_line() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from quintain.testing import EnvironmentContract, ResourceContract, Script, bank\n"
        "import quintain.testing.strategies"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: contracts and strategies need an extra: pip install 'quintain[testing]'"
    )
