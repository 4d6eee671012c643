"""Goals as lists of calls, and the comparison of the world they lead to with the agent's.

The truth is relative: a goal is a list of calls in the name of an employee. They are played on a fork of the world in
which the episode began, so a goal has a meaning also where earlier tasks left another world than planned. Calls that
cannot be made there are left out. The changes on the fork are the wanted facts; the changes in the agent's world are
the found ones. Ids, times, free text and logs do not count.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, cast

import msgspec

import quintain as qn
from quintain import codec
from quintain.authoring import Recent
from quintain.resources.database import RowChange

from .description import Column, TableSpec, company
from .desk import Desk

Call = tuple[str, dict[str, Any]]
Fact = tuple[Any, ...]

_DEEP = 4


class CallGoal(msgspec.Struct, frozen=True, kw_only=True):
    """The truth of a task.

    Attributes:
        actor: Who is to do it.
        calls: What is to be done. An argument may be a `ref` to a record whose key is known only in the actual world.
    """

    actor: int
    calls: tuple[Call, ...]


class Unresolved(Exception):
    """A reference that means nothing in this world."""


class Verdict(NamedTuple):
    """Wanted and found facts, compared.

    Attributes:
        total: Wanted facts.
        missing: Those that were not found.
        stray: What was found and not wanted.
        left_out: Why calls of the goal could not be made.
    """

    total: int
    missing: list[str]
    stray: list[str]
    left_out: list[str]


def ref(table: str, /, **where: Any) -> dict[str, Any]:
    """The newest record with these values; a value may be a name, a key or a `ref` where the column is a reference."""
    return {"table": table, "where": where}


def play(world: Desk, goal: CallGoal) -> tuple[list[Call], list[str]]:
    """Do what a goal says, in this very world; the calls as they were made, and why others could not be."""
    made: list[Call] = []
    left_out: list[str] = []
    world.actor = goal.actor
    for name, arguments in goal.calls:
        try:
            plain = {key: keyed(world, value) for key, value in arguments.items()}
            call(world, name, **plain)
            made.append((name, plain))
        except (Unresolved, qn.ToolError) as error:
            left_out.append(f"{name}: {error}")
    return made, left_out


def call(world: Desk, name: str, /, **arguments: Any) -> Any:
    """Use a tool; what is not given takes its default."""
    action = company().actions[name]
    given: dict[str, Any] = {column.name: None for column in action.parameters if column.is_optional}
    if action.kind == "find":
        given["limit"] = 20
    return getattr(world, name)(**given | arguments)


def judge(goal: CallGoal, start: Desk, end: Desk) -> Verdict:
    """Compare the world that an agent left with the one that the goal leads to from the same beginning."""
    wanted, left_out = _wanted(goal, start)
    ends = codec.dumps((start.db.digest(), end.db.digest()))
    found = _FOUND.get(ends, lambda: facts(start, end))
    missing, stray = wanted - found, found - wanted
    return Verdict(wanted.total(), _listed(missing), _listed(stray), left_out)


def _wanted(goal: CallGoal, start: Desk) -> tuple[Counter[Fact], list[str]]:
    """Returns the changes that playing the goal makes, and why some calls cannot be played."""

    def played() -> tuple[Counter[Fact], list[str]]:
        expected = start.copy()
        _, left_out = play(expected, goal)
        return facts(start, expected), left_out

    return _WANTED.get(codec.dumps((start.db.digest(), start.clock.now, goal)), played)


_WANTED: Recent[tuple[Counter[Fact], list[str]]] = Recent(200)
_FOUND: Recent[Counter[Fact]] = Recent(200)


def facts(start: Desk, end: Desk) -> Counter[Fact]:
    """Returns the differences as facts that do not depend on ids of new rows, times and free text."""
    changes = start.db.diff(end.db)
    fresh = {(change.table, change.key[0]): change for change in changes if change.before is None}
    found: Counter[Fact] = Counter()
    for change in changes:
        table = company().tables[change.table]
        if table.is_log:
            continue
        if change.after is None:
            found[change.table, change.key[0], "removed"] += 1
        elif change.before is None:
            found[_row(table, change, fresh, depth=0)] += 1
        else:
            for name, column in table.columns.items():
                before, after = change.before[name], change.after[name]
                if before != after:
                    value = "..." if column.is_free else _value(column, after, fresh, depth=0)
                    found[change.table, change.key[0], name, value] += 1
    return found


def _row(table: TableSpec, change: RowChange, fresh: dict[tuple[str, Any], RowChange], *, depth: int) -> Fact:
    assert change.after is not None
    values = [
        (name, _value(column, change.after[name], fresh, depth=depth + 1))
        for name, column in table.columns.items()
        if not column.is_free
    ]
    return (table.name, "new", *values)


def _value(column: Column, value: Any, fresh: dict[tuple[str, Any], RowChange], *, depth: int) -> Any:
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    if column.kind == "ref" and (column.table, value) in fresh:
        # A new row has no name of its own: it is what stands in it.
        return (
            "new"
            if depth > _DEEP
            else _row(company().tables[column.table], fresh[column.table, value], fresh, depth=depth)
        )
    return value


def _listed(some: Counter[Fact]) -> list[str]:
    return [_words(fact) for fact in sorted(some.elements(), key=repr)]


def _words(fact: Fact) -> str:
    table = company().tables[fact[0]]
    if fact[1] == "new":
        values = ", ".join(f"{name} {_short(value)}" for name, value in fact[2:] if value is not None)
        return f"a {table.one} with {values}"
    if fact[2] == "removed":
        return f"{table.code}-{fact[1]} removed"
    return f"{table.code}-{fact[1]}.{fact[2]} = {_short(fact[3])}"


def _short(value: Any) -> str:
    return "(new)" if isinstance(value, tuple) else str(value)


def keyed(world: Desk, value: Any) -> Any:
    """A `ref` as the key that it has in this world."""
    if not isinstance(value, dict):
        return value
    table = company().tables[cast(str, value["table"])]
    return f"{table.code}-{_row_of(world, cast('dict[str, Any]', value))}"


def _row_of(world: Desk, value: dict[str, Any]) -> int:
    table = company().tables[value["table"]]
    wanted: dict[str, Any] = {}
    for name, one in value["where"].items():
        column = table.columns[name]
        if isinstance(one, dict):
            wanted[name] = _row_of(world, cast("dict[str, Any]", one))
        elif column.kind == "ref" and isinstance(one, str):
            wanted[name] = world.resolve(company().tables[column.table], one)
        else:
            wanted[name] = one
    where = " AND ".join(f'"{name}" = :{name}' for name in wanted)
    sql = f'SELECT id FROM "{table.name}" WHERE {where} ORDER BY id DESC LIMIT 1'  # noqa: S608
    rows = world.db.execute(sql, **wanted)
    if not rows:
        raise Unresolved(f"there is no {table.one} with {value['where']}")
    return int(rows[0][0])
