"""Tools that write: each is one transaction that checks who acts, the record's state and the rules, and then writes."""

from __future__ import annotations

from datetime import date
from typing import Any, cast

import apsw

import quintain as qn

from . import reading
from .description import Action, TableSpec, company
from .desk import Desk

_SAID = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: "there is such a record already",
    apsw.SQLITE_CONSTRAINT_CHECK: "a number would fall below what is possible",
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: "other records refer to it",
}
"""Refusals of the database's constraints, as the agent reads them."""


def act(desk: Desk, action: Action, arguments: dict[str, Any]) -> dict[str, Any]:
    """Do what an action says, or nothing at all.

    Raises:
        ToolError: The employee may not, the record is not there or in another state, or a rule forbids it.
    """
    roles = desk.enter(action)
    table = company().tables[action.table]
    try:
        with desk.db.transaction():
            return _Deed(desk, action, roles).run(table, arguments)
    except apsw.ConstraintError as error:
        words = _SAID.get(cast(Any, error).extendedresult)
        if words is None:
            raise
        raise qn.ToolError(f"409: {words} ({error})") from error


class _Deed:
    """One use of one action, inside a transaction."""

    def __init__(self, desk: Desk, action: Action, roles: set[str]) -> None:
        self._desk = desk
        self._action = action
        self._roles = roles
        self._names: dict[str, Any] = {"me": desk.me(), "today": desk.today, "now": desk.stamp}

    def run(self, table: TableSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        action, number = self._action, 0
        if action.kind != "create":
            number = self._desk.resolve(table, arguments[table.parameter])
            self._load(table, number)
        given = self._given(arguments)
        for rule in action.rules:
            if not self._one(f"SELECT {rule.sql}"):
                raise qn.ToolError(rule.says if rule.says[:3].isdigit() else f"409: {rule.says}")
        if action.kind == "create":
            number = self._insert(table, given)
        elif action.kind == "change":
            self._update(table, given)
        for sql in action.effects:
            self._desk.db.execute(sql, **self._names)
        if action.kind == "remove":
            self._desk.db.execute(f'DELETE FROM "{table.name}" WHERE id = :id', id=number)  # noqa: S608
        self._log(f"{table.code}-{number}")
        if action.kind == "remove":
            return {"removed": f"{table.code}-{number}"}
        return reading.shown(table, reading.read(self._desk, table, number))

    def _load(self, table: TableSpec, number: int) -> None:
        """The record's columns become names for rules and effects."""
        action, me = self._action, self._names["me"]
        record = reading.read(self._desk, table, number)
        self._names |= dict(zip(("id", *table.columns), record, strict=False))
        self._names |= {f"old_{name}": self._names[name] for name in table.columns}
        if action.own:
            if self._names[action.own] != me and action.role not in self._roles:
                unless = f" or the role {action.role}" if action.role else ""
                raise qn.ToolError(f"403: {action.name} needs the {action.own} of this {table.one}{unless}")
        else:
            reading.check_visible(self._desk, table, record, roles=self._roles | {action.role} - {""})
        if action.source and self._names[table.status] not in action.source:
            wanted = " or ".join(action.source)
            raise qn.ToolError(
                f"409: {table.code}-{number} is {self._names[table.status]}, it would have to be {wanted}"
            )

    def _given(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the database holds them; they are names for rules and effects, too."""
        given: dict[str, Any] = {}
        for column in self._action.parameters:
            value = arguments[column.name]
            if column.kind == "ref" and value is not None:
                value = self._desk.resolve(company().tables[column.table], value)
            elif column.kind == "date" and value is not None:
                _check_date(value)
            elif column.kind == "flag" and value is not None:
                value = int(value)
            given[column.name] = value
        if self._action.verb == "edit" and all(value is None for value in given.values()):
            raise qn.ToolError("400: nothing to change")
        known = {name: value for name, value in given.items() if value is not None or name not in self._names}
        self._names |= known
        return given

    def _insert(self, table: TableSpec, given: dict[str, Any]) -> int:
        action = self._action
        values: dict[str, str] = {}
        for column in table.columns.values():
            if given.get(column.name) is not None:
                values[column.name] = f":{column.name}"
            elif column.name in action.sets:
                values[column.name] = action.sets[column.name]
            elif column.kind == "time":
                values[column.name] = ":now"
            elif column.kind == "state":
                values[column.name] = f"'{action.target or column.options[0]}'"
            elif not column.is_optional:
                values[column.name] = f"'{column.options[0]}'" if column.options else "0"
        names = ", ".join(f'"{name}"' for name in values)
        sql = f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join(values.values())}) RETURNING id'  # noqa: S608
        number = int(self._desk.db.execute(sql, **self._names)[0][0])
        self._names["id"] = number
        return number

    def _update(self, table: TableSpec, given: dict[str, Any]) -> None:
        action = self._action
        changes = [
            f'"{name}" = :{name}' for name, value in given.items() if value is not None and name in table.columns
        ]
        changes += [f'"{name}" = {expression}' for name, expression in action.sets.items()]
        if action.target:
            changes.append(f"\"{table.status}\" = '{action.target}'")
        if changes:
            sql = f'UPDATE "{table.name}" SET {", ".join(changes)} WHERE id = :id'  # noqa: S608
            self._desk.db.execute(sql, **self._names)

    def _log(self, record: str) -> None:
        sql = "INSERT INTO audit_log (at, employee, tool, record) VALUES (:now, :me, :tool, :record)"
        names = self._names
        self._desk.db.execute(sql, now=names["now"], me=names["me"], tool=self._action.name, record=record)

    def _one(self, sql: str) -> Any:
        return self._desk.db.execute(sql, **self._names)[0][0]


def _check_date(text: str) -> None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise qn.ToolError(f"400: there is no day {text!r}") from None
    if not 2000 <= found.year <= 2100:
        raise qn.ToolError(f"400: {text!r} is out of range")
