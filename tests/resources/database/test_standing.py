"""Answers that are remembered are those that a query gives, whatever was written in the meantime."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.resources.database import Database
from quintain.resources.database.standing import MOST, known

SCHEMA = """
CREATE TABLE rule (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE log (id INTEGER PRIMARY KEY, rule INTEGER, body TEXT NOT NULL);
CREATE INDEX log_rule ON log (rule);
"""
QUERIES = (
    "SELECT id, body FROM rule ORDER BY id",
    "SELECT count(*), max(length(body)) FROM rule",
    "SELECT r.id, count(l.id) FROM rule r LEFT JOIN log l ON l.rule = r.id GROUP BY 1 ORDER BY 1",
)
# A long text has overflow pages, which another one of the same length overwrites in place.
BODY = st.sampled_from(["short", "a" * 3000, "b" * 3000, "a" * 2999 + "b", "c" * 900])
WRITES = st.one_of(
    st.tuples(st.just("UPDATE rule SET body = ? WHERE id = ?"), BODY, st.integers(1, 12)),
    st.tuples(st.just("INSERT OR REPLACE INTO rule (body, id) VALUES (?, ?)"), BODY, st.integers(1, 40)),
    st.tuples(st.just("DELETE FROM rule WHERE ? <> '' AND id = ?"), BODY, st.integers(1, 12)),
    st.tuples(st.just("INSERT INTO log (body, rule) VALUES (?, ?)"), BODY, st.integers(1, 12)),
)


def seed(db: Database) -> None:
    for number in range(1, 11):
        db.execute("INSERT INTO rule VALUES (?, ?)", number, "a" * (3000 if number % 3 == 0 else 300))
        db.execute("INSERT INTO log (rule, body) VALUES (?, 'x')", number)


def check(*databases: Database) -> None:
    for db in databases:
        for sql in QUERIES:
            assert known(db, sql) == db.execute(sql)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), WRITES, st.booleans()), max_size=12))
def test_remembered_rows_are_those_of_the_query(history: list[tuple[int, tuple[str, str, int], bool]]) -> None:
    base = Database(SCHEMA, seed=seed)
    forks = [base, base.fork(), base.fork()]
    check(*forks)
    for place, (sql, *values), is_watched in history:
        db = forks[place]
        with db.transaction():
            check(db)
            db.execute(sql, *values)
            if is_watched:
                check(db)
        check(*forks)
        forks[(place + 1) % 3] = db.fork()


def test_fork_whose_rules_are_those_of_the_base_asks_nothing() -> None:
    base = Database(SCHEMA, seed=seed)
    before = known(base, QUERIES[0])
    fork = base.fork()
    fork.execute("INSERT INTO log (rule, body) VALUES (1, 'y')")
    assert known(fork, QUERIES[0]) is before
    fork.execute("UPDATE rule SET body = 'z' WHERE id = 1")
    assert known(fork, QUERIES[0])[0] == (1, "z")
    assert known(base, QUERIES[0]) is before


def test_new_table_or_column_is_seen() -> None:
    base = Database(SCHEMA, seed=seed)
    assert known(base, "SELECT * FROM log WHERE id = 1") == [(1, 1, "x")]
    fork = base.fork()
    fork.execute("ALTER TABLE log ADD COLUMN more TEXT")
    assert known(fork, "SELECT * FROM log WHERE id = 1") == [(1, 1, "x", None)]
    fork.execute("DROP TABLE log")
    fork.execute("CREATE TABLE log (id INTEGER PRIMARY KEY)")
    assert known(fork, "SELECT * FROM log WHERE id = 1") == []


def test_memory_of_a_base_is_bounded() -> None:
    base = Database(SCHEMA, seed=seed)
    for number in range(MOST + 10):
        known(base, "SELECT body FROM rule WHERE id = ?", number)
    assert len(base.image.base.answers) <= MOST
