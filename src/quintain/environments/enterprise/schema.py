"""From the description to SQL: strict tables, foreign keys, indexes, and the base image of the company."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from quintain.resources.database import Database

from .description import Column, Company, TableSpec, company
from .seeding import fill

_TYPES = {"money": "INTEGER", "count": "INTEGER", "int": "INTEGER", "signed": "INTEGER", "flag": "INTEGER"}


@functools.cache
def base() -> Database:
    """The company before anything happened; built once on a machine, then mapped."""
    return Database(f"-- {_recipe()}\n{schema(company())}", seed=fill)


def schema(whole: Company) -> str:
    """All CREATE statements."""
    return "\n".join(_create(table) for table in whole.tables.values())


def _create(table: TableSpec) -> str:
    lines = ["id INTEGER PRIMARY KEY", *(_column(column) for column in table.columns.values())]
    lines += [
        f'FOREIGN KEY ("{column.name}") REFERENCES "{column.table}" (id) DEFERRABLE INITIALLY DEFERRED'
        for column in table.columns.values()
        if column.kind == "ref"
    ]
    lines += [f"UNIQUE ({', '.join(names)})" for names in table.unique]
    lines += [f"CHECK ({check})" for check in table.checks]
    statements = ['CREATE TABLE "{}" (\n  {}\n) STRICT;'.format(table.name, ",\n  ".join(lines))]
    for column in table.columns.values():
        is_label = column.name == table.label
        if column.kind == "ref" or is_label:
            order = " COLLATE NOCASE" if is_label else ""
            index = f'"{table.name}_{column.name}"'
            statements.append(f'CREATE INDEX {index} ON "{table.name}" ("{column.name}"{order});')
    return "\n".join(statements)


def _column(column: Column) -> str:
    words = [f'"{column.name}"', "INTEGER" if column.kind == "ref" else _TYPES.get(column.kind, "TEXT")]
    if not column.is_optional:
        words.append("NOT NULL")
    if column.is_unique:
        words.append("UNIQUE")
    if column.options:
        words.append(f'CHECK ("{column.name}" IN ({", ".join(f"{option!r}" for option in column.options)}))')
    elif column.kind == "flag":
        words.append(f'CHECK ("{column.name}" IN (0, 1))')
    elif column.kind in {"money", "count", "int"}:
        words.append(f'CHECK ("{column.name}" >= 0)')
    return " ".join(words)


def _recipe() -> str:
    """Names the sources of the seed, for the cache considers only the schema and the module of `fill`."""
    here = Path(__file__).parent
    texts = [path.read_bytes() for path in sorted(here.glob("company/*.toml"))]
    texts += [(here / f"{name}.py").read_bytes() for name in ("description", "seeding")]
    return hashlib.blake2b(b"\0".join(texts), digest_size=16).hexdigest()
