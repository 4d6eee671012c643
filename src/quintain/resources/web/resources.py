"""Declared resources: one declaration gives the routes of a table's list, show, create, update, delete and the rest."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from .messages import HttpResponse, Refuse, answer
from .pages import Listing
from .routes import Routes
from .rows import WebRow, as_shown, count, delete, marks, save, select, shape, shown

MOST_JSON = 262_144
"""Bytes of a list or an object in a column: rules and lists of options are read on each write."""


class Style(Protocol):
    """Conventions of a product's answers."""

    def page(self, world: Any, exchange: Any, listing: Listing, /, *, key: str, sortable: tuple[str, ...]) -> Any:
        """Returns a page of a list, with its envelope but before its rows were decorated."""

    def missing(self) -> Refuse:
        """Returns the refusal for a row that does not exist."""
        ...

    def invalid(self, details: dict[str, list[tuple[str, str]]]) -> Refuse:
        """Returns the refusal for fields: for each one texts and error names."""
        ...

    def many(self, exchange: Any, /, *, noun: str) -> list[int]:
        """Returns the identifiers that a request names."""
        ...

    def job(self, world: Any, exchange: Any, kind: str, /, *, items: list[Any]) -> Any:
        """Starts a background job and returns the answer."""


Hook = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class ResourceSpec:
    """Declaration of a resource.

    Attributes:
        name: Name of one in answers and requests.
        row: Class of the rows, whose fields are shown in their order; `created_at` and `updated_at` are set.
        path: Path of the list.
        style: Conventions of the product.
        plural: Name of several.
        read: Caller that reading needs; its meaning is the product's.
        write: Caller that writing needs.
        verbs: Routes that it has.
        sort: Columns by which a caller may sort.
        order: Order of the list.
        where: Condition of the rows that exist for callers.
        scope: Further condition from the world and the exchange.
        writable: Fields that a request may set; those of the row if none are named.
        required: Fields that may not be empty; those of the row if none are named.
        unique: Fields whose values, without regard to case, no two rows share.
        clean: Changes the fields of a request before they are checked: world, exchange, fields, row or None.
        after: Runs after a write: world, exchange, row, row before or None.
        removed: Runs instead of deleting a row: world, exchange, row.
        show: Completes rows for an answer: world, exchange, rows.
        lists: Further lists by path: conditions whose question marks stand for `{id}` of the path.
    """

    name: str
    row: type[WebRow]
    path: str
    style: Style
    plural: str = ""
    read: str = "agent"
    write: str = "admin"
    verbs: tuple[str, ...] = ("list", "show", "create", "update", "delete", "count", "show_many")
    sort: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    where: str = "1"
    scope: Callable[[Any, Any], tuple[str, tuple[Any, ...]]] | None = None
    writable: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    clean: Hook | None = None
    after: Hook | None = None
    removed: Hook | None = None
    show: Hook | None = None
    lists: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def many(self) -> str:
        """Name of several in answers."""
        return self.plural or f"{self.name}s"

    def listing(self, where: str = "1", *values: Any) -> Listing:
        """Returns the list, narrowed by a condition; `values` are those of its question marks."""
        return Listing(self.row, f"{self.where} AND {where}", values, self.order)

    def decorated(self, world: Any, exchange: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns rows with their addresses and whatever `show` adds."""
        base = f"{exchange.base}{self.path}/"
        rows = [{"url": f"{base}{row['id']}.json", **row} for row in rows]
        return self.show(world, exchange, rows) if self.show else rows

    def of(self, world: Any, exchange: Any, row: Any) -> dict[str, Any]:
        """Returns a struct as an answer shows its row."""
        return self.decorated(world, exchange, [as_shown(row)])[0]

    def one(self, world: Any, exchange: Any, id: int) -> dict[str, Any]:
        """Returns one row as an answer shows it."""
        found = shown(world.db, self.row, f"id = ? AND {self.where}", id)
        if not found:
            raise self.style.missing()
        return self.decorated(world, exchange, found)[0]

    def need(self, world: Any, exchange: Any, id: int | None) -> Any:
        """Returns the row as a struct."""
        where, values = self.scope(world, exchange) if self.scope else ("1", ())
        found = select(world.db, self.row, f"id = ? AND {self.where} AND {where}", id, *values)
        if not found:
            raise self.style.missing()
        return found[0]

    def mount(self, routes: Routes) -> None:
        """Adds the routes."""
        id_path, verbs = f"{self.path}/{{id}}", self.verbs
        reading, writing = {"who": self.read}, {"who": self.write}
        table: tuple[tuple[str, str, str, Any, dict[str, Any]], ...] = (
            ("list", "GET", self.path, self.answer_list, reading),
            ("count", "GET", f"{self.path}/count", self._count, reading),
            ("show_many", "GET", f"{self.path}/show_many", self._show_many, reading),
            ("create_many", "POST", f"{self.path}/create_many", self._create_many, writing),
            ("update_many", "PUT", f"{self.path}/update_many", self._update_many, writing),
            ("destroy_many", "DELETE", f"{self.path}/destroy_many", self._destroy_many, writing),
            ("create", "POST", self.path, self._create, writing),
            ("show", "GET", id_path, self._show, reading),
            ("update", "PUT", id_path, self._update, writing),
            ("delete", "DELETE", id_path, self._delete, writing | {"status": 204}),
        )
        for verb, method, path, handler, options in table:
            if verb in verbs:
                routes.add(method, path, handler, **options)
        for path, where in self.lists.items():
            routes.add("GET", path, self._narrowed(where), who=self.read)

    def _narrowed(self, where: str) -> Callable[[Any, Any], Any]:
        def narrowed(world: Any, exchange: Any) -> Any:
            return self.answer_list(world, exchange, where, *([exchange.id] if "?" in where else []))

        return narrowed

    def answer_list(self, world: Any, exchange: Any, where: str = "1", *values: Any) -> Any:
        """Returns a page of the rows that fulfil a condition; `values` are those of its question marks."""
        more, further = self.scope(world, exchange) if self.scope else ("1", ())
        listing = self.listing(f"{where} AND {more}", *values, *further)
        found = self.style.page(world, exchange, listing, key=self.many, sortable=self.sort)
        found[self.many] = self.decorated(world, exchange, found[self.many])
        return found

    def _count(self, world: Any, exchange: Any) -> Any:
        more, values = self.scope(world, exchange) if self.scope else ("1", ())
        found = count(world.db, self.row, f"{self.where} AND {more}", *values)
        return {"count": {"value": found, "refreshed_at": world.now}}

    def _show(self, world: Any, exchange: Any) -> Any:
        if self.scope:
            self.need(world, exchange, exchange.id)
        return {self.name: self.one(world, exchange, exchange.id)}

    def _show_many(self, world: Any, exchange: Any) -> Any:
        ids = self.style.many(exchange, noun=self.many)
        return self.answer_list(world, exchange, f"id IN ({marks(ids)})", *ids)

    def _create(self, world: Any, exchange: Any) -> Any:
        return self.created(world, exchange, exchange.part(self.name))

    def created(self, world: Any, exchange: Any, fields: dict[str, Any]) -> HttpResponse:
        """Creates a row from the fields of a request; returns the answer with its address."""
        row = self.create(world, exchange, fields)
        address = ("location", f"{exchange.base}{self.path}/{row.id}.json")
        return answer({self.name: self.one(world, exchange, row.id)}, 201, headers=(address,))

    def _update(self, world: Any, exchange: Any) -> Any:
        row = self.need(world, exchange, exchange.id)
        self.update(world, exchange, row, fields=exchange.part(self.name))
        return {self.name: self.one(world, exchange, row.id)}

    def _delete(self, world: Any, exchange: Any) -> Any:
        return self.remove(world, exchange, self.need(world, exchange, exchange.id))

    def _create_many(self, world: Any, exchange: Any) -> Any:
        return self.style.job(world, exchange, f"create {self.many}", items=exchange.json.get(self.many) or [])

    def _update_many(self, world: Any, exchange: Any) -> Any:
        batch, single = exchange.json.get(self.many), exchange.part(self.name)
        items = batch if batch is not None else [{"id": i, **single} for i in self.style.many(exchange, noun=self.many)]
        return self.style.job(world, exchange, f"update {self.many}", items=items)

    def _destroy_many(self, world: Any, exchange: Any) -> Any:
        items = [{"id": i} for i in self.style.many(exchange, noun=self.many)]
        return self.style.job(world, exchange, f"delete {self.many}", items=items)

    # -- what routes and jobs do

    def create(self, world: Any, exchange: Any, fields: dict[str, Any]) -> Any:
        """Creates a row from the fields of a request."""
        values = self._checked(world, exchange, fields, row=None)
        row = world.put(self.row, **values)
        if self.after:
            self.after(world, exchange, row, before=None)
        return row

    def update(self, world: Any, exchange: Any, row: Any, *, fields: dict[str, Any]) -> None:
        """Changes a row by the fields of a request."""
        before = copy(row)
        for name, value in self._checked(world, exchange, fields, row=row).items():
            setattr(row, name, value)
        if row != before and "updated_at" in self.row.__struct_fields__:
            row.updated_at = world.now
        save(world.db, row, before)
        if self.after:
            self.after(world, exchange, row, before=before)

    def remove(self, world: Any, exchange: Any, row: Any) -> Any:
        """Removes a row."""
        if self.removed:
            return self.removed(world, exchange, row)
        delete(world.db, self.row, "id = ?", row.id)
        return None

    def _checked(self, world: Any, exchange: Any, fields: dict[str, Any], *, row: Any) -> dict[str, Any]:
        """Returns the values of the columns that a request sets.

        Raises:
            Refuse: A field is empty, taken, or of another type.
        """
        fields, details = self._typed(fields)
        if self.clean and not details:
            fields = self.clean(world, exchange, fields, row=row)
        values = {name: fields[name] for name in self.writable or self.row.settable if name in fields}
        for name in self.required or self.row.needed:
            value = values.get(name, None if row is None else getattr(row, name))
            if value is None or value == [] or (isinstance(value, str) and not value.strip()):
                details.setdefault(name, []).append((f"{_title(name)}: cannot be blank", "BlankValue"))
        for name in {*values} & {*shape(self.row).json}:
            if len(msgspec.json.encode(values[name])) > MOST_JSON:
                words = f"{_title(name)}: is too long (maximum is {MOST_JSON} bytes)"
                details.setdefault(name, []).append((words, "InvalidValue"))
        for name in self.unique:
            value = values.get(name)
            where = f'lower("{name}") = lower(?) AND {self.where} AND id <> ?'
            if value is not None and count(world.db, self.row, where, str(value), row.id if row else 0):
                words = f"{_title(name)}: {value} has already been taken"
                details.setdefault(name, []).append((words, "DuplicateValue"))
        if details:
            raise self.style.invalid(details)
        return values

    def _typed(self, fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[tuple[str, str]]]]:
        """Returns the fields with the types of their columns, and what is wrong with those of another type.

        A null is left out where the column must hold something.
        """
        found, details = dict(fields), dict[str, list[tuple[str, str]]]()
        for name in (name for name in self.writable or self.row.settable if name in fields):
            try:
                found[name] = convert(self.row, name, fields[name])
            except ValueError as error:
                if fields[name] is not None:
                    details[name] = [(f"{_title(name)}: {error}", "InvalidValue")]
                del found[name]
        return found, details


def convert(kind: type[WebRow], name: str, value: Any) -> Any:
    """Returns a value as a column holds it.

    Raises:
        ValueError: It does not hold it.
    """
    try:
        found: Any = msgspec.convert(value, _wanted(kind, name), strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"is invalid ({error})") from error
    if isinstance(found, int) and not -(2**63) <= found < 2**63:
        raise ValueError("is out of range")
    return found


@functools.cache
def _wanted(kind: Any, name: str) -> Any:
    hint = typing.get_type_hints(kind, include_extras=True)[name]
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
