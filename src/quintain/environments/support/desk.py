"""Base of all areas of the desk: rows, time, the audit log, and the reactions of others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import msgspec

import quintain as qn
from quintain.environments.faults import Faulty, reach
from quintain.resources.database import Database
from quintain.resources.database.rows import reader, table_name
from quintain.resources.schedule import Jobs, Timers

from .schema.desk import AuditEntry, Script
from .schema.row import Row

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D", bound="Desk")
W = TypeVar("W", bound=Row)

READ_S = 20
WRITE_S = 90
"""Seconds that a look, and an act, take."""
HOUR = 3600.0
DAY = 24 * HOUR
PAGE = 10


@functools.lru_cache(maxsize=4096)
def moment(at: float) -> str:
    """A time as rows keep it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(at: str) -> float:
    """The inverse of `moment`."""
    return datetime.fromisoformat(at).timestamp()


def reading(method: Callable[Concatenate[D, P], R]) -> Callable[Concatenate[D, P], R]:
    """A tool that only looks."""
    return _timed(method, READ_S)


def writing(method: Callable[Concatenate[D, P], R]) -> Callable[Concatenate[D, P], R]:
    """A tool that changes something, wholly or not at all."""
    return _timed(method, WRITE_S)


def _timed(method: Callable[Concatenate[D, P], R], cost_s: int) -> Callable[Concatenate[D, P], R]:
    @functools.wraps(method)
    def timed(self: D, /, *values: P.args, **names: P.kwargs) -> R:
        self.clock.advance(cost_s)
        reach(self)
        with self.db.transaction():
            return method(self, *values, **names)

    return qn.tool(timed)


class Desk(Faulty):
    """The database, and how the areas use it.

    Attributes:
        db: The tables of `schema`.
        jobs: What recurs by itself.
        timers: What others will do.
    """

    db: Database
    jobs: Jobs = msgspec.field(default_factory=Jobs)
    timers: Timers = msgspec.field(default_factory=Timers)

    @property
    def now(self) -> str:
        """The time as rows keep it."""
        return moment(self.clock.now)

    @property
    def today(self) -> str:
        return self.now[:10]

    # -- rows

    def need(self, kind: type[W], id: int) -> W:
        """The row of that number.

        Raises:
            ToolError: There is none.
        """
        found = self._read(kind, "id = ?", id)
        if not found:
            raise qn.ToolError(f"there is no row {id} in {table_name(kind)}")
        return found[0]

    def rows(self, kind: type[W], where: str, *values: Any) -> list[W]:
        """Rows by a condition, which may end in ORDER BY and LIMIT; without that they come by number."""
        return self._read(kind, where if "ORDER BY" in where else f"{where} ORDER BY id", *values)

    def _read(self, kind: type[W], where: str, *values: Any) -> list[W]:
        sql, read = _selection(kind, where)
        return list(map(read, self.db.execute(sql, *values)))

    def value(self, kind: type[Row], field: str, id: int) -> Any:
        """Returns one field of the row with this number, as the database stores it.

        Raises:
            ToolError: The row does not exist.
        """
        found = self.db.execute(_select(f'"{field}"', kind, "id = ?"), id)
        if not found:
            raise qn.ToolError(f"row {id} of {table_name(kind)} does not exist")
        return found[0][0]

    def count(self, kind: type[Row], where: str, *values: Any) -> int:
        """Returns the number of rows that fulfil a condition."""
        ((found,),) = self.db.execute(_select("count(*)", kind, where), *values)
        return int(found)

    def add(self, kind: type[W], /, **fields: Any) -> W:
        """A new row, with the next number, which the database gives."""
        row = kind(id=cast(Any, None), **fields)
        row.id = self.db.insert(row)
        return row

    def change(self, kind: type[Row], id: int, /, **fields: Any) -> None:
        """Set fields of a row."""
        self.db.execute(_update(kind, *fields), *fields.values(), id)

    # -- what others see and do

    def audit(self, action: str, customer_id: int | None, record: str, *, detail: str | None = None) -> None:
        """Note that an agent did something to what a customer has."""
        self.add(AuditEntry, at=self.now, action=action, customer_id=customer_id, record=record, detail=detail)

    def cue(self, name: str) -> bool:
        """Let those act who waited for this; whether anybody did."""
        waiting = self.rows(Script, "cue = ? AND is_spent = 0", name)
        for script in waiting:
            self.change(Script, script.id, is_spent=True)
            self.timers.after(script.delay_seconds, self.happen, script_id=script.id)
        return bool(waiting)

    def happen(self, script_id: int) -> None:
        """Performs the act of a script."""
        raise NotImplementedError(f"{type(self).__name__} knows no scripts, so {script_id} cannot happen")


@functools.cache
def _select(what: str, kind: type[Row], where: str) -> str:
    return f"SELECT {what} FROM {table_name(kind)} WHERE {where}"  # noqa: S608 (all of it is ours)


@functools.cache
def _selection(kind: type[W], where: str) -> tuple[str, Callable[[Sequence[Any]], W]]:
    """Returns the SQL that selects whole rows, and the function that reads one of them."""
    columns = kind.__struct_fields__
    return _select(", ".join(f'"{name}"' for name in columns), kind, where), reader(kind, columns)


@functools.cache
def _update(kind: type[Row], *fields: str) -> str:
    names = ", ".join(f'"{name}" = ?' for name in fields)
    return f"UPDATE {table_name(kind)} SET {names} WHERE id = ?"  # noqa: S608 (all of it is ours)


def shown(row: msgspec.Struct, *hidden: str) -> dict[str, Any]:
    """A row for a reader: without what is empty."""
    return {
        name: value for name, value in msgspec.structs.asdict(row).items() if value is not None and name not in hidden
    }


def paged(found: list[Any], page: int) -> dict[str, Any]:
    """One page of a list."""
    rows = found[(page - 1) * PAGE : page * PAGE]
    return {"found": len(found), "page": page, "pages": -(-len(found) // PAGE), "rows": rows}
