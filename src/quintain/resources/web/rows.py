"""Rows of a product's tables: read as structs for its rules, or as JSON for its answers, without a struct between.

The names of tables and columns in SQL are those of the classes; values are always bound.
"""

from __future__ import annotations

import functools
import itertools
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple

from quintain.resources.database import Database, Indexed
from quintain.resources.database.rows import table_name
from quintain.resources.database.standing import known

T = TypeVar("T", bound="WebRow")


class WebRow(msgspec.Struct, kw_only=True):
    """Base class of rows. The fields stand in the order in which an answer shows them.

    Attributes:
        id: Key of the row.
        hidden: Names of the columns that answers leave out.
        settable: Names of the columns that requests may set.
        needed: Names of the columns that may not be empty.
    """

    id: int

    hidden: ClassVar[tuple[str, ...]] = ()
    settable: ClassVar[tuple[str, ...]] = ()
    needed: ClassVar[tuple[str, ...]] = ()


_COLUMN = re.compile(r"(\w+)(?::(\w+))?([?!+#-]*)(?:=(\S+))?")
_TYPES: dict[str, Any] = {
    "": str, "int": int, "float": float, "bool": bool, "bytes": bytes, "json": dict[str, Any],
    "texts": list[str], "ints": list[int], "dicts": list[dict[str, Any]],
}  # fmt: skip


def declared(name: str, words: str, columns: str, *, base: type[WebRow] = WebRow) -> Any:
    """Returns a class of rows whose columns are words such as `title!+`, `position:int+=1` or `group_id:int?#`.

    The type is str if none is named. A column begins as null with `?`, as the value after `=`, else as what is empty in
    its type. Marks: `!` it may not be empty, `+` requests set it, `#` it is indexed, `-` answers leave it out.
    """
    fields: list[Any] = []
    marked: dict[str, list[str]] = {"!": [], "+": [], "-": []}
    for word in columns.split():
        match = _COLUMN.fullmatch(word)
        assert match is not None, f"{word!r} is not a column"
        column, kind, marks, value = match.groups(default="")
        hint = _TYPES[kind] | None if "?" in marks else _TYPES[kind]
        hint = Annotated[hint, Indexed()] if "#" in marks else hint
        fields.append((column, hint) if "!" in marks else (column, hint, _default(kind, marks, value)))
        for mark in marked.keys() & {*marks}:
            marked[mark].append(column)
    own = dict(zip(("needed", "settable", "hidden"), map(tuple, marked.values()), strict=True))
    namespace = {"__doc__": words, **own}
    return msgspec.defstruct(name, fields, bases=(base,), namespace=namespace, module=base.__module__, kw_only=True)


def _default(kind: str, marks: str, value: str) -> Any:
    if "?" in marks or not value:
        return None if "?" in marks else _TYPES[kind]()
    if kind == "json":
        return msgspec.field(default_factory=lambda: msgspec.json.decode(value))
    return msgspec.json.decode(value) if kind else value


class _Shape(NamedTuple):
    names: tuple[str, ...]
    columns: str
    json: tuple[str, ...]
    bools: tuple[str, ...]
    numbers: tuple[str, ...]
    hidden: tuple[str, ...]
    read: Callable[[Sequence[Any]], Any]


def find(db: Database, kind: type[T], id: int | None) -> T | None:
    """Returns the row with this key; None if it does not exist."""
    found = select(db, kind, "id = ?", id) if id is not None else []
    return found[0] if found else None


def select(db: Database, kind: type[T], where: str = "1", *values: Any) -> list[T]:
    """Returns rows by a condition, which may end in ORDER BY and LIMIT."""
    return [shape(kind).read(record) for record in db.execute(_select(kind, where), *values)]


def kept(db: Database, kind: type[T], where: str = "1", *values: Any) -> list[T]:
    """Returns what `select` does, of a table that seldom changes."""
    return [shape(kind).read(record) for record in known(db, _select(kind, where), *values)]


def shown(db: Database, kind: type[WebRow], where: str = "1", *values: Any) -> list[dict[str, Any]]:
    """Returns rows as answers show them; lists and dicts are `msgspec.Raw`."""
    form = shape(kind)
    return [render(form, record) for record in db.execute(_select(kind, where), *values)]


def render(form: _Shape, record: Sequence[Any]) -> dict[str, Any]:
    """Returns one record as an answer shows it."""
    value: dict[str, Any] = dict(zip(form.names, record, strict=True))
    for name in form.json:
        if (text := value[name]) is not None:
            value[name] = msgspec.Raw(text)
    for name in form.bools:
        if value[name] is not None:
            value[name] = value[name] == 1
    for name in form.hidden:
        del value[name]
    return value


def as_shown(row: WebRow) -> dict[str, Any]:
    """Returns a struct as an answer shows it once its row is read."""
    return render(shape(type(row)), _bound(astuple(row)))


def count(db: Database, kind: type[WebRow], where: str = "1", *values: Any) -> int:
    """Returns the number of rows that fulfil a condition."""
    return int(db.execute(_sql("SELECT count(*) FROM", kind, f"WHERE {where}"), *values)[0][0])


def insert(db: Database, *rows: WebRow) -> None:
    """Inserts rows of one class, in one statement."""
    if rows:
        values = _bound(itertools.chain.from_iterable(map(astuple, rows)))
        db.execute(_insertion(type(rows[0]), len(rows)), *values)


def update(db: Database, row: WebRow, **changes: Any) -> None:
    """Sets fields of a row, in the struct and in its table."""
    if changes:
        for name, value in changes.items():
            setattr(row, name, value)
        db.execute(_update(type(row), *changes), *_bound(changes.values()), row.id)


def _bound(values: Iterable[Any]) -> list[Any]:
    """Returns values as their columns hold them: lists and dicts as JSON."""
    return [_encode(value).decode() if type(value) in _JSON else value for value in values]


_JSON = (list, dict)
_encode = msgspec.json.Encoder(order="deterministic").encode


def save(db: Database, row: T, before: T) -> list[str]:
    """Writes the fields in which a row differs from what it was; returns their names."""
    pairs = zip(shape(type(row)).names, astuple(row), astuple(before), strict=True)
    changed = {name: now for name, now, then in pairs if now is not then and now != then}
    if changed:
        db.execute(_update(type(row), *changed), *_bound(changed.values()), row.id)
    return [*changed]


def delete(db: Database, kind: type[WebRow], where: str, *values: Any) -> None:
    """Deletes rows by a condition."""
    db.execute(_sql("DELETE FROM", kind, f"WHERE {where}"), *values)


def marks(values: Iterable[Any]) -> str:
    """Returns as many question marks as there are values, for an IN clause."""
    return ", ".join("?" for _ in values)


@functools.cache
def shape(kind: Any) -> _Shape:
    """Returns the names, columns and reader of a class of rows."""
    names = tuple(kind.__struct_fields__)
    types_ = typing.get_type_hints(kind)
    hints = {name: _bare(hint) for name, hint in types_.items()}
    json = tuple(
        name for name in names if not isinstance(hints[name], type) or hints[name] in {list, dict, object, Any}
    )
    bools = tuple(name for name in names if hints[name] is bool)
    numbers = tuple(name for name in names if hints[name] in {int, float})
    columns = ", ".join(f'"{name}"' for name in names)
    others = {*names} - {*json}
    assert all(hints[name] in {bool, int, float, str, bytes} for name in others), f"{kind} has columns of other types"
    made: dict[str, Callable[[Any], Any]] = dict.fromkeys(bools, bool)
    made |= {name: msgspec.json.Decoder(types_[name], strict=False).decode for name in json}
    return _Shape(names, columns, json, bools, numbers, kind.hidden, _reader(kind, made))


def _reader(kind: Any, made: Mapping[str, Callable[[Any], Any]]) -> Callable[[Sequence[Any]], Any]:
    """Returns a function from a record to a struct. Tables are STRICT, so only what `made` names is converted."""
    names: tuple[str, ...] = kind.__struct_fields__
    places = [(names.index(name), convert) for name, convert in made.items()]

    def read(record: Sequence[Any]) -> Any:
        values = [*record]
        for place, convert in places:
            if (value := values[place]) is not None:
                values[place] = convert(value)
        return kind(**dict(zip(names, values, strict=True)))

    return read


def _bare(hint: Any) -> Any:
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        rest = [one for one in typing.get_args(hint) if one is not type(None)]
        return _bare(rest[0]) if len(rest) == 1 else object
    return typing.get_origin(hint) or hint


@functools.lru_cache(maxsize=4096)
def _select(kind: type[WebRow], where: str) -> str:
    return _sql(f"SELECT {shape(kind).columns} FROM", kind, f"WHERE {where}")


@functools.lru_cache(maxsize=4096)
def _insertion(kind: Any, number: int) -> str:
    """Returns the statement that inserts so many rows."""
    form = shape(kind)
    groups = ", ".join([f"({marks(form.names)})"] * number)
    return _sql("INSERT INTO", kind, f"({form.columns}) VALUES {groups}")


@functools.lru_cache(maxsize=4096)
def _update(kind: type[WebRow], *names: str) -> str:
    pairs = ", ".join(f'"{name}" = ?' for name in names)
    return _sql("UPDATE", kind, f"SET {pairs} WHERE id = ?")


def _sql(before: str, kind: type[WebRow], after: str) -> str:
    return f'{before} "{table_name(kind)}" {after}'
