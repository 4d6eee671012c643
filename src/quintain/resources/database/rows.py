"""Annotated classes as tables, and rows as instances of them.

    class Order(msgspec.Struct):
        id: int
        customer: Annotated[int, References(Customer)]
        status: Annotated[Literal["open", "sent"], Indexed()] = "open"
        tags: list[str] = []

becomes a STRICT table `orders`. Numbers, text and bytes are SQLite's own; what has no type there is text that
converts back (dates, enums), or JSON (lists, dicts, structs).
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import re
import types
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import msgspec

from quintain import codec
from quintain.errors import DefinitionError, ToolError
from quintain.resource import named_in

T = TypeVar("T")


@dataclass(frozen=True)
class Dialect:
    """Differences between the SQL of the two databases.

    Attributes:
        types: Names of INTEGER, REAL, TEXT, BLOB and JSON.
        blob: A literal of bytes, `{}` for their hexadecimal digits.
        given: Suffix of a single-column integer key, whose missing values the database fills.
        reference: Suffix of a foreign key.
        table: Suffix of a table.
        json: Check of a JSON column, `{}` for its name; empty if the type checks.
    """

    types: tuple[str, str, str, str, str]
    blob: str
    given: str = ""
    reference: str = ""
    table: str = ""
    json: str = ""

    def type(self, kind: str) -> str:
        return self.types[_KINDS.index(kind)]


_KINDS = ("INTEGER", "REAL", "TEXT", "BLOB", "JSON")
SQLITE = Dialect(("INTEGER", "REAL", "TEXT", "BLOB", "TEXT"), "x'{}'", table=" STRICT", json="CHECK (json_valid({}))")

_TEXTUAL = (dt.datetime, dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID)
_NATIVE_BYTES = (bytes,)
"""Types that msgspec leaves as they are in rows."""
_NATIVE: dict[Any, str] = {bool: "INTEGER", int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}


@dataclass(frozen=True)
class Key:
    """Mark of a field of the primary key. Without any, the field `id` is the key."""


@dataclass(frozen=True)
class Unique:
    """No two rows have the same value."""


@dataclass(frozen=True)
class Indexed:
    """Rows are found by it quickly."""


@dataclass(frozen=True)
class References:
    """The value is the key of a row of another class.

    Attributes:
        table: That class, or its table's name.
        on_delete: What happens to this row when that one goes: "restrict", "cascade", "set null", "no action".
    """

    table: Any
    on_delete: Literal["restrict", "cascade", "set null", "no action"] = "no action"


@dataclass(frozen=True)
class _ColumnSpec:
    name: str
    field: str
    sql: str
    kind: str
    """Storage class in SQLite; "JSON" for text that is JSON."""
    marks: tuple[Any, ...]


def quoted(name: str) -> str:
    """Returns a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


@functools.cache
def table_name(type_: type[Any]) -> str:
    """`__table__` of the class, or its name in the plural: `OrderLine` is `order_lines`."""
    given = getattr(type_, "__table__", None)
    if given is not None:
        return cast(str, given)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type_.__name__).lower()
    if re.search(r"[^aeiou]y$", name):
        return f"{name[:-1]}ies"
    return name + ("es" if re.search(r"(s|x|z|ch|sh)$", name) else "s")


def create(type_: type[Any], dialect: Dialect = SQLITE) -> str:
    """Returns the statements that create a class's table and indexes.

    Raises:
        DefinitionError: The class is not a Struct, or does not have a key.
    """
    table = table_name(cast(Any, type_))
    columns = _columns(cast(Any, type_), dialect)
    key = _key(type_)
    lines = [column.sql for column in columns]
    lines.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
    for column in columns:
        for mark in column.marks:
            if isinstance(mark, References):
                target, remote = _target(mark)
                name = quoted(column.name)
                words = f"ON DELETE {mark.on_delete.upper()}{dialect.reference}"
                lines.append(f"FOREIGN KEY ({name}) REFERENCES {target}{remote} {words}")
            elif isinstance(mark, Unique):
                lines.append(f"UNIQUE ({quoted(column.name)})")
    statements = ["CREATE TABLE {} (\n  {}\n){};".format(quoted(table), ",\n  ".join(lines), dialect.table)]
    for column in columns:
        # A foreign key is looked up whenever the row that it refers to goes, so it is worth an index.
        if any(isinstance(mark, Indexed | References) for mark in column.marks) and key != [column.name]:
            index = quoted(f"{table}_{column.name}")
            statements.append(f"CREATE INDEX {index} ON {quoted(table)} ({quoted(column.name)});")
    return "\n".join(statements)


def insertion(row: Any) -> tuple[str, list[Any]]:
    """Returns the statement that inserts a row, and its values."""
    sql, columns = _insertion(cast(Any, type(row)))
    return sql, [_plain(column, getattr(row, column.field)) for column in columns]


def plain(row: Any) -> dict[str, Any]:
    """Returns a row's values as a database has them, by column."""
    return {column.name: _plain(column, getattr(row, column.field)) for column in _columns(cast(Any, type(row)))}


def bound(value: Any) -> Any:
    """Returns a value that SQL does not have as `insert` stores it: dates, times, decimals, UUIDs and enums.

    Raises:
        TypeError: It is none of these.
    """
    if not isinstance(value, (*_TEXTUAL, enum.Enum)):
        raise TypeError(
            f"a value in SQL is None, a number, text, bytes, a date or time, a Decimal, a UUID or an enum, not a "
            f"{type(value).__name__}: {repr(value)[:100]}"
        )
    return msgspec.to_builtins(value)


def check_integers(values: Sequence[Any] | Mapping[str, Any]) -> None:
    """Raises ToolError for an integer that no column holds: it mostly comes from the model."""
    for value in values.values() if isinstance(values, Mapping) else values:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ToolError(
                f"an integer in a database is from {-(2**63)} to {2**63 - 1}; "
                f"one of {value.bit_length()} bits was given"
            )


def given_key(type_: type[Any]) -> str | None:
    """Returns the column of an integer key that the database gives where a row says none; None for other keys."""
    key = _key(type_)
    kinds = {column.name: column.kind for column in _columns(cast(Any, type_))}
    return key[0] if len(key) == 1 and kinds[key[0]] == "INTEGER" else None


def reader(type_: type[T], names: Sequence[str]) -> Callable[[Sequence[Any]], T]:
    """Returns a function from a row of these columns to a `type_`: a Struct, or the type of the only column."""
    codec.learn(type_)
    if not _is_struct(type_):
        if len(names) != 1:
            raise DefinitionError(f"a row of {len(names)} columns ({', '.join(names)}) is not a {type_}")
        return lambda row: msgspec.convert(row[0], type_, strict=False, builtin_types=_NATIVE_BYTES)
    json = _json(cast(Any, type_))
    native = {"builtin_types": _NATIVE_BYTES} if bytes in named_in(type_) else {}  # Without, it is a fifth faster.
    convert: Callable[[Any], T] = functools.partial(msgspec.convert, type=type_, strict=False, **native)
    if not json:
        return lambda row: convert(dict(zip(names, row, strict=True)))

    def read(row: Sequence[Any]) -> T:
        value = dict(zip(names, row, strict=True))
        for name in json:
            text = value.get(name)
            if isinstance(text, str):
                value[name] = msgspec.json.decode(text)
        return convert(value)

    return read


@functools.cache
def _insertion(type_: Any) -> tuple[str, tuple[_ColumnSpec, ...]]:
    columns = _columns(type_)
    names = ", ".join(quoted(column.name) for column in columns)
    marks = ", ".join("?" * len(columns))
    table = quoted(table_name(type_))
    return f"INSERT INTO {table} ({names}) VALUES ({marks})", columns  # noqa: S608 (names are quoted)


@functools.cache
def _json(type_: Any) -> tuple[str, ...]:
    return tuple(column.name for column in _columns(type_) if column.kind == "JSON")


@functools.cache
def _columns(type_: Any, dialect: Dialect = SQLITE) -> tuple[_ColumnSpec, ...]:
    if not _is_struct(type_):
        raise DefinitionError(f"a table is made of a msgspec.Struct, not of {type_!r}")
    hints = typing.get_type_hints(type_, include_extras=True)
    key = _key(type_)
    return tuple(_column(field, hints[field.name], key, dialect=dialect) for field in msgspec.structs.fields(type_))


def _column(field: msgspec.structs.FieldInfo, hint: Any, key: list[str], *, dialect: Dialect) -> _ColumnSpec:
    marks: tuple[Any, ...] = ()
    if typing.get_origin(hint) is typing.Annotated:
        hint, *rest = typing.get_args(hint)
        marks = tuple(rest)
    plain = _without_none(hint)
    kind = _kind(plain)
    name = field.encode_name
    words = [quoted(name), dialect.type(kind)]
    if key == [name] and kind == "INTEGER" and dialect.given:
        words.append(dialect.given)
    # An INTEGER key that may be None in the class is one that SQLite gives.
    if plain is hint or (name in key and kind != "INTEGER"):
        words.append("NOT NULL")
    make: Any = field.default_factory
    default = cast(Any, make() if make in {list, dict} else field.default)
    if default not in (msgspec.NODEFAULT, None):
        plainly = _json_text(default) if kind == "JSON" else msgspec.to_builtins(default, builtin_types=_NATIVE_BYTES)
        words.append(f"DEFAULT {_literal(plainly, dialect)}")
    words.extend(_checks(quoted(name), plain, kind, dialect=dialect))
    return _ColumnSpec(name, field.name, " ".join(words), kind, marks)


def _checks(name: str, plain: Any, kind: str, *, dialect: Dialect) -> Iterator[str]:
    if plain is bool:
        yield f"CHECK ({name} IN (0, 1))"
    elif kind == "JSON":
        yield dialect.json.format(name)
    elif typing.get_origin(plain) is Literal:
        yield f"CHECK ({name} IN ({', '.join(map(_literal, typing.get_args(plain)))}))"
    elif isinstance(plain, type) and issubclass(plain, enum.Enum):
        yield f"CHECK ({name} IN ({', '.join(_literal(member.value) for member in plain)}))"


def _kind(plain: Any) -> str:
    if plain in _NATIVE:
        return _NATIVE[plain]
    if typing.get_origin(plain) is Literal:
        return _kind(type(typing.get_args(plain)[0]))
    if isinstance(plain, type) and issubclass(plain, enum.Enum):
        return _kind(type(next(iter(plain)).value))
    if isinstance(plain, type) and issubclass(plain, _TEXTUAL):
        return "TEXT"
    return "JSON"


def _key(type_: type[Any]) -> list[str]:
    hints = typing.get_type_hints(type_, include_extras=True)
    fields = msgspec.structs.fields(type_)
    marked = [f.encode_name for f in fields if any(isinstance(m, Key) for m in typing.get_args(hints[f.name])[1:])]
    if not marked and not any(field.encode_name == "id" for field in fields):
        raise DefinitionError(f"{type_.__name__} has neither a field `id` nor one annotated with Key()")
    return marked or ["id"]


def _target(mark: References) -> tuple[str, str]:
    if isinstance(mark.table, str):
        return quoted(mark.table), ""
    return quoted(table_name(mark.table)), f" ({', '.join(map(quoted, _key(mark.table)))})"


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        rest = [one for one in typing.get_args(hint) if one is not type(None)]
        if len(rest) < len(typing.get_args(hint)):
            return functools.reduce(lambda a, b: a | b, rest)
    return hint


def _plain(column: _ColumnSpec, value: Any) -> Any:
    if value is None or isinstance(value, bytes):
        return value
    if column.kind == "JSON":
        return _json_text(value)
    return value if type(value) in (int, str) else msgspec.to_builtins(value)


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _literal(value: Any, dialect: Dialect = SQLITE) -> str:
    if isinstance(value, bytes):
        return dialect.blob.format(value.hex())
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(int(value)) if isinstance(value, bool) else repr(value)


def _is_struct(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, msgspec.Struct)
