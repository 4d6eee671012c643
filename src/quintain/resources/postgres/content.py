"""Content of a world as a whole: digests, dumps, counters of its sequences.

The digest of a table is that of the digests of its rows, sorted: it does not depend on the order of the rows. A dump
names a template and holds the statements that changed its schema, the rows of the tables that differ from it, in their
physical order, and the sequences. The loaded content is compared with the digest in the dump.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import psycopg

from quintain import codec
from quintain.resources.database.bases import ImageError

from .session import PostgresSession, Row
from .sql import quoted

MARK = b"quintain postgres 1\n"
"""Every dump begins with it."""

Sequences = dict[str, tuple[int, bool]]
"""By name: the last value, and whether it was given already."""


class TableInfo(NamedTuple):
    """Name and columns of one table."""

    name: str
    """As people write it: without `main.`."""
    sql: str
    """As SQL writes it."""
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """Columns of the primary key; none where it has none."""
    is_view: bool
    """A materialised view."""


class Shape(NamedTuple):
    """Schema of a world."""

    tables: tuple[TableInfo, ...]
    sequences: tuple[str, ...]
    deferred: tuple[str, ...]
    """Constraints that are checked at the end of a transaction by default."""
    digest: str


class Facts(msgspec.Struct, frozen=True):
    """Knowledge about a world that needs no query.

    Attributes:
        log: Statements that changed the schema since the template, in order.
        draws: True if the schema draws random numbers, so any statement may.
    """

    log: tuple[str, ...] = ()
    draws: bool = False


class Dump(msgspec.Struct, frozen=True, array_like=True):
    """A world as data."""

    url: str
    template: str
    facts: Facts
    tables: tuple[tuple[str, bytes], ...]
    sequences: Sequences
    digest: str

    def pack(self) -> bytes:
        return MARK + codec.dumps(self)

    @classmethod
    def unpack(cls, data: bytes) -> Dump:
        try:
            return codec.loads(data.removeprefix(MARK), cls)
        except msgspec.DecodeError as error:
            raise ImageError(f"no dump of a database: {error}") from error


_TABLES = """
SELECT n.nspname, c.relname, c.relkind = 'm',
  (SELECT json_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a
   WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)::text,
  (SELECT json_agg(a.attname ORDER BY array_position(i.indkey::int2[], a.attnum)) FROM pg_index i
   JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
   WHERE i.indrelid = c.oid AND i.indisprimary)::text,
  format('%I.%I', n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname !~ '^(pg_|quintain)' AND n.nspname <> 'information_schema'
ORDER BY 1, 2
"""
_SEQUENCES = """
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND n.nspname !~ '^(pg_|quintain)' ORDER BY 1
"""
_DEFERRED = """
SELECT format('%I.%I', n.nspname, c.conname) FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
WHERE c.condeferred ORDER BY 1
"""
_SCHEMA = """
WITH space AS (
  SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^(pg_|quintain)' AND nspname <> 'information_schema'
), relation AS (
  SELECT c.oid, c.relkind, format('%I.%I', nspname, relname) AS name
  FROM pg_class c JOIN space n ON n.oid = relnamespace
)
SELECT concat_ws('|', kind, name, definition) FROM (
  SELECT 'relation ' || relkind::text AS kind, name,
         CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(oid) ELSE '' END AS definition
  FROM relation WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
  UNION ALL SELECT 'column', format('%s %s %s', name, attnum, attname),
    concat_ws('|', format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated, pg_get_expr(adbin, adrelid))
  FROM relation JOIN pg_attribute ON attrelid = relation.oid
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE relkind IN ('r', 'p', 'f') AND attnum > 0 AND NOT attisdropped
  UNION ALL SELECT 'constraint', format('%s %s', name, conname), pg_get_constraintdef(c.oid)
  FROM relation JOIN pg_constraint c ON conrelid = relation.oid
  UNION ALL SELECT 'index', name, pg_get_indexdef(oid) FROM relation WHERE relkind IN ('i', 'I')
  UNION ALL SELECT 'trigger', name, tgenabled::text || pg_get_triggerdef(t.oid)
  FROM relation JOIN pg_trigger t ON tgrelid = relation.oid WHERE NOT tgisinternal
  UNION ALL SELECT 'function', nspname, pg_get_functiondef(p.oid)
  FROM pg_proc p JOIN space n ON n.oid = pronamespace WHERE prokind IN ('f', 'p')
  UNION ALL SELECT 'sequence', name, concat_ws('|', seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcycle)
  FROM relation JOIN pg_sequence ON seqrelid = relation.oid
  UNION ALL SELECT 'enum', format('%I.%I', nspname, typname), string_agg(enumlabel, '|' ORDER BY enumsortorder)
  FROM pg_enum JOIN pg_type t ON t.oid = enumtypid JOIN space n ON n.oid = typnamespace GROUP BY 2
  UNION ALL SELECT 'type ' || typtype::text, format('%I.%I', nspname, typname), format_type(typbasetype, typtypmod)
  FROM pg_type t JOIN space n ON n.oid = typnamespace WHERE typtype IN ('d', 'r')
) AS definitions
"""


def shape(session: PostgresSession) -> Shape:
    """Returns the schema of a world."""
    tables = tuple(
        TableInfo(
            name if space == "main" else f"{space}.{name}",
            sql,
            tuple(json.loads(columns or "[]")),
            tuple(json.loads(key or "[]")),
            bool(is_view),
        )
        for space, name, is_view, columns, key, sql in session.engine(_TABLES)
    )
    sequences = tuple(name for (name,) in session.engine(_SEQUENCES))
    deferred = tuple(name for (name,) in session.engine(_DEFERRED))
    lines = sorted(line for (line,) in session.engine(_SCHEMA))
    return Shape(tables, sequences, deferred, codec.digest(codec.dumps(lines)))


def counters(names: Iterable[str]) -> str:
    """Returns the statement that reads all sequences; empty when there are none."""
    parts = (f"SELECT {quoted(name)}, last_value, is_called FROM {name}" for name in names)  # noqa: S608
    return " UNION ALL ".join(parts)


def sequences(session: PostgresSession, shape: Shape) -> Sequences:
    """Returns the state of each sequence."""
    text = counters(shape.sequences)
    return counted(session.engine(text)) if text else {}


def counted(rows: Iterable[Row]) -> Sequences:
    return {name: (last, bool(called)) for name, last, called in rows}


def rewind(session: PostgresSession, before: Sequences, now: Sequences) -> None:
    """Sets the sequences that moved, since ROLLBACK does not."""
    for name, (last, called) in before.items():
        if name in now and now[name] != (last, called):
            session.engine("SELECT setval($1::regclass, $2, $3)", [name, last, called])


def digests(session: PostgresSession, shape: Shape) -> dict[str, str]:
    """Returns the digest of each table's rows."""
    parts: list[str] = [
        f"SELECT {number}, encode(sha256(coalesce(string_agg(h, '' ORDER BY h), '')), 'hex') FROM"  # noqa: S608
        f' (SELECT sha256(convert_to("the row"::text, \'UTF8\')) AS h FROM ONLY {table.sql} AS "the row") AS hashes'
        for number, table in enumerate(shape.tables)
    ]
    found = session.engine(" UNION ALL ".join(parts)) if parts else []
    return {shape.tables[int(row[0])].name: str(row[1]) for row in found}


def name_of(shape: Shape, tables: dict[str, str], counted: Sequences) -> str:
    """Returns the digest of a whole world: 32 hex digits."""
    return codec.digest(codec.dumps((shape.digest, tables, counted)))


def rows(session: PostgresSession, table: TableInfo) -> list[dict[str, Any]]:
    """Returns all rows, as they lie."""
    found = session.engine(f"SELECT * FROM ONLY {table.sql}")  # noqa: S608
    return [dict(zip(table.columns, row, strict=True)) for row in found]


def out(session: PostgresSession, table: TableInfo) -> bytes:
    """Returns the rows of a table in PostgreSQL's own form."""
    what = f"(SELECT * FROM {table.sql})" if table.is_view else table.sql  # noqa: S608
    try:
        with session.connection.cursor().copy(f"COPY {what} TO STDOUT".encode()) as copy:
            return b"".join(bytes(piece) for piece in copy)
    except psycopg.Error as error:
        raise session.mapped(error) from error


def fill(session: PostgresSession, dump: Dump) -> Shape:
    """Fills a copy of the template, or a shared world, with a dump. Needs a transaction that may write.

    Raises:
        ImageError: The result differs from the dump.
    """
    session.engine("SET LOCAL session_replication_role = replica")  # triggers and foreign keys have done their work
    before = shape(session)
    if dump.facts.log:
        everything = ", ".join(table.sql for table in before.tables if not table.is_view)
        if everything:
            session.engine(f"TRUNCATE {everything}")
        for statement in dump.facts.log:
            session.engine(statement)
    now = shape(session) if dump.facts.log else before
    tables = {table.name: table for table in now.tables}
    for name, data in dump.tables:
        table = tables.get(name)
        if table is None:
            raise ImageError(f"a dump with rows of {name!r}, which its schema does not have")
        session.engine(f"DELETE FROM ONLY {table.sql}")  # noqa: S608
        try:
            with session.connection.cursor().copy(f"COPY {table.sql} FROM STDIN".encode()) as copy:
                copy.write(data)
        except psycopg.Error as error:
            raise session.mapped(error) from error
    for table in now.tables:
        if table.is_view and (dump.facts.log or dump.tables):
            session.engine(f"REFRESH MATERIALIZED VIEW {table.sql}")
    rewind(session, dump.sequences, sequences(session, now))
    session.engine("SET LOCAL session_replication_role = origin")
    found = name_of(now, digests(session, now), sequences(session, now))
    if found != dump.digest:
        raise ImageError(f"what was dumped as {dump.digest} became {found}: its schema depends on its data")
    return now


def reverse(dump: Dump) -> Dump:
    """Returns the same rows, lying the other way round."""
    tables = tuple((name, b"".join(reversed(data.splitlines(keepends=True)))) for name, data in dump.tables)
    return msgspec.structs.replace(dump, tables=tables)
