"""One world that several processes see, and that outlives them."""

from __future__ import annotations

import subprocess
from collections.abc import Generator

import pytest

import quintain as qn
from quintain.errors import UsageError
from quintain.resources import postgres
from quintain.resources.database import Database, Refused, SQLError
from quintain.state import Shared
from tests.resources.postgres.shop import LOG, ROLES, SEND, Customer, Order, Shop, fill, status
from tests.resources.postgres.test_server import elsewhere, image

NAME = "office"


def office(url: str) -> Database:
    db = Database(Customer, Order, LOG, seed=fill, roles=ROLES, url=url, shared=NAME)
    db.bind(Shared())
    return db


OPEN = "from tests.resources.postgres.test_shared import office; db = office(sys.argv[1])\n"


@pytest.fixture
def shared(url: str) -> Generator[Database, None, None]:
    db = office(url)
    yield db
    assert isinstance(db, postgres.PostgresDatabase)
    db.remove()


def ran(process: subprocess.Popen[str], said: str = "") -> str:
    out, _ = process.communicate(said)
    assert process.returncode == 0
    return out.strip()


def test_processes_see_each_others_commits_and_it_outlives_them(shared: Database, url: str) -> None:
    before = shared.digest()
    code = OPEN + "print(db.insert(Order(None, 1)), status(db, 7)); db.execute(SEND, 8)\n"
    shared.execute(SEND, 7)
    assert ran(elsewhere(code, url)) == "41 sent"
    assert (status(shared, 8), shared.insert(Order(None, 2))) == ("sent", 42)
    assert shared.digest() != before
    assert ran(elsewhere(OPEN + "print(db.digest())", url)) == shared.digest() == office(url).digest()


def test_uncommitted_writes_are_invisible_to_others(shared: Database, url: str) -> None:
    code = OPEN + "print(status(db, 1)); sys.stdout.flush(); sys.stdin.read(); print(status(db, 1))"
    with shared.transaction():
        shared.execute(SEND, 1)
        process = elsewhere(code, url)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
    assert ran(process) == "sent"


def test_a_fork_is_private(shared: Database, url: str) -> None:
    twin = shared.fork()
    assert twin.digest() == shared.digest()
    twin.execute(SEND, 1)
    shared.execute(SEND, 2)
    assert [status(one, n) for one in (twin, shared) for n in (1, 2)] == ["sent", "open", "open", "sent"]
    world = Shop(db=shared).copy()
    world.send(3)
    assert status(shared, 3) == "open"
    loaded = Database.load(shared.dump())
    assert loaded.digest() == shared.digest()
    loaded.execute(SEND, 4)
    assert status(shared, 4) == "open"
    assert [one.key for one in shared.diff(loaded)] == [(4,)]


def test_a_snapshot_is_restored_for_all(shared: Database, url: str) -> None:
    start = shared.snapshot()
    before = shared.digest()
    assert ran(elsewhere(OPEN + "db.insert(Order(None, 1)); db.execute(SEND, 5)", url)) == ""
    assert shared.digest() != before
    shared.restore(start)
    assert shared.digest() == before
    assert ran(elsewhere(OPEN + "print(status(db, 5), db.insert(Order(None, 1)))", url)) == "open 41"


def test_a_role_asks_a_shared_world(shared: Database) -> None:
    assert shared.ask("SELECT count(*) FROM orders", role="customer", who=1).rows == [[4]]
    with pytest.raises(qn.ToolError):
        shared.ask("DELETE FROM orders")


def test_a_lock_of_another_process_is_not_waited_for_for_ever(shared: Database, url: str) -> None:
    shared.execute("SELECT 1")
    image(shared).session().engine("SET lock_timeout = '200ms'")
    code = OPEN + "with db.transaction():\n  db.execute(SEND, 1); print('ready', flush=True); sys.stdin.read()"
    process = elsewhere(code, url)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with pytest.raises(SQLError, match="lock timeout"):
        shared.execute(SEND, 1)
    assert status(shared, 1) == "open"
    ran(process)
    shared.execute(SEND, 1)


def test_shared_world_refuses_another_template_or_a_bad_name(shared: Database, url: str) -> None:
    with pytest.raises(qn.DefinitionError, match="'office' was made from template"):
        Database("CREATE TABLE other (x INTEGER)", url=url, shared=NAME)
    with pytest.raises(UsageError, match="shared must match"):
        Database("CREATE TABLE other (x INTEGER)", url=url, shared="No!")
    with pytest.raises(UsageError, match="needs the url"):
        Database("CREATE TABLE other (x INTEGER)", shared="x")
    with pytest.raises(Refused, match="fork"):
        shared.reverse_unordered_selects()
    with pytest.raises(Refused, match="pg_dump"):
        shared.export("x")
    private = shared.fork()
    assert isinstance(private, postgres.PostgresDatabase)
    with pytest.raises(UsageError, match="only a shared world"):
        private.remove()
