"""Rows as the reference shows and hashes them: mappings in their own order, fields as declared, text as JSON."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Container, Generator
from typing import Any, TypeGuard, TypeVar, cast

import msgspec

from quintain.errors import ToolError
from quintain.table import Table

T = TypeVar("T")

Pairs = tuple[tuple[str, T], ...]
"""A mapping whose order the model sees. Canonical bytes sort a dict, so rows hold (key, value) pairs instead; rows hold
no other tuples."""


class Verbatim(msgspec.Struct, frozen=True):
    """Anything at all, as JSON text: what a tool put where the reference checks nothing.

    A field of type `int | Verbatim` is an int in a fresh row, and may hold whatever a model wrote later.
    """

    text: str


def is_list(value: object) -> TypeGuard[list[Any]]:
    """True if it is a JSON array, whatever is in it."""
    return isinstance(value, list)


def kept(value: Any, *, fits: bool) -> Any:
    """Returns the value of a field that may be `Verbatim`: the value itself if it fits the field's first type."""
    return value if fits else Verbatim(json.dumps(value))


def opened(field: Any) -> Any:
    """Returns the value that `kept` got."""
    return json.loads(field.text) if isinstance(field, Verbatim) else field


def paired(value: Any, names: Container[str]) -> Any:
    """JSON as rows are built from it: every dict that stands under one of the names becomes pairs."""
    if is_list(value):
        return [paired(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: paired(item, names) for key, item in cast("dict[str, Any]", value).items()}
    return {key: list(item.items()) if key in names else item for key, item in inner.items()}


def builtin(value: Any) -> Any:
    """Returns a row, or a list of rows, as plain data: every field in declared order, also those that are None."""
    if is_list(value):
        return [builtin(item) for item in value]
    if isinstance(value, tuple):
        return {key: builtin(item) for key, item in cast("Pairs[Any]", value)}
    if isinstance(value, Verbatim):
        return opened(value)
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag = {} if config.tag_field is None else {config.tag_field: config.tag}
        return tag | {name: builtin(getattr(value, name)) for name in value.__struct_fields__}
    return value


def shown(row: Any) -> str:
    """Returns the text that the model reads."""
    return json.dumps(builtin(row))


def put(pairs: Pairs[T], key: str, value: T) -> Pairs[T]:
    """The pairs with a value replaced, or added at the end."""
    return tuple((dict(pairs) | {key: value}).items())


@contextlib.contextmanager
def editing(table: Table[T], key: str, refusal: str) -> Generator[T]:
    """Yields a row to change in place.

    The row is written back however the block ends: the changes before an exception stay, as in the reference.

    Args:
        table: The table of the row.
        key: Its key, as the caller gave it.
        refusal: Message to the model if the row does not exist.
    """
    row = found(table, key, refusal)
    try:
        yield row
    finally:
        table[key] = row


def found(table: Table[T], key: str, refusal: str) -> T:
    """Returns a private copy of a row.

    Raises:
        ToolError: The row does not exist; the message is `refusal`.
    """
    if key not in table:
        raise ToolError(refusal)
    return table[key]
