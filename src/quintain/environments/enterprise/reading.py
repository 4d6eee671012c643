"""Tools that read: find, get, and reports in SQL. References are shown as key and name."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import quintain as qn

from .description import Action, TableSpec, company, referring
from .desk import Desk

_MOST = 50
_VISIBLE = '(t."{0}" = :me OR t."{0}" IN (SELECT id FROM employees WHERE manager = :me))'


def find(desk: Desk, action: Action, arguments: dict[str, Any]) -> dict[str, Any]:
    """Rows that fit every filter, by id."""
    table = company().tables[action.table]
    roles = desk.enter(action)
    limit, text = arguments["limit"], arguments.get("text")
    values: dict[str, Any] = {"me": desk.me(), "most": limit + 1}
    where: list[str] = []
    for column in action.parameters:
        wanted = arguments[column.name]
        if wanted is None:
            continue
        if column.kind == "ref":
            wanted = desk.resolve(company().tables[column.table], wanted)
        values[column.name] = int(wanted) if column.kind == "flag" else wanted
        where.append(f't."{column.name}" = :{column.name}')
    if text is not None:
        values["text"] = text
        where.append(f'instr(lower(t."{table.label}"), lower(:text))')
    if not desk.may_see(table, roles):
        where.append(_VISIBLE.format(table.private))
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    found = desk.db.execute(f"{_select(table.name)}{condition} ORDER BY t.id LIMIT :most", **values)
    return {"rows": [shown(table, row) for row in found[:limit]], "more": len(found) > limit}


def get(desk: Desk, action: Action, arguments: dict[str, Any]) -> dict[str, Any]:
    """One row, and those that refer to it."""
    table = company().tables[action.table]
    roles = desk.enter(action)
    number = desk.resolve(table, arguments[table.parameter])
    record = read(desk, table, number)
    check_visible(desk, table, record, roles=roles)
    found = shown(table, record)
    for name in action.children:
        child = company().tables[name]
        column = referring(child, table.name)
        hidden = "" if desk.may_see(child, roles) else f" AND {_VISIBLE.format(child.private)}"
        sql = f'{_select(name)} WHERE t."{column}" = :id{hidden} ORDER BY t.id LIMIT {_MOST}'
        values = {"id": number, "me": desk.me()}
        found[name] = [shown(child, row, but=column) for row in desk.db.execute(sql, **values)]
    return found


def report(desk: Desk, action: Action, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of a report's SELECT."""
    desk.enter(action)
    values: dict[str, Any] = {"me": desk.me(), "today": desk.today}
    for column in action.parameters:
        given = arguments[column.name]
        if column.kind == "ref" and given is not None:
            given = desk.resolve(company().tables[column.table], given)
        values[column.name] = given
    found = desk.db.execute(action.sql, **values)[:_MOST]
    return [dict(zip(_columns(action.name), row, strict=True)) for row in found]


def read(desk: Desk, table: TableSpec, number: int) -> Sequence[Any]:
    """One row as `find` reads it."""
    return desk.db.execute(f"{_select(table.name)} WHERE t.id = ?", number)[0]


def check_visible(desk: Desk, table: TableSpec, record: Sequence[Any], *, roles: set[str]) -> None:
    """Refuse a row that others may not see.

    Raises:
        ToolError: It is one.
    """
    if desk.may_see(table, roles):
        return
    me = desk.me()
    place = 1 + list(table.columns).index(table.private)
    owner = record[place]
    boss = owner and desk.db.execute("SELECT manager FROM employees WHERE id = ?", owner)[0][0]
    if me not in {owner, boss}:
        raise qn.ToolError(f"403: this {table.one} is not yours; others need the role {table.reader}")


def shown(table: TableSpec, row: Sequence[Any], *, but: str = "") -> dict[str, Any]:
    """A row for people and models: its key, and its columns without those that are empty."""
    found: dict[str, Any] = {"key": f"{table.code}-{row[0]}"}
    labels = iter(row[1 + len(table.columns) :])
    for column, value in zip(table.columns.values(), row[1:], strict=False):
        label = next(labels) if column.kind == "ref" and company().tables[column.table].label else ""
        if value is None or column.name == but:
            continue
        if column.kind == "ref":
            code = company().tables[column.table].code
            found[column.name] = f"{code}-{value} {label}".strip()
        else:
            found[column.name] = bool(value) if column.kind == "flag" else value
    return found


@functools.cache
def _select(name: str) -> str:
    """A table's columns, then the names of what it refers to."""
    tables = company().tables
    table = tables[name]
    columns = ["t.id", *(f't."{column}"' for column in table.columns)]
    joins: list[str] = []
    for place, column in enumerate(table.columns.values()):
        if column.kind == "ref" and tables[column.table].label:
            columns.append(f'r{place}."{tables[column.table].label}"')
            joins.append(f'LEFT JOIN "{column.table}" r{place} ON r{place}.id = t."{column.name}"')
    return " ".join([f'SELECT {", ".join(columns)} FROM "{name}" t', *joins])  # noqa: S608 (names of the description)


@functools.cache
def _columns(action: str) -> list[str]:
    """Returns the names of a report's columns: each has an AS."""
    head = company().actions[action].sql.partition(" FROM ")[0]
    return re.findall(r" AS (\w+)", head)


READ: dict[str, Callable[[Desk, Action, dict[str, Any]], Any]] = {"find": find, "get": get, "report": report}
