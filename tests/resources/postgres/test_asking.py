"""SQL from somebody who must not be trusted, and who knows PostgreSQL well."""

from __future__ import annotations

import pytest

import quintain as qn
from quintain.resources.database import Database, Limits
from quintain.state import Shared
from tests.resources.postgres.shop import SEND, shop

HARMFUL = [
    # writes
    "DELETE FROM orders",
    "INSERT INTO customers VALUES (999, 'x') RETURNING id",
    "WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone",
    "SELECT * INTO stolen FROM orders",
    "CREATE TABLE stolen AS SELECT 1",
    "SELECT * FROM orders FOR UPDATE",
    "TRUNCATE orders",
    "SELECT nextval('main.orders_id_seq')",
    "SELECT setval('main.orders_id_seq', 1)",
    "SELECT lo_creat(-1)",
    "SELECT lo_from_bytea(0, 'x')",
    # more than a statement
    "SELECT 1; SELECT 2",
    "SELECT 1; COMMIT; DELETE FROM orders",
    "SELECT 1; RESET ROLE",
    # becoming somebody else
    "RESET ROLE",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION DEFAULT",
    "SELECT set_config('role', 'postgres', true)",
    "SELECT pg_catalog.set_config('quintain.who', '5', true)",
    "SELECT set_config('statement_timeout', '0', true)",
    "SELECT set_config('transaction_read_only', 'off', true)",
    # the server, its files and its other clients
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "COPY orders TO '/tmp/x'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_catalog.pg_read_binary_file('/etc/passwd')",
    "SELECT * FROM pg_ls_dir('.')",
    "SELECT pg_stat_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT dblink('host=localhost', 'SELECT 1')",
    "SELECT pg_sleep(5)",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT pg_cancel_backend(1)",
    "SELECT pg_reload_conf()",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_notify('a', 'b')",
    "SELECT pg_export_snapshot()",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT current_setting('data_directory')",
    "SELECT inet_server_port()",
    "SELECT version()",
    "SHOW data_directory",
    "EXPLAIN ANALYZE SELECT 1",
    "DO $$ BEGIN PERFORM pg_sleep(1); END $$",
    "LOAD 'x'",
    "LISTEN a",
    "DECLARE c CURSOR FOR SELECT 1",
    "FETCH ALL FROM asked",
    "PREPARE p AS SELECT 1",
    "LOCK TABLE orders",
    "CALL x()",
    # what the catalogue says
    "SELECT * FROM pg_class",
    "SELECT * FROM pg_catalog.pg_authid",
    "SELECT * FROM pg_stat_activity",
    "SELECT * FROM pg_settings",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_database",
    "SELECT pg_get_viewdef('main.orders'::regclass)",
    "SELECT * FROM quintain.reader",
    "SELECT * FROM quintain.base",
    # what would not answer the same twice
    "SELECT random()",
    "SELECT gen_random_uuid()",
    "SELECT quintain.draw()",
    "SELECT clock_timestamp() FROM pg_stat_activity",
    "SELECT pg_catalog.now()",
    "SELECT pg_catalog.clock_timestamp()",
    "SELECT 'now'::timestamptz",
    "SELECT xmin FROM orders",
    "SELECT txid_current()",
    # too much
    "SELECT repeat('x', 1000000000)",
    "SELECT lpad('x', 100000000)",
    "SELECT pg_catalog.repeat('x', 1000000000)",
    # no SQL
    "SELEC",
    "",
    ";",
    "-- nothing",
    "SELECT ?",
    "SELECT :x",
    "SELECT $1",
    "SELECT '",
    "SELECT 1 \0 2",
    "SELECT 1) AS x, (SELECT 2",
]


@pytest.fixture(scope="module")
def asked(url: str) -> Database:
    db = shop(url)
    db.bind(Shared())
    return db


@pytest.mark.parametrize("sql", HARMFUL)
@pytest.mark.parametrize("role", ["", "customer"])
def test_statements_other_than_a_harmless_select_are_refused(asked: Database, sql: str, role: str) -> None:
    before = asked.digest()
    with pytest.raises(qn.ToolError):
        asked.ask(sql, role=role, who=1, limits=Limits(seconds=3))
    assert asked.digest() == before
    assert asked.ask("SELECT count(*) FROM orders", role=role, who=1).rows == [[4 if role else 40]]


def test_nor_between_snapshots(asked: Database) -> None:
    """After a snapshot the world is in a transaction that may write."""
    db = asked.fork()
    db.execute(SEND, 1)
    start = db.snapshot()
    db.execute(SEND, 2)
    before = db.digest()
    for sql in HARMFUL:
        with pytest.raises(qn.ToolError):
            db.ask(sql, role="customer", who=1, limits=Limits(seconds=3))
    assert db.ask("SELECT count(*) FROM orders", role="customer", who=1).rows == [[4]]
    assert db.digest() == before
    db.execute(SEND, 3)
    db.restore(start)
    assert db.ask("SELECT count(*) FROM orders WHERE status = 'sent'").rows == [[1]]


def test_a_view_does_not_leak_through_errors(asked: Database) -> None:
    """A condition of the asker's is not tried on rows that the view hides."""
    sql = "SELECT id FROM orders WHERE 1 / (id - 1) IS NOT NULL"  # order 1 is of customer 2
    assert asked.ask(sql, role="customer", who=3).rows == [[2], [12], [22], [32]]
    with pytest.raises(qn.ToolError, match="division by zero"):
        asked.ask(sql, role="customer", who=2)


def test_function_who_compares_with_numbers_and_text(url: str) -> None:
    roles = {
        "one": {"t": "SELECT a FROM main.t WHERE a = who()"},
        "two": {"t": "SELECT b FROM main.t WHERE who() = b"},
        "three": {"t": "SELECT c FROM main.t WHERE c = who() AND who() IS NOT NULL"},
    }
    db = Database(
        "CREATE TABLE t (a BIGINT, b TEXT, c INTEGER); INSERT INTO t VALUES (5, '5', 5)", roles=roles, url=url
    )
    for role in roles:
        assert db.ask("SELECT count(*) FROM t", role=role, who=5).rows == [[1]]
        assert db.ask("SELECT count(*) FROM t", role=role, who="6").rows == [[0]]
        assert db.ask("SELECT count(*) FROM t", role=role).rows == [[0]]
        for other in roles.keys() - {role}:
            with pytest.raises(qn.ToolError, match="permission denied"):
                db.ask(f'SELECT * FROM "role {other}".t', role=role, who=5)
    assert db.ask("SELECT count(*) FROM t", role="two", who="5' OR '1'='1").rows == [[0]]
    with pytest.raises(qn.ToolError, match="bigint"):
        db.ask("SELECT count(*) FROM t", role="one", who="five")


def test_a_question_knows_the_worlds_time(asked: Database) -> None:
    db = asked.fork()
    shared = Shared()
    db.bind(shared)
    shared.clock.now = 90_000.0
    for sql in ("SELECT now()", "SELECT CURRENT_TIMESTAMP", "SELECT clock_timestamp()"):
        assert db.ask(sql).rows == [["1970-01-02 01:00:00+00:00"]]


def test_tables_that_are_made_later_can_be_read(asked: Database) -> None:
    db = asked.fork()
    db.execute("CREATE TABLE later (x INTEGER); INSERT INTO later VALUES (1)")
    assert db.ask("SELECT * FROM later").rows == [[1]]
    with pytest.raises(qn.ToolError):
        db.ask("SELECT * FROM main.later", role="customer")


def test_values_of_all_kinds_are_shown(asked: Database) -> None:
    sql = (
        """SELECT 1.5::numeric, 2::numeric, true, 'Infinity'::float8, DATE '2026-01-02', '{"b":1, "a":[1.5]}'::jsonb"""
    )
    assert asked.ask(sql).rows == [[1.5, 2, 1, "inf", "2026-01-02", '{"a":[1.5],"b":1}']]
    sql = "SELECT ARRAY[1,2], INTERVAL '1 day 2 hours', TIMESTAMPTZ '2026-01-02 03:04:05.5+02', 'x'::bytea"
    assert asked.ask(sql).rows == [["{1,2}", "P1DT2H", "2026-01-02 01:04:05.5+00:00", "x'78'"]]
