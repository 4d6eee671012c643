"""Fills the tables of the company with rows: many, plausible, and here and there as untidy as such data is."""

from __future__ import annotations

import functools
import hashlib
import re
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from quintain.resources.database import Database
from quintain.state import Rng

from .description import FOLDER, Column, Company, TableSpec, company

TODAY = date(2025, 6, 2)
"""The day on which the seed ends, a Monday."""
OPENING = datetime(2025, 6, 2, 8, 0, tzinfo=UTC).timestamp()
"""Begin of the first working day, seconds since 1970."""

_BLANK = re.compile(r"\{(\w+)\}")
_EMPTY = 30
"""Percent of the optional values that are missing."""


def fill(db: Database) -> None:
    """Fill every table, then let the rows agree with each other."""
    whole = company()
    for table in whole.tables.values():
        if not table.is_settled:
            _Filler(whole, table).fill(db)
    for sql in whole.settle:
        db.execute(sql)


@functools.cache
def pools() -> dict[str, list[str]]:
    """Words by the name of their pool; in them, `{pool}` stands for a word of another one and `{n}` for a number."""
    parsed: dict[str, list[str]] = tomllib.loads((FOLDER / "pools.toml").read_text("utf-8"))
    return parsed | {"roles": list(company().roles), "role_meanings": list(company().roles.values())}


def day(offset: int) -> str:
    """A date so many days from the seed's last one."""
    return (TODAY + timedelta(days=offset)).isoformat()


class _Filler:
    """Rows of one table, from a random stream of its own: another table's change does not move them."""

    def __init__(self, whole: Company, table: TableSpec) -> None:
        self._whole = whole
        self._table = table
        self._rng = Rng(key=hashlib.blake2b(table.name.encode(), digest_size=16).digest())
        self._taken: set[str] = set()
        self._sets: list[set[tuple[Any, ...]]] = [set() for _ in table.unique]
        self._number = 0

    def fill(self, db: Database) -> None:
        table = self._table
        names = ", ".join(f'"{name}"' for name in table.columns)
        marks = ", ".join("?" * len(table.columns))
        sql = f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})'  # noqa: S608 (names of the description)
        for number in range(1, table.rows + 1):
            self._number = number
            db.execute(sql, *self._row())

    def _row(self) -> list[Any]:
        for _ in range(1000):
            row = {column.name: self._value(column) for column in self._table.columns.values()}
            keys = [tuple(row[name] for name in names) for names in self._table.unique]
            if all(key not in seen for key, seen in zip(keys, self._sets, strict=True)):
                for key, seen in zip(keys, self._sets, strict=True):
                    seen.add(key)
                return list(row.values())
        raise ValueError(f"no {self._number}th row of {self._table.name} is left that differs in {self._table.unique}")

    def _value(self, column: Column) -> Any:
        if column.is_optional and not column.in_turn and self._rng.below(100) < _EMPTY:
            return None
        return _MAKE[column.kind](self, column)

    def reference(self, column: Column) -> int:
        count = self._whole.tables[column.table].rows
        if column.in_turn:
            return (self._number - 1) % count + 1
        return self._rng.below(count) + 1

    def number(self, column: Column) -> int:
        drawn = column.low + self._rng.below(max(1, column.high - column.low + 1))
        # Few amounts are large, and people like round ones.
        if column.kind == "money" and column.high > 1000:
            drawn = column.low + (drawn - column.low) * self._rng.below(1000) // 1000
            drawn -= drawn % 10 if drawn > column.low + 100 else 0
        return drawn

    def date(self, column: Column) -> str:
        return day(column.low + self._rng.below(max(1, column.high - column.low + 1)))

    def time(self, column: Column) -> str:
        seconds = OPENING - self._rng.below(500 * 86400)
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="minutes")[:16]

    def option(self, column: Column) -> str:
        if column.in_turn:
            return column.options[(self._number - 1) % len(column.options)]
        place = self._rng.below(sum(column.shares))
        for option, share in zip(column.options, column.shares, strict=True):
            place -= share
            if place < 0:
                return option
        raise AssertionError("the shares add up")

    def text(self, column: Column) -> str:
        if column.in_turn:
            words = pools()[column.pool]
            return words[(self._number - 1) % len(words)]
        for attempt in range(1000):
            drawn = self._words(column.pool or self._table.name)
            if attempt > 20:
                drawn = f"{drawn} {self._number}"
            if drawn.casefold() not in self._taken or not (column.is_unique or column.name == self._table.label):
                self._taken.add(drawn.casefold())
                return drawn
        raise ValueError(f"pool {column.pool!r} has too few words for {self._table.name}")

    def note(self, column: Column) -> str:
        return _untidy(self._words(column.pool or "notes"), self._rng)

    def _words(self, pool: str) -> str:
        template = self._rng.choice(pools()[pool])
        return _BLANK.sub(lambda match: self._blank(match[1]), template)

    def _blank(self, pool: str) -> str:
        if pool == "n":
            return str(self._rng.below(9000) + 1000)
        if pool == "i":
            return str(self._number)
        return self._words(pool)


def _untidy(text: str, rng: Rng) -> str:
    """As people type."""
    match rng.below(12):
        case 0:
            return text.lower()
        case 1:
            return f" {text} "
        case 2:
            place = rng.below(max(1, len(text) - 1))
            return text[:place] + text[place + 1 :]
        case 3:
            return f"{text} !!"
        case _:
            return text


_MAKE: dict[str, Callable[[_Filler, Column], Any]] = {
    "ref": _Filler.reference,
    "money": _Filler.number,
    "count": _Filler.number,
    "int": _Filler.number,
    "signed": _Filler.number,
    "date": _Filler.date,
    "time": _Filler.time,
    "state": _Filler.option,
    "one": _Filler.option,
    "flag": lambda filler, column: int(filler.number(Column(name="", kind="int", low=1, high=100)) <= column.high),
    "text": _Filler.text,
    "note": _Filler.note,
}
