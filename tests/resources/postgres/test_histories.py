"""Random histories of writes, snapshots, restores and forks: PostgreSQL ends where SQLite ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quintain.resources.database import ConstraintError, Database, SQLError
from tests.resources.postgres.shop import Customer, Order

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # to shrink a history takes minutes
NUMBERS = st.integers(1, 14)
NOTES = st.sampled_from([None, "a", "b", "ß\n"])
AUDIT = "CREATE TABLE audit (id INTEGER PRIMARY KEY, what TEXT); CREATE INDEX by_what ON audit (what)"
QUERIES = (
    "SELECT id, customer, status, tags, note FROM orders ORDER BY id",
    "SELECT id, name FROM customers ORDER BY id",
    "SELECT id, what FROM audit ORDER BY id",
    "SELECT x FROM extra ORDER BY x",
)
Statement = tuple[str, tuple[Any, ...]]


def statements() -> st.SearchStrategy[Statement]:
    """SQL and values; some break a constraint, some are wrong."""
    one = st.tuples
    return st.one_of(
        one(st.just("INSERT INTO orders (customer, note) VALUES (?, ?)"), one(NUMBERS, NOTES)),
        one(st.just("UPDATE orders SET note = ? WHERE id = ?"), one(NOTES, NUMBERS)),
        one(st.just("UPDATE orders SET status = ? WHERE customer = ?"), one(st.sampled_from(["sent", "?"]), NUMBERS)),
        one(st.just("INSERT INTO customers VALUES (?, ?)"), one(NUMBERS, st.just("new"))),
        one(st.just("DELETE FROM customers WHERE id = ?"), one(NUMBERS)),
        one(st.just("INSERT INTO audit VALUES (?, ?)"), one(NUMBERS, st.just("done"))),
        one(st.just("INSERT INTO orders (customer) VALUES (1), (?)"), one(NUMBERS)),
        one(st.sampled_from(["CREATE TABLE extra (x INTEGER)", "DROP TABLE extra"]), one()),
        one(st.just("INSERT INTO extra VALUES (?)"), one(NUMBERS)),
        one(st.just("SELECT count(*) FROM orders WHERE status = ? AND customer < ?"), one(st.just("open"), NUMBERS)),
    )


def outcome(db: Database, sql: str, values: tuple[Any, ...]) -> Any:
    try:
        return db.execute(sql, *values)
    except ConstraintError:
        return "constraint"
    except SQLError:
        return "wrong"


def fail(*, really: bool) -> None:
    if really:
        raise KeyError


def fill(db: Database) -> None:
    for number in range(1, 6):
        db.insert(Customer(number, f"c{number}"), Order(number, number))


class Histories(RuleBasedStateMachine):
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.worlds: list[tuple[Database, Database]] = []
        self.kept: list[tuple[Any, Any]] = []

    @initialize()
    def begin(self) -> None:
        self.worlds = [
            (
                Database(Customer, Order, AUDIT, seed=fill, url=self.url),
                Database(Customer, Order, AUDIT, seed=fill),
            )
        ]

    def pick(self, data: st.DataObject) -> int:
        return data.draw(st.integers(0, len(self.worlds) - 1), label="world")

    @rule(data=st.data(), statement=statements())
    def run(self, data: st.DataObject, statement: Statement) -> None:
        ours, reference = self.worlds[self.pick(data)]
        assert outcome(ours, *statement) == outcome(reference, *statement)

    @rule(data=st.data(), several=st.lists(statements(), min_size=1, max_size=4), fails=st.sampled_from([0, 1, 2]))
    def transact(self, data: st.DataObject, several: list[Statement], fails: int) -> None:
        """Both levels succeed, the inner one fails, or both do."""
        for db in self.worlds[self.pick(data)]:
            try:
                with db.transaction():
                    outcome(db, *several[0])
                    with db.transaction():
                        for statement in several[1:]:
                            outcome(db, *statement)
                        fail(really=fails == 1)
                    fail(really=fails == 2)
            except KeyError:
                continue

    @precondition(lambda self: len(self.worlds) < 4)
    @rule(data=st.data(), through=st.sampled_from(["fork", "dump"]))
    def fork(self, data: st.DataObject, through: str) -> None:
        pair = self.worlds[self.pick(data)]
        ours, reference = (one.fork() if through == "fork" else Database.load(one.dump()) for one in pair)
        assert ours.digest() == pair[0].digest()
        self.worlds.append((ours, reference))

    @precondition(lambda self: len(self.worlds) > 1)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        del self.worlds[self.pick(data)]

    @rule(data=st.data())
    def snapshot(self, data: st.DataObject) -> None:
        ours, reference = self.worlds[self.pick(data)]
        self.kept.append((ours.snapshot(), reference.snapshot()))

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), forgets=st.booleans())
    def restore(self, data: st.DataObject, forgets: bool) -> None:
        number = data.draw(st.integers(0, len(self.kept) - 1), label="snapshot")
        for db, snapshot in zip(self.worlds[self.pick(data)], self.kept[number], strict=True):
            db.restore(snapshot)
        if forgets:
            del self.kept[number]

    @rule(data=st.data())
    def differ(self, data: st.DataObject) -> None:
        one, other = self.worlds[self.pick(data)], self.worlds[self.pick(data)]
        keyed = {"orders", "customers", "audit"}
        ours, reference = ([c for c in a.diff(b) if c.table in keyed] for a, b in zip(one, other, strict=True))
        assert ours == reference

    @invariant()
    def same(self) -> None:
        for ours, reference in self.worlds:
            for sql in QUERIES:
                assert outcome(ours, sql, ()) == outcome(reference, sql, ())
        digests = [ours.digest() for ours, _ in self.worlds]
        for (one, _), digest in zip(self.worlds, digests, strict=True):
            assert one.digest() == digest

    def teardown(self) -> None:
        self.worlds.clear()
        self.kept.clear()


def of(examples: int, steps: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=slow, phases=PHASES
    )


def check(url: str, examples: int, steps: int) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    class Here(Histories):
        pass

    Here.url = url
    run_state_machine_as_test(Here, settings=of(examples, steps))


def test_histories(url: str) -> None:
    check(url, 6, 12)


@pytest.mark.slow
def test_many_histories(url: str) -> None:
    check(url, 300, 25)
