"""Databases on a server: whose they are, who drops them, and what happens when somebody dies."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

import quintain as qn
from quintain.errors import EpisodeError, UsageError
from quintain.resources import postgres
from quintain.resources.database import Database, DatabaseSnapshot, ImageError, SQLError
from quintain.resources.postgres import server
from quintain.resources.postgres.images import WorldImage
from quintain.resources.postgres.server import ServerError, reach, shown
from quintain.state import Shared
from tests.resources.postgres import shop as shops
from tests.resources.postgres.cluster import folder, running
from tests.resources.postgres.shop import SEND, shop, status


def databases(url: str, like: str = "quintain_%") -> set[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE %s", [like]).fetchall()
    return {name for (name,) in found}


def image(db: Database) -> WorldImage:
    """Returns the image of a world."""
    assert isinstance(db, postgres.PostgresDatabase)
    return db._held.image


def elsewhere(code: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Another process that runs code with a shop at hand."""
    start = "import sys; from quintain.resources.database import Database\n"
    start += "from quintain.state import Shared; from tests.resources.postgres.shop import *\n"
    return subprocess.Popen(
        [sys.executable, "-c", start + code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        **options,
    )


# -- worlds come and go


def test_a_world_that_nobody_refers_to_is_dropped(url: str) -> None:
    db = shop(url)
    db.execute("SELECT 1")
    name = image(db).name
    twin = db.fork()
    twin.execute(SEND, 1)
    other = image(twin).name
    assert {name, other} <= databases(url)
    del twin
    gc.collect()
    third = shop(url)
    third.execute("SELECT 1")
    assert other not in databases(url)
    assert isinstance(db, postgres.PostgresDatabase)
    db.close()
    third.fork().execute(SEND, 1)
    assert name not in databases(url)


def test_a_process_that_ends_takes_its_worlds_along(url: str) -> None:
    code = "db = shop(sys.argv[1]); db.execute('SELECT 1'); print(db._held.image.name)"
    with elsewhere(code, url) as process:
        out, _ = process.communicate()
    assert process.returncode == 0
    assert out.strip() not in databases(url)
    assert out.startswith("quintain_")


def test_the_worlds_of_a_process_that_was_killed_are_swept(url: str) -> None:
    code = "db = shop(sys.argv[1]); db.execute('SELECT 1'); print(db._held.image.name, flush=True); sys.stdin.read()"
    with elsewhere(code, url) as dead, elsewhere(code, url) as alive:
        assert dead.stdout is not None
        assert alive.stdout is not None
        name, other = dead.stdout.readline().strip(), alive.stdout.readline().strip()
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert {name, other} <= databases(url)
        while _connected(url, name):
            pass  # the server notices in its own time
        with elsewhere(code, url) as later:
            later.communicate("")
        assert databases(url) & {name, other} == {other}
        alive.communicate("")
    assert other not in databases(url)


def _connected(url: str, database: str) -> bool:
    with psycopg.connect(url) as connection:
        owner = database.split("_")[3]
        sql = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = %s::oid"
        return connection.execute(sql, [owner]).fetchone() is not None


def test_a_template_is_built_once(url: str, tmp_path: Path) -> None:
    (tmp_path / "counted.py").write_text(
        "import pathlib, time\n"
        f"def seed(db):\n  pathlib.Path({str(tmp_path)!r}, f'built-{{time.time_ns()}}').touch()\n"
        "  db.execute('INSERT INTO t VALUES (1)')\n"
    )
    code = (
        f"sys.path.insert(0, {str(tmp_path)!r}); import counted\n"
        "db = Database('CREATE TABLE t (x INTEGER)', seed=counted.seed, url=sys.argv[1])\n"
        "print(db.digest())"
    )
    processes = [elsewhere(code, url) for _ in range(3)]
    found = {process.communicate()[0] for process in processes}
    assert len(found) == 1
    assert all(process.returncode == 0 for process in processes)
    assert len(list(tmp_path.glob("built-*"))) == 1


def test_a_seed_that_fails_leaves_no_template(url: str) -> None:
    shop(url)
    before = databases(url, r"quintain\_%\_t\_%")
    for broken in ("CREATE TABEL x", "CREATE TABLE x (y INTEGER); INSERT INTO x VALUES ('a')"):
        with pytest.raises(qn.DefinitionError, match=r"syntax error|invalid input"):
            Database(broken, url=url)
    with pytest.raises(ZeroDivisionError):
        Database("CREATE TABLE x (y INTEGER)", seed=lambda db: 1 / 0, url=url)
    with pytest.raises(qn.DefinitionError, match="views of the roles"):
        Database("CREATE TABLE x (y INTEGER)", roles={"a": {"x": "SELECT z FROM main.x"}}, url=url)
    assert databases(url, r"quintain\_%\_t\_%") == before


def test_two_that_build_at_the_same_time_do_no_harm(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = reach(url)
    honest = type(there).exists
    text = "CREATE TABLE at_the_same_time (x INTEGER)"
    first = Database(text, url=url)
    with monkeypatch.context() as patch:  # what the second one sees is that the first has not finished yet
        patch.setattr(type(there), "exists", lambda self, name: "_t_" not in name and honest(self, name))
        second = Database(text, url=url)
    assert first.digest() == second.digest()


def test_a_seed_that_closes_over_something_runs_each_time(url: str) -> None:
    def made(number: int) -> Database:
        return Database(
            "CREATE TABLE t (x INTEGER)", seed=lambda db: db.execute("INSERT INTO t VALUES (?)", number), url=url
        )

    assert [made(n).one(int, "SELECT x FROM t") for n in (1, 2, 1)] == [1, 2, 1]
    assert made(1).digest() == made(1).digest() != made(2).digest()


def test_seeds_from_files(url: str, tmp_path: Path) -> None:
    script = tmp_path / "seed.sql"
    script.write_text("INSERT INTO customers VALUES (1, 'a;?')")
    assert Database(shops.Customer, seed=script, url=url).all(str, "SELECT name FROM customers") == ["a;?"]
    with pytest.raises(qn.DefinitionError, match=r"a function or a \.sql file"):
        Database(seed=tmp_path / "x.db", url=url)


def test_more_worlds_than_connections(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_WARM", 3)
    worlds = [shop(url) for _ in range(8)]
    for _ in range(2):
        for number, db in enumerate(worlds, 1):
            db.execute(SEND, number)
            assert status(db, number) == "sent"
    with psycopg.connect(url) as connection:
        names = [image(db).name for db in worlds]
        sql = "SELECT count(DISTINCT datname) FROM pg_stat_activity WHERE datname = ANY (%s)"
        row = connection.execute(sql, [names]).fetchone()
    assert row is not None
    assert row[0] <= 4


# -- what cannot be


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(ServerError, match=r"PostgreSQL at postgresql://x@/y\?host=/nowhere: cannot connect") as info:
        Database("CREATE TABLE t (x INTEGER)", url="postgresql://x@/y?host=/nowhere")
    assert isinstance(info.value, EpisodeError)
    assert (info.value.component, info.value.kind) == ("S", "transport_unreachable")


def test_a_password_is_not_shown() -> None:
    assert "secret" not in shown("postgresql://a:secret@b/c")
    assert shown("postgresql://a@b/c") == "postgresql://a@b/c"


def test_an_ordinary_user_is_told(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN")
    with pytest.raises(qn.DefinitionError, match=r"'plain' of .* is not a superuser"):
        Database(url=url.replace("postgres@", "plain@"))


def test_bytes_that_are_no_dump(db: Database) -> None:
    data = db.dump()
    for broken in (data[:-3], data[:40], data.replace(image(db).template.encode(), b"0" * 32)):
        with pytest.raises(ImageError):
            Database.load(broken)
    with pytest.raises(UsageError):
        db.restore(Database("CREATE TABLE t (x)").snapshot())


def test_a_dump_that_does_not_say_what_it_holds(db: Database) -> None:
    db.execute("UPDATE customers SET name = 'Zed' WHERE id = 1")
    broken = Database.load(db.dump().replace(b"Zed", b"Zeb"))
    with pytest.raises(ImageError, match="became"):
        broken.execute("SELECT 1")


def test_a_child_of_fork_is_told(db: Database) -> None:
    db.execute("SELECT 1")
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            db.fork().execute(SEND, 1)
        except qn.DefinitionError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert b"os.fork()" in os.read(read, 1000)
    os.close(read)
    os.close(write)
    assert db.execute("SELECT 1") == [(1,)]


def test_every_verb_is_its_own() -> None:
    """A method inherited from the SQLite class would change the wrong database."""
    same = {"one"}  # made of `all`
    verbs = {name for name in dir(Database) if not name.startswith("_") and callable(getattr(Database, name))}
    inherited = {name for name in verbs if name not in vars(postgres.PostgresDatabase)}
    below = {name for base in Database.__mro__[1:] for name in vars(base)}
    assert inherited - below == same


# -- a server that dies


def test_a_server_that_dies_is_named() -> None:
    with running(folder(f"quintain-dies-{os.getpid()}")) as cluster:
        db = shop(cluster.url)
        db.bind(Shared())
        db.execute(SEND, 1)
        start = db.snapshot()
        db.execute(SEND, 2)
        twin = db.fork()
        twin.execute("SELECT 1")
        with pytest.raises(ServerError, match="connection is lost") as info, db.transaction():
            db.execute(SEND, 3)
            cluster.stop()
            db.execute(SEND, 4)
        assert cluster.url in str(info.value)
        assert (info.value.component, info.value.kind) == ("S", "transport_peer_drop")

        def back(snapshot: DatabaseSnapshot) -> None:
            db.restore(snapshot)
            db.execute("SELECT 1")

        verbs: list[Any] = [
            lambda: db.execute("SELECT 1"),
            lambda: back(start),
            lambda: twin.execute(SEND, 1),
            lambda: twin.ask("SELECT 1"),
            twin.dump,
            lambda: shop(cluster.url),
        ]
        for verb in verbs:
            with pytest.raises(ServerError):
                verb()
        cluster.start()
        again = shop(cluster.url)
        again.execute(SEND, 1)
        assert status(again, 1) == "sent"
        with pytest.raises((ServerError, SQLError)):
            db.execute("SELECT 1")
