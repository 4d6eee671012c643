"""Hypothesis strategies: values of a type, worlds of a State class, valid calls of a tool."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, timedelta
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from quintain.errors import UsageError
from quintain.state import State
from quintain.tools import Tool
from quintain.trace import Message, Reply, ToolCall

try:
    import hypothesis
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as error:
    raise ImportError("contracts and strategies need an extra: pip install 'quintain[testing]'") from error

T = TypeVar("T")
S = TypeVar("S", bound=State)

MANY = 3
"""Items of a collection, where its type sets no limit."""


def values(type_: type[T] | Any) -> SearchStrategy[T]:
    """Values of any type that msgspec knows, within the bounds of its `msgspec.Meta`.

    Raises:
        UsageError: The type is opaque, such as a Resource.
    """
    return _Values().of(inspect.type_info(type_))


def states(type_: type[S], **fields: SearchStrategy[Any]) -> SearchStrategy[S]:
    """Worlds of a State class: fresh, with any values in their fields.

    Args:
        type_: The class.
        fields: Strategies for single fields; Resources need one.

    Raises:
        UsageError: A field without a default is opaque and has no strategy.
    """
    return _Values().struct(inspect.type_info(type_), fields)


def calls(tool: Tool) -> SearchStrategy[ToolCall]:
    """Calls that the tool accepts under strict arguments; those with a default are left out now and then."""
    info: Any = inspect.type_info(tool.arguments)
    known, fields = _Values(), info.fields
    required = {field.name: known.of(field.type) for field in fields if field.required}
    optional = {field.name: known.of(field.type) for field in fields if not field.required}
    arguments = st.fixed_dictionaries(required, optional=optional)
    return arguments.map(lambda some: ToolCall("call", tool.name, msgspec.json.encode(some).decode()))


def replies(tools: Sequence[Tool], *, most: int = 2) -> SearchStrategy[Reply]:
    """Replies with some words and up to `most` valid calls."""
    some = st.one_of([calls(tool) for tool in tools]) if tools else st.nothing()
    several = st.lists(some, max_size=most if tools else 0)
    return st.builds(_reply, several, st.text(max_size=5))


def one_of(items: Sequence[T]) -> SearchStrategy[T]:
    """One of the items."""
    return st.sampled_from(items)


def lists_of(items: SearchStrategy[T]) -> SearchStrategy[list[T]]:
    """Returns up to ten of them."""
    return st.lists(items, max_size=10)


def for_all(law: Callable[..., None], strategies: Sequence[SearchStrategy[Any]], *, examples: int) -> None:
    """Tries a law on examples, the same ones each time; raises what the simplest counterexample raised."""

    @hypothesis.settings(
        deadline=None, max_examples=examples, database=None, derandomize=True, report_multiple_bugs=False
    )
    @hypothesis.given(st.tuples(*strategies))
    def attempt(drawn: tuple[Any, ...]) -> None:
        law(*drawn)

    attempt()


def _reply(several: Sequence[ToolCall], words: str) -> Reply:
    numbered = tuple(msgspec.structs.replace(call, id=f"call-{n}") for n, call in enumerate(several))
    return Reply(Message("assistant", words, numbered))


class _Values:
    """Builds strategies; a class that contains itself is met a second time and deferred."""

    def __init__(self) -> None:
        self._met: dict[Any, SearchStrategy[Any]] = {}

    def of(self, info: object) -> SearchStrategy[Any]:
        make = _MAKE.get(type(info))
        if make is None:
            name = getattr(getattr(info, "cls", None), "__name__", type(info).__name__)
            raise UsageError(f"no strategy is known for a {name}; pass one for its field to states()")
        return make(self, info)

    def struct(self, info: Any, given: Mapping[str, SearchStrategy[Any]] | None = None) -> SearchStrategy[Any]:
        """Instances of a class with fields. An opaque field keeps its default, if it has one and nothing is given."""
        given = given or {}
        if info.cls not in self._met:
            self._met[info.cls] = st.deferred(lambda: built)
            strategies = {
                field.name: given[field.name] if field.name in given else self.of(field.type)
                for field in info.fields
                if field.name in given or field.required or not isinstance(field.type, inspect.CustomType)
            }
            built = st.builds(info.cls, **strategies)
        return self._met[info.cls]

    def several(self, info: Any) -> SearchStrategy[list[Any]]:
        low, high = _sizes(info)
        unique = isinstance(info, inspect.SetType | inspect.FrozenSetType)
        return st.lists(self.of(info.item_type), min_size=low, max_size=high, unique=unique)

    def mapping(self, info: Any) -> SearchStrategy[dict[Any, Any]]:
        low, high = _sizes(info)
        return st.dictionaries(self.of(info.key_type), self.of(info.value_type), min_size=low, max_size=high)

    def integers(self, info: Any) -> SearchStrategy[int]:
        step = info.multiple_of or 1
        low = info.ge if info.ge is not None else -(2**63) if info.gt is None else info.gt + 1
        high = info.le if info.le is not None else 2**63 - 1 if info.lt is None else info.lt - 1
        return st.integers(-(-low // step), high // step).map(lambda n: n * step)

    def floats(self, info: Any) -> SearchStrategy[float]:
        low = info.ge if info.ge is not None else info.gt
        high = info.le if info.le is not None else info.lt
        some = st.floats(low, high, allow_nan=False, allow_infinity=False)
        if info.multiple_of:  # Doubling is exact; a tenth has no tenfold.
            some = st.integers(0, 60).map(lambda n: info.multiple_of * 2.0**n)
        return some.filter(lambda x: _within(x, info))

    def texts(self, info: Any) -> SearchStrategy[str]:
        low, high = _sizes(info, most=20)
        if info.pattern is None:
            return st.text(min_size=low, max_size=high)
        pattern: re.Pattern[str] = re.compile(info.pattern)
        return st.from_regex(pattern).filter(lambda text: low <= len(text) <= (info.max_length or math.inf))

    def binaries(self, info: Any) -> SearchStrategy[bytes]:
        low, high = _sizes(info, most=20)
        return st.binary(min_size=low, max_size=high)


def _within(x: float, info: Any) -> bool:
    low, above = (-math.inf if bound is None else bound for bound in (info.ge, info.gt))
    high, below = (math.inf if bound is None else bound for bound in (info.le, info.lt))
    return bool(low <= x <= high and above < x < below)


def _sizes(info: Any, most: int = MANY) -> tuple[int, int]:
    low = info.min_length or 0
    return low, low + most if info.max_length is None else info.max_length


_MAKE: dict[type, Callable[[_Values, Any], SearchStrategy[Any]]] = {
    inspect.AnyType: lambda known, info: st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    inspect.NoneType: lambda known, info: st.none(),
    inspect.BoolType: lambda known, info: st.booleans(),
    inspect.IntType: _Values.integers,
    inspect.FloatType: _Values.floats,
    inspect.StrType: _Values.texts,
    inspect.BytesType: _Values.binaries,
    inspect.DateTimeType: lambda known, info: st.datetimes(timezones=st.just(UTC) if info.tz else st.none()),
    inspect.DateType: lambda known, info: st.dates(),
    inspect.TimeType: lambda known, info: st.times(),
    inspect.TimeDeltaType: lambda known, info: st.timedeltas(timedelta(days=-999), timedelta(days=999)),
    inspect.UUIDType: lambda known, info: st.uuids(),
    inspect.DecimalType: lambda known, info: st.decimals(allow_nan=False, allow_infinity=False),
    inspect.EnumType: lambda known, info: st.sampled_from(list(info.cls)),
    inspect.LiteralType: lambda known, info: st.sampled_from(info.values),
    inspect.Metadata: lambda known, info: known.of(info.type),
    inspect.UnionType: lambda known, info: st.one_of([known.of(one) for one in info.types]),
    inspect.ListType: _Values.several,
    inspect.VarTupleType: lambda known, info: known.several(info).map(tuple),
    inspect.SetType: lambda known, info: known.several(info).map(set),
    inspect.FrozenSetType: lambda known, info: known.several(info).map(frozenset),
    inspect.TupleType: lambda known, info: st.tuples(*map(known.of, info.item_types)),
    inspect.DictType: _Values.mapping,
    inspect.StructType: _Values.struct,
    inspect.DataclassType: _Values.struct,
    inspect.NamedTupleType: _Values.struct,
    inspect.TypedDictType: _Values.struct,
}
