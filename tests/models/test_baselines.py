"""The random agent makes valid calls whatever the types are; the others do what little they do."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import re
import typing
import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import Meta

from quintain import codec
from quintain.errors import DefinitionError, UsageError
from quintain.harness import Agent, Harness, Model, Request, ToolLoop
from quintain.harnesses import Dialogue
from quintain.models import Cast, Company, Fixed, Noop, Oracle, Random, Scripted
from quintain.models.baselines import draw, seen
from quintain.models.drawing import Drawing
from quintain.models.patterns import matching
from quintain.state import Rng, State
from quintain.task import Task
from quintain.tools import Tool, collect, tool
from quintain.trace import Message, Reply, ToolCall


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    S = 1
    M = 2


class Leaf(msgspec.Struct, tag="leaf"):
    weight: Annotated[int, Meta(ge=1)]
    label: str = "x"


class Node(msgspec.Struct, tag="node", forbid_unknown_fields=True):
    children: list[Leaf | Node]
    next: Node | None = None


class Row(msgspec.Struct, array_like=True):
    number: int
    name: str = ""


class Pair(NamedTuple):
    left: int
    right: Colour


class Options(TypedDict, total=False):
    limit: int


SCALARS: list[Any] = [
    int,
    float,
    str,
    bool,
    bytes,
    None,
    Any,
    Colour,
    Size,
    Literal["a", "b", 3],
    dt.datetime,
    Annotated[dt.datetime, Meta(tz=True)],
    Annotated[dt.datetime, Meta(tz=False)],
    dt.date,
    dt.time,
    Annotated[dt.time, Meta(tz=True)],
    dt.timedelta,
    uuid.UUID,
    decimal.Decimal,
    Annotated[int, Meta(multiple_of=7)],
    Annotated[int, Meta(lt=0)],
    Annotated[int, Meta(le=-5, multiple_of=5)],
    Annotated[float, Meta(gt=0, lt=1e-9)],
    Annotated[float, Meta(lt=-3)],
    Annotated[float, Meta(ge=2)],
    Annotated[float, Meta(multiple_of=0.1, gt=0)],
    Annotated[str, Meta(min_length=3, max_length=5)],
    Annotated[str, Meta(min_length=12)],
    Annotated[str, Meta(max_length=0)],
    Annotated[str, Meta(pattern=r"^[A-Z]{2}-\d{3,5}$")],
    Annotated[str, Meta(pattern=r"^(?:cat|dog)s?: [^\W\d]+\.?$", max_length=12)],
    Annotated[str, Meta(pattern="x")],
    Annotated[bytes, Meta(min_length=3, max_length=9)],
    Annotated[list[Any], Meta(min_length=1)],
    Leaf,
    Node,
    Row,
    Pair,
    Options,
]
KEYS: list[Any] = [str, int, Colour, Annotated[str, Meta(min_length=2)], dt.date]


# Types that are made at run time are no types to a type checker.
LIST, TUPLE, DICT, SET, ANNOTATED = (typing.cast("Any", kind) for kind in (list, tuple, dict, set, Annotated))
RECORDS: dict[str, str] = {}
"""Name of a record that was made for a test, to the types in it."""


def optional(type_: Any) -> Any:
    return type_ if type_ in (None, Any) else type_ | None


def record(type_: Any) -> Any:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [("a", type_), ("b", optional(type_), None)]
    name = f"Inner{len(RECORDS)}"
    RECORDS[name] = spelled(type_) * 2
    return msgspec.defstruct(name, fields)


def spelled(types: Any) -> str:
    return re.sub(r"Inner\d+", lambda match: RECORDS[match[0]], repr(types))


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lows, highs = st.integers(0, 2), st.integers(2, 4)
    return st.one_of(
        inner.map(lambda t: LIST[t]),
        inner.map(optional),
        inner.map(lambda t: TUPLE[t, ...]),
        st.tuples(inner, inner).map(lambda both: TUPLE[both]),
        st.builds(lambda key, t: DICT[key, t], st.sampled_from(KEYS), inner),
        st.builds(lambda t, low, high: ANNOTATED[LIST[t], Meta(min_length=low, max_length=high)], inner, lows, highs),
        st.builds(lambda t, low: ANNOTATED[DICT[str, t], Meta(min_length=low)], inner, lows),
        inner.map(record),
    )


TYPES = st.recursive(
    st.one_of(
        st.sampled_from(SCALARS),
        st.builds(
            lambda low, more: ANNOTATED[int, Meta(ge=low, le=low + more)],
            st.integers(-(2**60), 2**60),
            st.integers(0, 2**61),
        ),
        st.sampled_from([str, int, Colour, Size]).map(lambda t: SET[t]),
    ),
    nested,
    max_leaves=3,
)


def tool_for(**types: Any) -> Tool:
    """A tool as `collect` makes it, for any types."""
    arguments = msgspec.defstruct("f", list(types.items()), kw_only=True, forbid_unknown_fields=True)
    (_,), components = msgspec.json.schema_components([arguments])
    schema = msgspec.json.decode(codec.json(components.pop("f")))
    schema["$defs"] = msgspec.json.decode(codec.json(components))
    return Tool(name="f", description="", parameters=schema, roles=("agent",), arguments=arguments, path=("f",))


@given(st.lists(TYPES, max_size=3), st.integers(0, 2**63))
@settings(max_examples=150)
def test_drawn_arguments_decode(types: list[Any], seed: int) -> None:
    # Two places where the schema says less than the type can be guessed, more of them not for certain.
    assume(len(re.findall(r"e\.datetime|e\.time\b|dict\[(int|dat)", spelled(types))) <= 2)
    one = tool_for(**{f"field_{n}": type_ for n, type_ in enumerate(types)})
    arguments = draw(one, Rng(key=seed.to_bytes(8, "little")), ["12", "SO-123", "2026-03-04", "x y", "red", ""])
    assert arguments is not None, "there are such values, but none was found"
    one.decode(arguments)


@pytest.mark.parametrize("type_", SCALARS, ids=str)
def test_nearly_every_draw_of_a_plain_type_fits_at_once(type_: Any) -> None:
    one = tool_for(field=type_)
    bad = 0
    for n in range(100):
        drawing = Drawing(Rng(key=bytes([n])), definitions=one.parameters["$defs"])
        try:
            one.decode(codec.text(drawing.value(one.parameters)))
        except msgspec.DecodeError:
            bad += 1
    naive = {dt.datetime, dt.time, Annotated[dt.datetime, Meta(tz=False)]}
    assert bad <= (90 if type_ in naive else 5)


def test_values_from_observations_are_drawn() -> None:
    one = tool_for(id=str, cents=int)
    drawn = [msgspec.json.decode(draw(one, Rng(key=bytes([n])), ["R17", "4200"]) or "") for n in range(50)]
    assert any(call == {"id": "R17", "cents": 4200} for call in drawn)
    assert len({call["id"] for call in drawn}) > 10, "but not only that"


def test_a_type_that_json_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="'blob'"):
        Drawing(Rng()).value({"type": "blob"})


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^$",
        "abc",
        "^a{3}b*c+d?$",
        r"^[a-c\d_][^a-z]$",
        r"^\w\W\s\S\d\D.$",
        "^(?:x|y(z|w))*?$",
        "(?P<name>n{2,})",
        r"^[^ab]{2}[é]$",
        "^(?>a|b)$" if hasattr(re, "NOFLAG") else "a",
        "^a++$",
    ],
)
def test_patterns_are_matched_by_drawn_text(pattern: str) -> None:
    for n in range(30):
        text = matching(pattern, Rng(key=bytes([n])))
        assert re.search(pattern, text), text


def test_the_words_of_a_context() -> None:
    messages = [
        Message("user", "Order #W12, for a.b@c3.io, 7 items"),
        Message("tool", '{"name":"In progress","id":"#W12"}', call_id="x"),
    ]
    assert seen(messages) == ["#W12", "a.b@c3.io", "7", "name", "In progress", "id"]


# --- agents ---


class Desk(State):
    @tool
    def refund(self, order: str) -> str:
        """Pay back.

        Args:
            order: Which one.
        """
        return order


def ask(model: Model, *messages: Message, tools: Sequence[Tool] = (), **fields: Any) -> Reply:
    async def run() -> Reply:
        return await model(Request(messages=messages, tools=tools, **fields))

    return asyncio.run(run())


def play_random(model: Random, seed: int) -> list[Message]:
    """A context in which every call is answered, until the model answers itself."""
    messages = [Message("user", "refund R1")]
    while True:
        reply = ask(model, *messages, tools=list(collect(Desk).values()), seed=seed + len(messages))
        messages.append(reply.message)
        if not reply.message.calls:
            return messages
        messages.append(Message("tool", "ok", call_id=reply.message.calls[0].id))


def test_random_calls_and_then_answers() -> None:
    plays = [play_random(Random(4), seed * 1000) for seed in range(40)]
    counts = [sum(len(message.calls) for message in messages) for messages in plays]
    assert max(counts) == 4
    assert min(counts) < 4, "it may stop early"
    assert len({call.id for message in plays[0] for call in message.calls}) == counts[0]
    assert plays == [play_random(Random(4), seed * 1000) for seed in range(40)], "it is drawn from the seed alone"


def test_random_has_to_answer_when_nothing_can_be_called() -> None:
    assert ask(Random(), seed=1).message == Message("assistant", "done")
    impossible = tool_for(field=Annotated[str, Meta(pattern="^(?=a)b$")])
    assert draw(impossible, Rng(), []) is None
    assert not ask(Random(), tools=[impossible], seed=1).message.calls
    assert not ask(Random(0), tools=list(collect(Desk).values())).message.calls
    with pytest.raises(UsageError, match="calls must be >= 0, got -1"):
        Random(-1)


TASK: Task[Any] = Task(
    id="t", prompt="p", start=Desk(), solution=(("refund", {"order": "R1"}), ("refund", {"order": "R2"})), answer="ok"
)


def test_the_oracle_plays_the_solution() -> None:
    model = Oracle().model(TASK, 0)
    replies = [ask(model).message for _ in range(4)]
    assert replies == [
        Message("assistant", calls=(ToolCall("call_0", "refund", '{"order":"R1"}'),)),
        Message("assistant", calls=(ToolCall("call_1", "refund", '{"order":"R2"}'),)),
        Message("assistant", "ok"),
        Message("assistant"),
    ]
    with pytest.raises(UsageError, match="task 't' has no solution"):
        Oracle().model(msgspec.structs.replace(TASK, solution=None), 0)


@pytest.mark.parametrize(
    ("harness", "last"),
    [
        (Dialogue(opening="How can I help?"), "###STOP###"),
        (Dialogue(stop=("BYE", "STOP")), "BYE"),
        (Dialogue(stop=()), ""),
        (ToolLoop(), "###STOP###"),
    ],
)
def test_the_oracle_of_a_harness_has_a_silent_user(harness: Harness, last: str) -> None:
    model = Oracle(harness).model(TASK, 0)
    assert ask(model, Message("user", "Good day."), role="user") == Reply(Message("assistant"))
    assert ask(model, role="agent").message.calls == (ToolCall("call_0", "refund", '{"order":"R1"}'),)
    assert ask(model, role="other").message.calls == (ToolCall("call_1", "refund", '{"order":"R2"}'),)
    assert ask(model, Message("assistant"), role="user") == Reply(Message("assistant", last))


def test_noop_and_scripted() -> None:
    assert ask(Noop(), Message("user", "do it")) == Reply(Message("assistant"))
    script = Scripted(Reply(Message("assistant", word)) for word in "ab")
    assert [ask(script).message.text for _ in range(3)] == ["a", "b", ""]


def test_a_cast_asks_by_role() -> None:
    cast = Cast(agent=Scripted.calls((), "from the agent"), user=Scripted.calls((), "from the user"))
    assert ask(cast, role="user").message.text == "from the user"
    assert ask(cast).message.text == "from the agent"
    with pytest.raises(DefinitionError, match="no model plays the role 'judge'; the cast has agent, user"):
        ask(cast, role="judge")
    with pytest.raises(DefinitionError, match="the cast has no role"):
        ask(Cast())


def test_a_company_casts_each_task_and_closes_everybody() -> None:
    closed: list[str] = []

    class Closing(Noop):
        async def aclose(self) -> None:
            closed.append("model")

    simulator = Fixed(Closing(), "sim")
    company = Company(agent=Oracle(), user=simulator)
    assert isinstance(company, Agent)
    assert company.name == "agent=oracle,user=sim"
    model = company.model(TASK, 0)
    assert ask(model).message.calls
    assert ask(model, role="user") == Reply(Message("assistant"))
    asyncio.run(company.aclose())
    assert closed == ["model"]
