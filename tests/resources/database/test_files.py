"""Files in and out, base images, and bytes that are none."""

from __future__ import annotations

import contextlib
import gc
import importlib
import sqlite3
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

import quintain as qn
from quintain import codec
from quintain.resources.database import Database, ImageError, bases, connection, files
from quintain.resources.database.connection import Refused
from quintain.resources.database.pages import PageImage
from quintain.state import Shared
from tests.resources.database.shop import Customer, Order, shop

# -- files


def test_an_exported_file_is_ordinary(db: Database, tmp_path: Path) -> None:
    db.execute("UPDATE customers SET name = 'Zed' WHERE id = 1")
    path = tmp_path / "shop.db"
    path.write_text("was here before")
    db.export(path)
    with sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert plain.execute("SELECT name FROM customers WHERE id = 1").fetchall() == [("Zed",)]
        plain.execute("UPDATE customers SET name = 'Yves' WHERE id = 1")
    plain.close()
    again = Database(seed=path)
    assert again.one(str, "SELECT name FROM customers WHERE id = 1") == "Yves"
    assert [one.table for one in db.diff(again)] == ["customers"]
    assert [one.name for one in tmp_path.iterdir()] == ["shop.db"]


def test_an_export_that_fails_leaves_what_was_there(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.db"
    path.write_text("was here before")

    def full(image: PageImage) -> Any:
        yield b"x"
        raise OSError("disk full")

    monkeypatch.setattr(PageImage, "chunks", full)
    with pytest.raises(OSError, match="disk full"):
        db.export(path)
    assert path.read_text() == "was here before"
    assert [one.name for one in tmp_path.iterdir()] == ["shop.db"]


def test_seeds_from_files(tmp_path: Path) -> None:
    script = tmp_path / "seed.sql"
    script.write_text("PRAGMA foreign_keys=OFF; BEGIN; INSERT INTO customers VALUES (1, 'a'); COMMIT; ANALYZE")
    db = Database(Customer, seed=script)
    assert db.all(str, "SELECT name FROM customers") == ["a"]
    script.write_text("INSERT INTO customers VALUES (1, 'b')")
    assert Database(Customer, seed=script).all(str, "SELECT name FROM customers") == ["b"]
    script.write_text("BEGIN; INSERT INTO customers VALUES (1, 'b')")
    with pytest.raises(qn.DefinitionError, match="leaves a transaction open"):
        Database(Customer, seed=script)
    script.write_text("PRAGMA foreign_keys=OFF; INSERT INTO orders (id, customer) VALUES (1, 99)")
    with pytest.raises(qn.DefinitionError, match="'orders' refers to a row of 'customers'"):
        Database(Customer, Order, seed=script)
    (foreign := tmp_path / "x.db").write_bytes(b"no database" * 200)
    with pytest.raises(qn.DefinitionError, match="not a SQLite database"):
        Database(seed=foreign)
    with pytest.raises(qn.DefinitionError, match="its own schema"):
        Database(Customer, seed=foreign)


# -- base images


def test_a_base_is_built_once_and_shared(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = shop(), shop()
    assert one.image.base is other.image.base
    assert (cache / "databases" / f"{one.image.base.digest}.db").exists()


def test_a_seed_that_closes_over_something_is_built_each_time() -> None:
    calls: list[int] = []

    def fill(db: Database) -> None:
        calls.append(1)
        db.insert(Customer(1, "a"))

    assert Database(Customer, seed=fill).digest() == Database(Customer, seed=fill).digest()
    assert len(calls) == 2


def test_an_image_that_was_changed_is_built_again_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    monkeypatch.setattr(bases, "_opened", {})
    db = shop()
    data = db.dump()
    (path,) = (tmp_path / "databases").glob("*.db")
    whole = path.read_bytes()
    for broken in (whole[:-5], b"\1" + whole[1:]):
        path.unlink()
        path.write_bytes(broken)
        bases._opened.clear()
        with pytest.raises(ImageError, match="was changed"):
            Database.load(data)
        bases._opened.clear()
        assert shop().digest() == db.digest()
        assert path.read_bytes() == whole
    path.unlink()
    bases._opened.clear()
    with pytest.raises(ImageError, match="is not in"):
        Database.load(data)


def test_bytes_that_are_no_dump_are_refused(db: Database) -> None:
    good = codec.loads(db.dump(), list[Any])
    for place, value in ((0, "else"), (2, -1), (4, [(0, b"short")]), (4, [(-1, bytes(1024))])):
        bad = list(good)
        bad[place] = value
        with pytest.raises(ImageError, match="no dump"):
            Database.load(codec.dumps(bad))
    with pytest.raises(ImageError, match="no dump"):
        Database.load(b"\xc1")


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))

    def full(image: PageImage) -> Any:
        yield b"x"
        raise OSError("disk full")

    monkeypatch.setattr(PageImage, "chunks", full)
    with pytest.raises(OSError, match="disk full"):
        Database("CREATE TABLE only_here (x)")
    assert list((tmp_path / "databases").iterdir()) == []


def test_many_bases_do_not_keep_their_connections() -> None:
    first = Database("CREATE TABLE t0 (x)")
    for number in range(1, 20):
        Database(f"CREATE TABLE t{number} (x)").execute("SELECT 1")
    gc.collect()
    assert first.image.base.retired
    assert first.execute("SELECT * FROM t0") == []
    assert first.image.base.idle == []


def test_a_database_without_anything() -> None:
    db = Database()
    twin = Database.load(db.dump())
    db.execute("CREATE TABLE t (x)")
    assert twin.execute("SELECT name FROM sqlite_schema") == []
    assert repr(db) == "Database(2 KB, 2 pages written)"


def test_a_file_that_shrinks_and_grows_again(tmp_path: Path) -> None:
    with sqlite3.connect(path := tmp_path / "shrinking.db") as plain:
        plain.executescript(
            "PRAGMA auto_vacuum = FULL; VACUUM; CREATE TABLE t (id INTEGER PRIMARY KEY, x);"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
            "INSERT INTO t SELECT i, zeroblob(700) FROM n"
        )
    plain.close()
    db = Database(seed=path)
    full = db.image.count
    histories: list[Database] = []
    for asks in (True, False):
        one = db.fork()
        for step in (
            "DELETE FROM t WHERE id > 20",
            "INSERT INTO t SELECT id + 100, x FROM t",
            "DELETE FROM t WHERE id < 15",
            "INSERT INTO t SELECT id + 1000, x FROM t",
        ):
            one.execute(step)
            assert one.execute("PRAGMA integrity_check") == [("ok",)]
            again = Database.load(one.dump())
            if asks:
                assert again.digest() == one.digest()
            assert again.logical_digest() == one.logical_digest()
            assert len(db.diff(one)) == len(
                {row for (row,) in db.execute("SELECT id FROM t")} ^ {row for (row,) in one.execute("SELECT id FROM t")}
            )
        assert one.image.count < full
        histories.append(one)
    assert histories[0].digest() == histories[1].digest()


def test_pages_that_are_no_database_are_an_error_and_no_crash(db: Database, tmp_path: Path) -> None:
    kind, base, count, same, _ = codec.loads(db.dump(), list[Any])
    for number in range(1, count, 5):
        broken = Database.load(codec.dumps([kind, base, count, same, [(number, b"\5" * 1024)]]))
        with contextlib.suppress(apsw.Error):
            broken.execute("SELECT count(note), count(tags) FROM orders; SELECT * FROM customers; SELECT * FROM notes")
        with contextlib.suppress(apsw.Error, ValueError, IndexError):
            broken.diff(db)
    looped = db.fork()
    root = looped.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'orders'")[0][0]
    page = bytes([5, 0, 0, 0, 0, 0, 0, 0]) + root.to_bytes(4, "big") + bytes(1012)
    looped = Database.load(codec.dumps([kind, base, count, same, [(root - 1, page)]]))
    with pytest.raises(ValueError, match="contains itself"):
        looped.diff(db)
    assert db.execute("PRAGMA integrity_check") == [("ok",)]


def test_refusals_reach_typed_reads(db: Database) -> None:
    with pytest.raises(Refused, match="PRAGMA"):
        db.all(int, "PRAGMA cache_size = 4")
    assert db.all(int, "SELECT 1 WHERE 0") == []


def test_every_setting_that_was_measured_is_set(db: Database) -> None:
    with db.transaction():
        assert db.unit is not None
        settings = {
            name: db.unit.engine(f"PRAGMA {name}")[0][0]
            for name in ("page_size", "journal_mode", "synchronous", "temp_store", "locking_mode", "foreign_keys")
        }
    assert settings == {
        "page_size": 1024,
        "journal_mode": "memory",
        "synchronous": 0,
        "temp_store": 2,
        "locking_mode": "normal",
        "foreign_keys": 1,
    }


def test_the_file_system_has_one_file_and_the_worlds_time(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Database().image
    file = files.PageFile(image)
    system = files.FileSystem(file)
    file.world = Shared()
    assert system.xCurrentTime() == 2440587.5
    with pytest.raises(apsw.CantOpenError, match="one file"):
        system.xOpen(None, [apsw.SQLITE_OPEN_TEMP_DB, 0])
    system.unregister()

    def broken(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(apsw, "Connection", broken)
    with pytest.raises(MemoryError):
        connection.Connection(image)


def test_a_seed_without_source_is_built_each_time() -> None:
    names: dict[str, Any] = {}
    exec("def fill(db): db.execute('CREATE TABLE made (x)')", names)
    assert Database(seed=names["fill"]).execute("SELECT * FROM made") == []


@pytest.mark.parametrize("missing", ["apsw", "xxhash"])
def test_the_missing_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "quintain.resources.database")
    with pytest.raises(ImportError, match=r"quintain\[database\]"):
        importlib.import_module("quintain.resources.database")


def test_a_thousand_writes_between_two_digests(db: Database) -> None:
    twin = db.fork()
    for number in range(300):
        db.execute("UPDATE orders SET note = ? WHERE id = ?", "n" * 300, number)
    for number in range(300):
        twin.execute("UPDATE orders SET note = ? WHERE id = ?", "n" * 300, number)
        twin.digest()
    assert db.digest() == twin.digest()


def test_a_transaction_that_only_counts_itself_writes_no_page_1(db: Database) -> None:
    db.execute("UPDATE customers SET name = 'Customer X' WHERE id = 1")
    assert 0 not in db.image.pages.changes()
    before = db.snapshot()
    with db.transaction():
        db.execute("PRAGMA user_version = 0")
    assert db.image is before.image
