"""Building a row from what a model wrote, with the conversions and the complaints of the reference's validator.

The model reads these complaints, so they are part of the environment. Only what JSON can hold comes in.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from .record import is_list

T = TypeVar("T", bound=msgspec.Struct)

_PAGE = "https://errors.pydantic.dev/2.14/v/"
"""The reference's complaints end in a link; the stored verdicts were made with this version."""
_SHOWN_BYTES = 50
_INTEGER = re.compile(r"[+-]?[0-9]+(_[0-9]+)*(\.0+)?", re.ASCII)
_DIGITS = 4300


_Path = tuple[str | int, ...]
"""Field names and places in lists, from the outermost row inwards."""


class _Problem(NamedTuple):
    path: _Path
    kind: str
    text: str
    value: Any

    def __str__(self) -> str:
        value, type_ = _short(repr(self.value)), type(self.value).__name__
        detail = f"[type={self.kind}, input_value={value}, input_type={type_}]"
        where = ".".join(map(str, self.path))
        return f"{where}\n  {self.text} {detail}\n    For further information visit {_PAGE}{self.kind}"


class _Wrong(Exception):
    """One value that does not fit; the field it stands in is known further up."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text


def construct(model: type[T], values: Mapping[str, Any]) -> T:
    """Returns a row from its fields; numbers are read from texts, unknown names are dropped.

    Raises:
        ValueError: Something is missing or does not fit; all complaints in the order of the fields.
    """
    builder = _Builder()
    made = builder.model(model, values, ())
    if builder.problems:
        plural = "" if len(builder.problems) == 1 else "s"
        listed = "\n".join(map(str, builder.problems))
        raise ValueError(f"{len(builder.problems)} validation error{plural} for {model.__name__}\n{listed}")
    return made


def constructed(model: type[T], items: Any) -> Any:
    """Returns the list with every dict made a row, if it holds nothing but dicts; anything else comes back as it is.

    Raises:
        ValueError: As `construct`, for the first item that does not fit.
    """
    if all(isinstance(item, dict) for item in items):
        return [construct(model, item) for item in items]
    return items


class _Builder:
    """Collector of the problems of a row; a value that it returns with a problem is never used."""

    def __init__(self) -> None:
        self.problems: list[_Problem] = []

    def model(self, model: type[T], values: Mapping[str, Any], path: _Path) -> T:
        fields: dict[str, Any] = {}
        hints = typing.get_type_hints(model, include_extras=True)
        for field in msgspec.structs.fields(model):
            place = (*path, field.name)
            if field.name in values:
                fields[field.name] = self.value(hints[field.name], values[field.name], place)
            elif field.required:
                self.problems.append(_Problem(place, "missing", "Field required", values))
        return typing.cast("T", None) if self.problems else model(**fields)

    def value(self, type_: Any, value: Any, path: _Path) -> Any:
        if isinstance(type_, types.UnionType) or typing.get_origin(type_) in {Annotated, typing.Union}:
            type_ = typing.get_args(type_)[0]  # what a fresh row holds; see Verbatim
        try:
            if typing.get_origin(type_) is list:
                (item,) = typing.get_args(type_)
                return [self.item(item, one, (*path, number)) for number, one in enumerate(_list(value))]
            if typing.get_origin(type_) is Literal:
                return _literal(typing.get_args(type_), value)
            return {str: _str, int: _int, float: _float}[type_](value)
        except _Wrong as wrong:
            self.problems.append(_Problem(path, wrong.kind, wrong.text, value))
            return None

    def item(self, model: type[T], value: Any, path: _Path) -> T | None:
        if isinstance(value, model):
            return value
        if isinstance(value, dict):
            return self.model(model, typing.cast("dict[str, Any]", value), path)
        text = f"Input should be a valid dictionary or instance of {model.__name__}"
        self.problems.append(_Problem(path, "model_type", text, value))
        return None


def _list(value: Any) -> list[Any]:
    if not is_list(value):
        raise _Wrong("list_type", "Input should be a valid list")
    return value


def _literal(allowed: tuple[str, ...], value: Any) -> str:
    if isinstance(value, str) and value in allowed:
        return value
    *most, last = map(repr, allowed)
    raise _Wrong("literal_error", f"Input should be {', '.join(most)} or {last}")


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong("string_type", "Input should be a valid string")
    if any("\ud800" <= char <= "\udfff" for char in value):
        text = "Input should be a valid string, unable to parse raw data as a unicode string"
        raise _Wrong("string_unicode", text)
    return value


def _int(value: Any) -> int:
    match value:
        case int():  # a bool too
            return int(value)
        case float() if not math.isfinite(value):
            raise _Wrong("finite_number", "Input should be a finite number")
        case float() if value % 1:
            raise _Wrong("int_from_float", "Input should be a valid integer, got a number with a fractional part")
        case float() if abs(value) < 2.0**63:
            return int(value)
        case str() if (stripped := value.strip()) and len(stripped) <= _DIGITS and _INTEGER.fullmatch(stripped):
            return int(stripped.partition(".")[0])
        case str() if len(value) <= _DIGITS:
            raise _Wrong("int_parsing", "Input should be a valid integer, unable to parse string as an integer")
        case float() | str():
            raise _Wrong("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size")
        case _:
            raise _Wrong("int_type", "Input should be a valid integer")


def _float(value: Any) -> float:
    match value:
        case int() | float():
            return float(value)
        case str():
            try:
                return float(value.encode("ascii"))
            except ValueError:
                text = "Input should be a valid number, unable to parse string as a number"
                raise _Wrong("float_parsing", text) from None
        case _:
            raise _Wrong("float_type", "Input should be a valid number")


def _short(text: str) -> str:
    """At most 50 bytes of UTF-8: the middle of a longer text is left out, never half a character."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= _SHOWN_BYTES:
        return text
    half = _SHOWN_BYTES // 2
    return f"{data[:half].decode(errors='ignore')}...{data[1 - half :].decode(errors='ignore')}"
