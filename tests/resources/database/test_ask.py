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
def test_statements_other_than_a_harmless_select_are_refused(db: Database, sql: str, role: str) -> None:
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


# -- what a role must not get round

SEARCH = """
CREATE VIRTUAL TABLE notes USING fts5(body, owner UNINDEXED); CREATE TABLE secret (x); INSERT INTO secret VALUES ('s');
INSERT INTO notes VALUES ('red apple', 1), ('green apple', 2), ('red pear', 2), ('red red cherry', 2);
"""
VIEWS = {
    "reader": {"notes": "SELECT rowid AS id, body, notes, rank FROM main.notes WHERE owner = who()"},
    'it\'s "me"': {"a`b'c\"d": "SELECT body FROM main.notes"},
}


@pytest.fixture(scope="module")
def search() -> Database:
    return Database(SEARCH, roles=VIEWS)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT body FROM notes ORDER BY id", [["green apple"], ["red pear"], ["red red cherry"]]),
        ("SELECT count(*) FROM notes", [[3]]),
        ("SELECT id FROM notes WHERE notes MATCH 'red' ORDER BY rank", [[4], [3]]),
        ("SELECT id FROM notes WHERE notes MATCH 'red' ORDER BY bm25(notes) DESC", [[3], [4]]),
        ("SELECT snippet(notes, 0, '[', ']', '..', 5) FROM notes WHERE notes MATCH 'pear'", [["red [pear]"]]),
        ("WITH red AS (SELECT id FROM notes WHERE notes MATCH 'red') SELECT count(*) FROM red", [[2]]),
        ("SELECT a.id FROM notes a JOIN notes b USING (id) WHERE b.notes MATCH 'cherry'", [[4]]),
    ],
)
def test_a_role_searches_what_it_sees(search: Database, sql: str, rows: list[Any]) -> None:
    for _ in range(2):
        assert search.ask(sql, role="reader", who=2).rows == rows
        assert search.fork().ask("SELECT count(*) FROM notes", role="reader", who=1).rows == [[1]]


def test_a_role_searches_in_every_branch(search: Database) -> None:
    twin = search.fork()
    twin.execute("INSERT INTO notes VALUES ('red plum', 2); CREATE TABLE more (x)")
    for _ in range(2):
        for one, count in ((search, 2), (twin, 3)):
            found = one.ask("SELECT count(*) FROM notes WHERE notes MATCH 'red'", role="reader", who=2)
            assert found.rows == [[count]]
    assert search.ask("SELECT * FROM [a`b'c\"d]", role='it\'s "me"').rows[0] == ["red apple"]


SPOOFS = [
    'WITH "reader.notes" AS (SELECT x FROM main.secret) SELECT * FROM "reader.notes"',
    "WITH [reader.notes](x) AS (SELECT x FROM main.secret) SELECT * FROM `reader.notes`",
    "WITH 'reader.notes' AS (SELECT x FROM main.secret) SELECT * FROM 'reader.notes'",
    'SELECT (WITH /* \' */ "reader.notes" AS (SELECT x FROM secret) SELECT x FROM [reader.notes]) FROM notes',
    'WITH RECURSIVE "reader.notes"(x) AS (SELECT 1 UNION SELECT x FROM secret) SELECT * FROM "reader.notes"',
    'SELECT * FROM (SELECT x FROM secret) AS "reader.notes"',
    "WITH notes AS (SELECT x FROM main.secret) SELECT * FROM notes",
    "WITH notes_content AS (SELECT x FROM main.secret) SELECT * FROM notes_content",
    "WITH json_each AS (SELECT x FROM main.secret) SELECT * FROM json_each",
    "SELECT * FROM notes; SELECT * FROM secret",
    "SELECT * FROM notes; SELECT * FROM notes_content",
    "SELECT * FROM main.notes('red')",
    "SELECT * FROM notes WHERE body IN (SELECT c0 FROM notes_content)",
    "SELECT * FROM notes WHERE body IN (SELECT x FROM secret)",
    "SELECT * FROM notes UNION SELECT x, x, x, x FROM secret",
    "SELECT max((SELECT x FROM main.secret)) FROM notes WHERE notes MATCH 'red'",
    "SELECT count(*) FROM secret",
    "SELECT 1 FROM main.notes",
    *(f"SELECT * FROM notes_{shadow}" for shadow in ("content", "data", "idx", "docsize", "config")),
    *(f"SELECT count(*) FROM main.notes_{shadow}" for shadow in ("content", "data", "idx", "docsize", "config")),
]


@pytest.mark.parametrize("sql", SPOOFS)
def test_a_role_does_not_get_round_its_views(search: Database, sql: str) -> None:
    for _ in range(2):  # the second time full-text search has prepared what it needs
        search.ask("SELECT * FROM notes WHERE notes MATCH 'red' ORDER BY rank", role="reader", who=2)
        with pytest.raises(qn.ToolError):
            search.ask(sql, role="reader", who=2)


def test_quotes_in_names_hide_no_view(search: Database) -> None:
    for spelled in ('"it\'s ""me"".a`b\'c""d"', "'it''s \"me\".a`b''c\"d'", '`it\'s "me".a``b\'c"d`'):
        with pytest.raises(qn.ToolError, match="no such table"):
            search.ask(f"WITH {spelled} AS (SELECT x FROM secret) SELECT * FROM {spelled}", role='it\'s "me"', who=2)
