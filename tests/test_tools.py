"""A tool is what its signature and docstring say, and a call reaches it only when it fits."""

from __future__ import annotations

import datetime as dt
import enum
import json
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain import codec
from quintain.tools import Tool, collect, observe, parse_docstring
from quintain.trace import Image, Text


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


# --- calls

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
def test_what_a_model_reads_of_a_wrong_call(name: str, arguments: str, says: str | None) -> None:
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
def test_what_is_no_json_is_refused(arguments: str, strict: bool) -> None:
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
def test_what_fits_arrives_as_it_was_sent(sent: dict[str, Any], share: float, strict: bool) -> None:
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
        ("def go(self, x: int): 'Go.'", "tool 'go': parameter 'x' needs a type and a line under Args:"),
        (
            "def go(self, x): 'Go.\\n\\nArgs:\\n    x: y'",
            "tool 'go': parameter 'x' needs a type and a line under Args:",
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
def test_docstrings(doc: str, prose: str, arguments: dict[str, str]) -> None:
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
def test_what_an_actor_reads(result: Any, shown: Any) -> None:
    assert observe(result) == shown


@pytest.mark.parametrize("result", [object(), float("nan"), [float("inf")], lambda: None])
def test_a_result_without_a_json_form_is_a_bug(result: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        observe(result)


def test_a_tool_can_be_told_apart_by_its_digest() -> None:
    def shown(tool: Tool) -> bytes:
        return codec.json((tool.name, tool.description, tool.parameters, tool.roles))

    assert len({shown(tool) for tool in collect(Hall).values()}) == len(collect(Hall))
