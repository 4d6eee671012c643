"""A language of histories over several worlds with a database, and two ways to play them.

`played` plays a history on our worlds and, operation by operation, on the reference (`plain.py`). What they answer must
be the same, and so must what they hold in the end. `again` plays it without looking in between; the digests must be the
same.

An operation is a tuple of plain values which means something in any history, so that one that fails can be made
smaller by leaving operations out.
"""

from __future__ import annotations

import functools
import random
import sqlite3
from collections.abc import Sequence
from typing import Any

import apsw

import quintain as qn
from quintain.resources.database import Database, DatabaseSnapshot, RowChange
from quintain.resources.database.difference import weigh_all
from tests.resources.database.plain import NOTE, SCHEMA, Execute, Plain, Statement, outcome, pool

NAMES = ("a", "b", "item 3", "item 29", "ß")
LOOK = "SELECT random(), unixepoch(), date('now')"
WORLDS = 4

Operation = tuple[Any, ...]


# -- what can be done


def statement(rng: random.Random) -> Statement:
    """SQL and values; some of it breaks a constraint, and some is wrong."""
    number, other, size = rng.randint(1, 44), rng.randint(1, 44), rng.choice((0, 3, 90, 700, 2500))
    name = rng.choice(NAMES)
    choices: tuple[Statement, ...] = (
        ("INSERT INTO item (name, data) VALUES (?, zeroblob(?))", (name, size)),
        ("UPDATE item SET data = zeroblob(?) WHERE id = ?", (size, number)),
        ("UPDATE item SET data = replace(hex(data), '00', ?) WHERE id = ?", (name, number)),
        ("UPDATE item SET size = ? WHERE id BETWEEN ? AND ?", (size, number, other)),
        ("UPDATE item SET id = ? WHERE id = ?", (number, other)),
        ("UPDATE item SET name = ? WHERE id = ?", (name, number)),
        ("DELETE FROM item WHERE id BETWEEN ? AND ?", (number, other)),
        ("INSERT INTO part VALUES (?, ?)", (number, name)),
        ("UPDATE part SET place = place || ? WHERE item = ?", (name, number)),
        ("DELETE FROM part WHERE item < ?", (number,)),
        ("INSERT INTO words VALUES (?)", (name,)),
        ("DELETE FROM words WHERE words MATCH ?", ("many",)),
        (NOTE, (rng.choice((name, "bad")),)),
        (NOTE, (name,)),
        ("DELETE FROM log", ()),
        (f"CREATE TABLE {(t := rng.choice(('aa', 'bb')))} (v, w DEFAULT 'x' || '{t}')", ()),
        (f"INSERT INTO {rng.choice(('aa', 'bb'))} (v) VALUES (?)", (rng.choice((1, 1.0)),)),
        (rng.choice(("DROP TABLE aa", "DROP TABLE part", "ALTER TABLE log ADD COLUMN more TEXT")), ()),
        ("SELECT count(*), sum(length(data)) FROM item WHERE size > ?", (size,)),
        (LOOK, ()),
    )
    return rng.choice(choices)


def operation(rng: random.Random) -> Operation:
    kinds = ("run", "transact", "fork", "snapshot", "restore", "timer", "cancel", "advance", "look", "diff")
    kind = rng.choices(kinds, (10, 4, 2, 3, 3, 3, 1, 3, 2, 1))[0]
    world, other = rng.randrange(WORLDS), rng.randrange(WORLDS)
    match kind:
        case "run":
            return kind, world, statement(rng)
        case "transact":
            several = [statement(rng) for _ in range(rng.randint(1, 3))]
            return kind, world, several, rng.choice(("ends", "ends", "fails", "fails within"))
        case "timer":
            return kind, world, rng.choice((0, 1, 5, 60)), rng.choice(("note", "twice", "clear"))
        case "advance":
            return kind, world, rng.choice((0.25, 1, 7, 100))
        case "fork":
            return kind, world, rng.choice(("copy", "dump"))
        case _:
            return kind, world, other


def history(seed: int) -> list[Operation]:
    rng = random.Random(seed)
    return [operation(rng) for _ in range(rng.randint(4, 20))]


# -- our worlds


class World(qn.State):
    db: Database

    def note(self, what: str) -> None:
        self.db.execute(NOTE, what)

    def twice(self, what: str) -> None:
        self.note(what)
        self.clock.after(3, self.note, what=f"{what} again")

    def clear(self, what: str) -> None:
        """Fails where `part` is gone, and then leaves nothing."""
        try:
            with self.db.transaction():
                self.note(what)
                self.db.execute("DELETE FROM part WHERE place = ?", "left")
        except apsw.SQLError:
            self.note(f"no {what}")


class Ours:
    def __init__(self, world: World) -> None:
        self.world = world

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self.world.db.execute(sql, *values)

    def fork(self, through: str) -> Ours:
        twin = self.world.copy()
        if through == "dump":
            twin.db = Database.load(self.world.db.dump())
        return Ours(twin)

    def snapshot(self) -> DatabaseSnapshot:
        return self.world.db.snapshot()

    def restore(self, snapshot: DatabaseSnapshot) -> None:
        self.world.db.restore(snapshot)

    def transact(self, several: Sequence[Statement], end: str) -> list[Any]:
        found: list[Any] = []
        db = self.world.db
        try:
            with db.transaction():
                if end == "fails within":
                    found.append(self.transact(several, "fails"))
                found += [outcome(self.execute, *one) for one in several]
                _fail_if(end == "fails")
        except KeyError:
            found.append("undone")
        return found

    def timer(self, seconds: float, method: str) -> int:
        return self.world.clock.after(seconds, getattr(self.world, method), what=f"{method} {seconds}")

    def cancel(self, number: int) -> bool:
        return self.world.clock.cancel(number)

    def advance(self, seconds: float) -> None:
        self.world.clock.advance(seconds)


# -- playing


def played(operations: Sequence[Operation]) -> list[str]:
    """Play on our worlds and beside the reference; the digests of our worlds in the end.

    Raises:
        AssertionError: They differ.
    """
    ours, plain = [Ours(World(db=_start()))], [Plain(pool().begin())]
    kept: list[tuple[DatabaseSnapshot, sqlite3.Connection]] = []
    for one in operations:
        mine, his = ours[one[1] % len(ours)], plain[one[1] % len(ours)]
        match one:
            case ("fork", _, through):
                if len(ours) < WORLDS:
                    ours.append(mine.fork(through))
                    plain.append(his.fork(through))
            case ("snapshot", *_):
                kept.append((mine.snapshot(), his.snapshot()))
            case ("restore", _, which):
                if kept:
                    mine.restore(kept[which % len(kept)][0])
                    his.restore(kept[which % len(kept)][1])
            case ("look", *_):
                looked(mine)
            case ("diff", _, other):
                _compare_difference(mine, ours[other % len(ours)])
            case _:
                assert _done(mine, one) == _done(his, one)
    for mine, his in zip(ours, plain, strict=True):
        assert content(mine.execute) == content(his.execute)
        assert mine.execute("PRAGMA integrity_check") == [("ok",)]
    return [one.world.db.digest() for one in ours]


def again(operations: Sequence[Operation]) -> list[str]:
    """Play on our worlds alone, without what only looks; the digests."""
    ours = [Ours(World(db=_start()))]
    kept: list[DatabaseSnapshot] = []
    for one in operations:
        mine = ours[one[1] % len(ours)]
        match one:
            case ("fork", *_):
                if len(ours) < WORLDS:
                    ours.append(mine.fork("copy"))
            case ("snapshot", *_):
                kept.append(mine.snapshot())
            case ("restore", _, which):
                if kept:
                    mine.restore(kept[which % len(kept)])
            case ("look" | "diff", *_):
                pass
            case _:
                _done(mine, one)
    return [one.world.db.digest() for one in ours]


def check(operations: Sequence[Operation]) -> None:
    """All that is promised of one history.

    Raises:
        AssertionError: It is not kept.
    """
    assert played(operations) == again(operations)


def check_seed(seed: int) -> None:
    """The same; what fails is said as the smallest history that fails."""
    operations = history(seed)
    try:
        check(operations)
    except Exception as error:
        small = smallest(operations)
        raise AssertionError(f"history {seed}, made smaller: {small!r}") from error


def smallest(operations: list[Operation]) -> list[Operation]:
    """Without what need not be there for it to fail."""
    place = 0
    while place < len(operations):
        fewer = operations[:place] + operations[place + 1 :]
        if fails(fewer):
            operations = fewer
        else:
            place += 1
    return operations


def fails(operations: Sequence[Operation]) -> bool:
    try:
        check(operations)
    except Exception:  # noqa: BLE001 (whatever goes wrong is what we look for)
        return True
    return False


def looked(mine: Ours) -> None:
    """Runs every operation that must leave no trace."""
    db = mine.world.db
    assert len(db.digest()) == len(db.logical_digest()) == 32
    assert db.image.logical == weigh_all(db.image)
    db.dump()
    db.ask("SELECT count(*) FROM item, words WHERE words MATCH 'many'")
    assert db.fork().digest() == db.digest()


def content(execute: Execute) -> dict[str, list[str]]:
    names = execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'words_%'")
    found = {name: sorted(map(repr, execute(f'SELECT * FROM "{name}"'))) for (name,) in names}
    found["search"] = sorted(map(repr, execute("SELECT rowid FROM words WHERE words MATCH 'item'")))
    return found


def keyed(execute: Execute) -> dict[tuple[str, Any], dict[str, Any]]:
    """Every row by table and key, found without the engine."""
    found: dict[tuple[str, Any], dict[str, Any]] = {}
    for (name,) in execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'words_%'"):
        columns = [row[0] for row in execute(f"SELECT name FROM pragma_table_info('{name}')")]
        key = {"item": "id", "part": "item, place"}.get(name, "rowid")
        width = key.count(",") + 1
        for row in execute(f'SELECT {key}, * FROM "{name}"'):
            found[name, tuple(row[:width])] = dict(zip(columns, row[width:], strict=True))
    return found


def applied(rows: dict[Any, Any], changes: list[RowChange]) -> dict[Any, Any]:
    rows = dict(rows)
    for change in changes:
        assert rows.get((change.table, change.key)) == change.before
        assert repr(change.before) != repr(change.after)
        if change.after is None:
            del rows[change.table, change.key]
        else:
            rows[change.table, change.key] = change.after
    return rows


def _done(one: Any, operation: Operation) -> Any:
    kind, _, *rest = operation
    return outcome(one.execute, *rest[0]) if kind == "run" else getattr(one, kind)(*rest)


def _compare_difference(one: Ours, other: Ours) -> None:
    before, after = keyed(one.execute), keyed(other.execute)
    found = applied(before, one.world.db.diff(other.world.db))
    assert {key: repr(row) for key, row in found.items()} == {key: repr(row) for key, row in after.items()}


def _fail_if(wanted: bool) -> None:
    if wanted:
        raise KeyError


@functools.cache
def base() -> Database:
    """Returns the database at the start of every history."""
    return Database(SCHEMA)


def _start() -> Database:
    return base().fork()
