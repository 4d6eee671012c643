"""SQL from somebody who must not be trusted."""

from __future__ import annotations

from typing import Any

import pytest

import quintain as qn
from quintain.errors import UsageError
from quintain.resources.database import Database, Limits
from tests.resources.database.shop import shop

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(scope="module")
def db() -> Database:
    return shop()


def test_an_answer_has_columns_and_rows(db: Database) -> None:
    found = db.ask("SELECT id, status AS now, x'00ff' AS raw, 9e999 AS big FROM orders WHERE id < 3 ORDER BY id")
    assert found.columns == ["id", "now", "raw", "big"]
    assert found.rows == [[1, "open", "x'00ff'", "inf"], [2, "open", "x'00ff'", "inf"]]
    assert not found.is_cut
    assert db.ask("SELECT 1 WHERE 0").rows == []


def test_full_text_search_and_json_work(db: Database) -> None:
    assert db.ask("SELECT count(*) FROM notes WHERE notes MATCH 'number'").rows == [[400]]
    assert db.ask("SELECT value FROM json_each('[3]')").rows == [[3]]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM orders",
        "INSERT INTO customers VALUES (999, 'x')",
        "INSERT INTO customers VALUES (999, 'x') RETURNING id",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE x (y)",
        "DROP TABLE orders",
        "ATTACH '/etc/passwd' AS p",
        "PRAGMA user_version = 3",
        "PRAGMA table_info(orders)",
        "SELECT * FROM pragma_table_info('orders')",
        "BEGIN",
        "VACUUM",
        "ANALYZE",
        "REINDEX",
        "SELECT load_extension('x')",
        "SELECT random()",
        "SELECT randomblob(5)",
        "SELECT 1; SELECT 2",
        "SELECT 1; DELETE FROM orders",
        "SELEC",
        "SELECT zeroblob(1000000000)",
        "SELECT ?",
        "SELECT 1 \0 2",
        ENDLESS,
    ],
)
@pytest.mark.parametrize("role", ["", "customer"])
def test_what_is_no_harmless_select_is_refused(db: Database, sql: str, role: str) -> None:
    before = db.digest()
    with pytest.raises(qn.ToolError):
        db.ask(sql, role=role, who=1, limits=Limits(steps=100))
    assert db.digest() == before


def test_rows_and_characters_are_bounded(db: Database) -> None:
    found = db.ask("SELECT id FROM orders")
    assert (len(found.rows), found.is_cut) == (100, True)
    found = db.ask("SELECT hex(zeroblob(4000)) FROM orders")
    assert (len(found.rows), found.is_cut) == (2, True)
    assert db.ask("SELECT id FROM orders LIMIT 100").is_cut is False


def test_the_wall_clock_is_the_last_resort(db: Database) -> None:
    with pytest.raises(qn.ToolError, match="too long"):
        db.ask(ENDLESS, limits=Limits(steps=10**9, seconds=0.05))
    assert db.ask("SELECT 1").rows == [[1]]


def test_a_role_sees_its_views_and_nothing_else(db: Database) -> None:
    def ask(sql: str, who: Any = 3) -> list[list[Any]]:
        return db.ask(sql, role="customer", who=who).rows

    mine = db.execute("SELECT count(*) FROM orders WHERE customer = 3")[0][0]
    assert ask("SELECT count(*) FROM orders") == ask("SELECT count(*) FROM ORDERS AS o") == [[mine]]
    assert ask("SELECT count(*) FROM orders", who=None) == [[0]]
    assert ask("WITH a AS (SELECT id FROM orders) SELECT count(*) FROM a") == [[mine]]
    assert ask("SELECT max(o.id) - max(p.id) FROM orders o JOIN orders p USING (id), json_each('[1]')") == [[0]]
    for table in (
        "main.orders",
        "customers",
        "CUSTOMERS",
        "main.customers",
        "log",
        "notes",
        "notes_content",
        "busy",
        "sqlite_schema",
        "sqlite_master",
        "sqlite_temp_schema",
        "dbstat",
        "pragma_table_list",
    ):
        for what in ("*", "count(*)", "1"):
            with pytest.raises(qn.ToolError):
                ask(f"SELECT {what} FROM {table}")
    with pytest.raises(qn.ToolError, match="no such column: customer"):
        ask("SELECT customer FROM orders")


def test_an_unknown_role_is_the_callers_mistake(db: Database) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match=r"this database has \['customer'\]"):
            db.ask("SELECT 1", role="boss")


def test_a_role_follows_the_schema_of_each_branch(db: Database) -> None:
    twin = db.fork()
    twin.execute('DROP VIEW "customer.orders"; CREATE VIEW "customer.orders" AS SELECT id, note FROM main.orders')
    for _ in range(2):
        assert twin.ask("SELECT * FROM orders", role="customer").columns == ["id", "note"]
        assert twin.ask("SELECT count(*) FROM orders", role="customer").rows == [[400]]
        assert db.ask("SELECT * FROM orders", role="customer", who=1).columns == ["id", "status"]


def test_no_limit_outlives_its_question(db: Database) -> None:
    with pytest.raises(qn.ToolError):
        db.ask("SELECT hex(zeroblob(100))", limits=Limits(length=50))
    assert len(db.ask("SELECT hex(zeroblob(100))").rows[0][0]) == 200
