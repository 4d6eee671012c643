"""Untrusted SQL: one SELECT, as a role of the server that may only read its views.

The statement becomes a cursor, so that the server itself checks that it is one query, in a read-only transaction, under
a role that cannot become another one: functions that could change it (`set_config`, and all that do more than compute)
may not be called in a world's database, and a second statement is refused.
"""

from __future__ import annotations

import math
import time
from typing import Any

import psycopg

from quintain.errors import ToolError, UsageError
from quintain.resources.database import ConstraintError, Limits, QueryAnswer, Refused, SQLError, rows
from quintain.resources.database.readonly import Asker

from . import sql as language
from .lease import Lease
from .seeding import view_schema
from .session import PostgresSession, WritesError

_QUERIES = {"select", "values", "with", "table"}
_HIDDEN = {"xmin", "xmax", "cmin", "cmax", "ctid", "tableoid"}
_BATCH = 10


def ask(held: Lease, text: str, asker: Asker) -> QueryAnswer:
    """Implements the method `Database.ask`."""
    try:
        parsed = language.parse(text)
    except Refused as error:
        raise ToolError(str(error)) from error
    if len(parsed) != 1:
        raise ToolError("one statement at a time" if parsed else "only a SELECT may be asked")
    (one,) = parsed
    if one.kind not in _QUERIES:
        raise ToolError("only a SELECT may be asked")
    if one.slots:
        raise ToolError("a question has no placeholders")
    for word in sorted(one.words & (_HIDDEN | language.CHANCE)):
        raise ToolError(f"{word} would not answer the same twice")

    def use(session: PostgresSession) -> QueryAnswer:
        session.attune(held.world, draws=False)
        reader = _reader(session, asker)
        try:
            _become(session, reader, asker, is_inside=held.tail is not None)
            return _fetched(session, one.text, asker.limits)
        except (SQLError, ConstraintError, Refused, WritesError, ValueError) as error:
            if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
                raise ToolError("this takes too long: ask for less, or by an indexed column") from error
            raise ToolError(f"SQL: {error}") from error
        finally:
            if not session.connection.closed:
                session.engine("ROLLBACK TO asked; RELEASE asked" if held.tail else "ROLLBACK")
                session.forget()

    return held.read(use)


def _reader(session: PostgresSession, asker: Asker) -> str:
    """Returns the server's role.

    Raises:
        UsageError: The database does not have the role.
    """
    if not asker.role:
        return "quintain_reader_0"
    known: dict[str, str] = dict(session.engine("SELECT role, name FROM quintain.reader"))
    if asker.role not in known:
        raise UsageError(f"no role {asker.role!r}; this database has {sorted(known)}")
    return known[asker.role]


def _become(session: PostgresSession, reader: str, asker: Asker, *, is_inside: bool) -> None:
    first = f"{rows.quoted(view_schema(asker.role))}" if asker.role else "main, public"
    who = "" if asker.who is None else str(asker.who)
    session.engine(
        ("SAVEPOINT asked; SET LOCAL transaction_read_only = on; " if is_inside else "BEGIN READ ONLY; ")
        + f"SELECT set_config('quintain.who', {language.quoted(who)}, true); "
        + f"SET LOCAL search_path = {first}, quintain_ask, quintain, pg_catalog; "
        + f"SET LOCAL statement_timeout = {max(round(asker.limits.seconds * 1000), 1)}; "
        + f'SET LOCAL ROLE "{reader}"'
    )


def _fetched(session: PostgresSession, text: str, limits: Limits) -> QueryAnswer:
    end = time.monotonic() + limits.seconds
    session.alone(f"DECLARE asked NO SCROLL CURSOR FOR {text}")
    columns: list[str] = []
    found: list[list[Any]] = []
    characters = 0
    while True:
        names, batch = session.fetched(f"FETCH FORWARD {_BATCH} FROM asked")
        columns = columns or (names if batch else [])
        for row in batch:
            lengths = [len(value) for value in row if isinstance(value, str | bytes)]
            if max(lengths, default=0) > limits.length:
                raise ValueError("string or blob too big")
            characters += sum(lengths)
            if len(found) == limits.rows or characters > limits.characters:
                return QueryAnswer(columns, found, is_cut=True)
            found.append([_shown(value) for value in row])
        if len(batch) < _BATCH:
            return QueryAnswer(columns, found)
        if time.monotonic() > end:
            raise ToolError("this takes too long: ask for less, or by an indexed column")


def _shown(value: Any) -> Any:
    """JSON has no bytes, and no infinities."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
