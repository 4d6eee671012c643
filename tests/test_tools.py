"""A tool is what its signature and its docstring say."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import json
import typing
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain import codec
from quintain.errors import ReplayDivergence
from quintain.replay import replay
from quintain.tools import Tool, collect, observe, parse_docstring
from quintain.trace import Image, Message, Observation, Step, Text, Trace

from .worlds import blamed, call, fine, first_task, one_by_one, play, single


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(msgspec.Struct):
    x: int
    y: float = 0.0


class Tree(msgspec.Struct):
    value: int
    children: list[Tree] = []


class Size(TypedDict):
    width: int


class Pair(NamedTuple):
    left: int
    right: str = ""


class Desk(qn.State):
    seen: list[Any] = []

    @qn.tool
    def nothing(self) -> None:
        """Do nothing."""

    @qn.tool
    def plain(self, *, flag: bool, count: int, share: float, words: str, raw: bytes, extra: None = None) -> str:
        """Take scalars.

        More about it.

        Args:
            flag: Yes or no.
            count: How many,
                and how often:
                always.
            share:
                Of the whole.
            words: Any: even with a colon.
            raw: Bytes.
            extra: Nothing.

        Returns:
            What was taken.

        Raises:
            ToolError: Never.
        """
        self.seen.append((flag, count, share, words, raw, extra))
        return words

    @qn.tool
    def bounded(
        self,
        age: Annotated[int, msgspec.Meta(ge=1, lt=150)],
        code: Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}$")] = "ABC",
        tags: Annotated[list[str], msgspec.Meta(max_length=2)] = [],  # noqa: B006 (msgspec copies it)
    ) -> str:
        """Take what is within bounds.

        Args:
            age: In years.
            code: Three letters.
            tags: At most two.
        """
        return f"{age}{code}{tags}"

    @qn.tool
    def structured(
        self,
        *,
        point: Point,
        tree: Tree,
        size: Size,
        pair: Pair,
        colours: dict[Colour, int],
        mode: Literal["fast", "slow"],
        when: dt.date | None = None,
        either: int | str = 0,
        numbered: dict[int, str] = {},  # noqa: B006 (msgspec copies it)
    ) -> str:
        """Take structures.

        Args:
            point: Where.
            tree: Recursive.
            size: A typed dict.
            pair: A named tuple.
            colours: By name.
            mode: How.
            when: In time.
            either: One or the other.
            numbered: By number.
        """
        return repr((point, tree, size, pair, colours, mode, when, either, numbered))


TOOLS = collect(Desk)


def test_schemas_are_golden() -> None:
    assert {name: tool.description for name, tool in TOOLS.items()} == {
        "nothing": "Do nothing.",
        "plain": "Take scalars.\n\nMore about it.",
        "bounded": "Take what is within bounds.",
        "structured": "Take structures.",
    }
    assert TOOLS["nothing"].parameters == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert TOOLS["plain"].parameters["properties"] == {
        "flag": {"type": "boolean", "description": "Yes or no."},
        "count": {"type": "integer", "description": "How many, and how often: always."},
        "share": {"type": "number", "description": "Of the whole."},
        "words": {"type": "string", "description": "Any: even with a colon."},
        "raw": {"type": "string", "contentEncoding": "base64", "description": "Bytes."},
        "extra": {"type": "null", "description": "Nothing.", "default": None},
    }
    assert TOOLS["plain"].parameters["required"] == ["flag", "count", "share", "words", "raw"]
    assert TOOLS["bounded"].parameters["properties"] == {
        "age": {"type": "integer", "minimum": 1, "exclusiveMaximum": 150, "description": "In years."},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$", "description": "Three letters.", "default": "ABC"},
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": 2,
            "description": "At most two.",
            "default": [],
        },
    }


def test_a_schema_of_structures_stands_alone() -> None:
    schema = TOOLS["structured"].parameters
    assert json.loads(json.dumps(schema)) == schema, "plain JSON, no tuples and no objects of ours"
    assert set(schema["$defs"]) == {"Point", "Tree", "Size", "Pair", "Colour"}
    properties = schema["properties"]
    assert properties["point"] == {"description": "Where.", "$ref": "#/$defs/Point"}
    assert properties["mode"] == {"enum": ["fast", "slow"], "description": "How."}
    assert properties["when"]["anyOf"] == [{"type": "string", "format": "date"}, {"type": "null"}]
    references = {part.split('"')[0] for part in json.dumps(schema).split("#/$defs/")[1:]}
    assert references <= set(schema["$defs"])


def test_a_type_may_be_called_like_its_tool() -> None:
    class Clash(qn.State):
        @qn.tool
        def order(self, order: order, other: Inner.order) -> str:
            """Order.

            Args:
                order: One.
                other: Another.
            """
            return ""

    (tool,) = collect(Clash).values()
    assert set(tool.parameters["properties"]) == {"order", "other"}
    assert tool.decode('{"order": {"n": 1}, "other": {"m": 2}}')["other"] == Inner.order(2)


class order(msgspec.Struct):  # noqa: N801 (the clash is the point)
    n: int


class Inner:
    class order(msgspec.Struct):  # noqa: N801
        m: int


# --- collecting


class Base(qn.State):
    @qn.tool
    def first(self) -> str:
        """First."""
        return "base"

    @qn.tool
    def second(self) -> str:
        """Second."""
        return "base"


class Derived(Base):
    @qn.tool(roles=("user", "agent"))
    def third(self) -> str:
        """Third."""
        return "derived"

    def first(self) -> str:
        return "overridden"

    @qn.tool
    def second(self) -> str:
        """Second, again."""
        return "derived"


class Hall(qn.State):
    left: Derived
    desk: Desk

    @qn.tool
    def enter(self) -> None:
        """Enter."""


def test_base_classes_come_first_and_what_overrides_is_what_runs() -> None:
    tools = collect(Derived)
    assert list(tools) == ["first", "second", "third"]
    assert [tool.bind(Derived())() for tool in tools.values()] == ["overridden", "derived", "derived"]
    assert tools["second"].description == "Second, again."
    assert tools["first"].roles == ("agent",)
    assert tools["third"].roles == ("user", "agent")


def test_parts_bring_their_tools_under_their_names() -> None:
    tools = collect(Hall)
    assert list(tools) == [
        "enter",
        *(f"left_{name}" for name in collect(Derived)),
        *(f"desk_{name}" for name in collect(Desk)),
    ]
    hall = Hall(left=Derived(), desk=Desk())
    tool = tools["desk_plain"]
    tool.bind(hall)(**tool.decode('{"flag": true, "count": 1, "share": 2, "words": "w", "raw": ""}'))
    assert hall.desk.seen == [(True, 1, 2.0, "w", b"", None)]
    assert tool.parameters == TOOLS["plain"].parameters


def test_two_tools_of_one_name_are_refused() -> None:
    class Twice(qn.State):
        left: Base

        @qn.tool
        def left_first(self) -> None:
            """Collide."""

    with pytest.raises(qn.DefinitionError) as raised:
        collect(Twice)
    assert str(raised.value) == "two tools are named 'left_first': ('left_first',) and ('left', 'first')"


def broken(source: str) -> type[qn.State]:
    names: dict[str, Any] = {"qn": qn, "Any": Any, "__name__": __name__}
    exec(f"class Broken(qn.State):\n    @qn.tool\n    {source}", names)
    found: type[qn.State] = names["Broken"]
    return found


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def go(self): pass", "tool 'go' of Broken has no docstring, so no model can know what it does"),
        ("def go(self): 'Args:\\n    x: y'", "tool 'go' of Broken has no docstring"),
        ("def go(self, x: int): 'Go.'", "tool 'go': parameter 'x' needs a line under Args:, as '    x: TEXT'"),
        ("def go(self, x): 'Go.'", "tool 'go': parameter 'x' needs a type and a line under Args:, as"),
        (
            "def go(self, x): 'Go.\\n\\nArgs:\\n    x: y'",
            "tool 'go': parameter 'x' needs a type",
        ),
        ("def go(self, x: int): 'Go.\\n\\nArgs:\\n    x: y\\n    z: y'", "tool 'go': Args: describes 'z', which is no"),
        (
            "def go(self, *x: int): 'Go.\\n\\nArgs:\\n    x: y'",
            "tool 'go': 'x' is variadic positional; a call names each",
        ),
        (
            "def go(self, **x: int): 'Go.\\n\\nArgs:\\n    x: y'",
            "tool 'go': 'x' is variadic keyword; a call names each",
        ),
        (
            "def go(self, x: int, /): 'Go.\\n\\nArgs:\\n    x: y'",
            "tool 'go': 'x' is positional-only; a call names each",
        ),
        ("def go(self, x: complex): 'Go.\\n\\nArgs:\\n    x: y'", "tool 'go' of Broken: "),
        (
            "def go(self, x: 'Nowhere'): 'Go.\\n\\nArgs:\\n    x: y'",
            "tool 'go' of Broken: name 'Nowhere' is not defined",
        ),
        ("def go(self, x: Any = object()): 'Go.\\n\\nArgs:\\n    x: y'", "tool 'go' of Broken: "),
        ("def go(self, x: list = [1]): 'Go.\\n\\nArgs:\\n    x: y'", "tool 'go' of Broken: "),
        ("def größe(self): 'Go.'", "tool name 'größe' must match [a-zA-Z0-9_-]{1,64}"),
        (f"def {'x' * 65}(self): 'Go.'", f"tool name '{'x' * 65}' must match"),
    ],
)
def test_a_tool_that_no_model_could_use_is_refused(source: str, says: str) -> None:
    with pytest.raises(qn.DefinitionError) as raised:
        collect(broken(source))
    assert str(raised.value).startswith(says)


@pytest.mark.parametrize("roles", ["agent", ()])
def test_roles_are_names(roles: Any) -> None:
    with pytest.raises(qn.DefinitionError, match="roles must be a tuple of names such as"):
        qn.tool(roles=roles)


# --- docstrings

WORDS = st.text("abc .:", min_size=1, max_size=12).map(str.strip).filter(bool)
NAMES = st.from_regex("[a-z_]{1,6}", fullmatch=True)


@given(WORDS, st.dictionaries(NAMES, st.lists(WORDS, min_size=1, max_size=3), max_size=4), st.booleans())
def test_a_docstring_comes_apart_into_what_it_was_made_of(
    summary: str, arguments: dict[str, list[str]], has_returns: bool
) -> None:
    lines = [summary, "", "Args:"]
    for name, words in arguments.items():
        lines += [f"    {name}: {words[0]}", *(f"        {more}" for more in words[1:])]
    lines += ["", "Returns:", "    a: Something else."] if has_returns else []
    prose, found = parse_docstring("\n".join(lines) + "\n")
    assert prose == summary
    assert found == {name: " ".join(words) for name, words in arguments.items()}


@pytest.mark.parametrize(
    ("doc", "prose", "arguments"),
    [
        ("", "", {}),
        ("One line.", "One line.", {}),
        ("A.\n\nReturns:\n    B.\n\nArgs:\n    x: y", "A.", {"x": "y"}),
        ("A.\n\nRaises:\n    ToolError: B.", "A.", {}),
        ("A.\n\nArgs:\n    x: y\n\n        z\n    w: v\nRaises:\n    u: t", "A.", {"x": "y z", "w": "v"}),
        ("A.\n\nArgs:\n  x: y", "A.", {}),
        ("A.\n\nArgs:\n    x:\n        y", "A.", {"x": "y"}),
        ("The Args:\nare not a section.", "The Args:\nare not a section.", {}),
    ],
)
def test_docstrings_are_parsed_into_prose_and_arguments(doc: str, prose: str, arguments: dict[str, str]) -> None:
    assert parse_docstring(doc) == (prose, arguments)


# --- observations


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("text", "text"),
        ("", ""),
        (None, "null"),
        (Text("a"), (Text("a"),)),
        (Image("image/png", b"\x89"), (Image("image/png", b"\x89"),)),
        ([Text("a"), Image("image/png", b"")], (Text("a"), Image("image/png", b""))),
        ((Text("a"),), (Text("a"),)),
        ([], "[]"),
        ([Text("a"), 3], '[{"type":"text","text":"a"},3]'),
        (Point(1), '{"x":1,"y":0.0}'),
        ({"b": 1, "a": {2}}, '{"a":[2],"b":1}'),
    ],
)
def test_observe_renders_results(result: Any, shown: Any) -> None:
    assert observe(result) == shown


@pytest.mark.parametrize("result", [object(), float("nan"), [float("inf")], lambda: None])
def test_a_result_without_a_json_form_is_a_bug(result: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        observe(result)


def test_a_tool_can_be_told_apart_by_its_digest() -> None:
    def shown(tool: Tool) -> bytes:
        return codec.json((tool.name, tool.description, tool.parameters, tool.roles))

    assert len({shown(tool) for tool in collect(Hall).values()}) == len(collect(Hall))


# --- data of observations ---


class Scanner(qn.State):
    """Returns observations of every kind."""

    @qn.tool
    def scan(self, kind: str) -> Any:
        """Scan something.

        Args:
            kind: Which result.
        """
        results: dict[str, Any] = {
            "plain": Observation("3 rows", {"rows": 3, "point": Point(1), "tags": ("a", "b")}),
            "json": Observation({"rows": 3}, {"rows": 3}),
            "picture": Observation(Image("image/png", b"\x89"), {"size": 1}),
            "empty": Observation("3 rows"),
            "object": Observation("", {"a": object()}),
            "nan": Observation("", {"a": float("nan")}),
            "list": Observation("", typing.cast(Any, [1])),
            "large number": Observation("", {"a": 2**70}),
            "planned": Observation("busy", {"planned_fault": "rate_limited"}),
            "fault": Observation("", {"planned_fault": 5}),
            "long": Observation("x" * 20, {"a": "y" * 20}),
        }
        return results[kind]


@qn.reward(level="step", high=3)
def rows(view: qn.StepView[Scanner]) -> float:
    return float(view.step.data.get("rows", 0))


def scanned(kind: str, **config: Any) -> Trace:
    return play(single(Scanner(), fine, rows, **config), one_by_one(call("scan", kind=kind)))


@pytest.mark.parametrize(
    ("kind", "content", "data"),
    [
        ("plain", "3 rows", {"rows": 3, "point": {"x": 1, "y": 0.0}, "tags": ["a", "b"]}),
        ("json", '{"rows":3}', {"rows": 3}),
        ("picture", (Image("image/png", b"\x89"),), {"size": 1}),
        ("empty", "3 rows", {}),
    ],
)
def test_data_of_an_observation_is_in_the_step_and_not_in_a_message(kind: str, content: Any, data: Any) -> None:
    trace = scanned(kind)
    (step,) = trace.turns[0].steps
    assert (step.observation, step.data, step.is_error) == (content, data, False)
    assert trace.turns[0].rewards[0].raw == data.get("rows", 0)
    assert trace.context(1)[-1] == Message("tool", content, call_id=step.call.id)
    assert (b'"data":{' in codec.json(step)) is bool(data)
    assert codec.dumps(msgspec.structs.replace(step, data={})) == codec.dumps(Step(step.call, content))


def test_trouble_that_a_world_planned_is_the_fault_of_the_step() -> None:
    assert [scanned(kind).turns[0].steps[0].fault for kind in ("planned", "plain")] == ["rate_limited", None]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("object", "object"),
        ("nan", "nan"),
        ("list", "Expected `object`"),
        ("large number", ""),
        ("fault", "Expected `str | null`"),
    ],
)
def test_data_that_is_not_plain_is_a_bug_of_the_tool(kind: str, says: str) -> None:
    failure = blamed(scanned(kind))
    assert (failure.component, failure.kind) == ("S", "quintain:tool_bug")
    assert says in failure.message


def test_data_counts_among_the_bytes_of_an_observation() -> None:
    assert scanned("long", max_observation_bytes=44).score == 1.0
    assert "44 bytes, max_observation_bytes is 43" in blamed(scanned("long", max_observation_bytes=43)).message


def test_other_data_is_a_divergence_of_the_replay() -> None:
    env = single(Scanner(), fine, rows)
    trace = play(env, one_by_one(call("scan", kind="plain")))
    assert asyncio.run(replay(env, first_task(env), trace)).to_bytes() == trace.to_bytes()
    turn = trace.turns[0]
    step = msgspec.structs.replace(turn.steps[0], data={"rows": 2})
    trace.turns[0] = msgspec.structs.replace(turn, steps=(step,))
    with pytest.raises(ReplayDivergence, match="turn 0, step 0, data"):
        asyncio.run(replay(env, first_task(env), trace))


def test_a_fault_takes_the_data_with_it() -> None:
    env = single(Scanner(), fine, rows, noise_rate=0.9)
    steps = [play(env, one_by_one(call("scan", kind="plain")), seed=seed).turns[0].steps[0] for seed in range(20)]
    assert {"timeout", "truncated"} <= {step.fault for step in steps}
    assert all(bool(step.fault) is not bool(step.data) for step in steps)
