"""Bad bytes, a full disk, too little memory, and very many worlds."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import quintain as qn
from quintain import codec
from quintain.resources.database import Database, ImageError, bases
from quintain.state import Rng, Shared
from tests.resources.database.shop import shop


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    monkeypatch.setattr(bases, "_opened", {})
    return tmp_path / "databases"


# -- bytes


def test_any_bit_that_flips_is_noticed(own_cache: Path) -> None:
    db = shop()
    data = db.dump()
    (path,) = own_cache.glob("*.db")
    whole = path.read_bytes()
    rng = Rng(b"flips")
    for _ in range(20):
        broken = bytearray(whole)
        broken[rng.below(len(whole))] ^= 1 << rng.below(8)
        replace(path, bytes(broken))
        with pytest.raises(ImageError, match="was changed"):
            Database.load(data)
    for size in (0, 1024, len(whole) - 1024, len(whole) - 1):
        replace(path, whole[:size])
        with pytest.raises(ImageError, match="was changed"):
            Database.load(data)
    other = Database("CREATE TABLE other (x)")
    replace(path, (own_cache / f"{other.image.base.digest}.db").read_bytes())
    with pytest.raises(ImageError, match="was changed"):
        Database.load(data)
    replace(path, whole)
    assert Database.load(data).digest() == db.digest()


def replace(path: Path, data: bytes) -> None:
    """Other bytes under this name, for whoever opens it next; the file that was there is mapped and stays."""
    path.unlink()
    path.write_bytes(data)
    bases._opened.clear()


@pytest.mark.parametrize("key", [b"", b"\xff\xfe", b"../../../etc/passwd", b"0" * 32, b"0" * 33, b"a\0b"])
def test_a_key_that_names_no_image_is_written_again(own_cache: Path, key: bytes) -> None:
    db = Database("CREATE TABLE t (x)")
    (path,) = own_cache.glob("*.key")
    good = path.read_bytes()
    path.write_bytes(key)
    bases._opened.clear()
    assert Database("CREATE TABLE t (x)").digest() == db.digest()
    assert path.read_bytes() == good


@pytest.mark.parametrize("digest", ["../x", "0" * 31, "0" * 32, "A" * 32, "a\0b", "/etc/passwd"])
def test_a_dump_on_no_base_is_refused(digest: str) -> None:
    kind, _, *rest = codec.loads(shop().dump(), list[object])
    with pytest.raises(ImageError, match=r"not a digest|is not in"):
        Database.load(codec.dumps([kind, digest, *rest]))


def test_another_schema_is_another_base(own_cache: Path) -> None:
    one = Database("CREATE TABLE t (x)", seed=Path(make_seed(own_cache.parent)))
    other = Database("CREATE TABLE t (x, y DEFAULT 5)", seed=Path(make_seed(own_cache.parent)))
    assert (one.execute("SELECT * FROM t"), other.execute("SELECT * FROM t")) == ([(1,)], [(1, 5)])
    again = Database("CREATE TABLE t (x)", seed=Path(make_seed(own_cache.parent)))
    assert again.image.base is one.image.base


def make_seed(folder: Path) -> str:
    path = folder / "seed.sql"
    path.write_text("INSERT INTO t (x) VALUES (1)")
    return str(path)


# -- limits of the machine


def elsewhere(function: str, **environment: str) -> None:
    """Run one of the functions below in a process of its own."""
    code = f"from tests.resources.database import test_hardship as t; t.{function}(); print('intact')"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "intact\n"), done.stderr


def with_a_full_disk() -> None:
    db = shop()
    db.bind(Shared())
    target = bases.folder().parent / "out.db"
    target.write_bytes(b"was here before")
    files = sorted(bases.folder().iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, 64 * 1024))
    big = "CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(1000000))"
    with pytest.raises(OSError, match="File too large"):
        Database(big)
    before = db.digest()
    db.execute("INSERT INTO log (what) VALUES (zeroblob(1000000))")
    with pytest.raises(OSError, match="File too large"):
        db.export(target)
    assert target.read_bytes() == b"was here before"
    assert sorted(bases.folder().iterdir()) == files
    assert sorted(target.parent.iterdir()) == [bases.folder(), target]
    assert db.execute("SELECT length(what) FROM log") == [(1_000_000,)]
    assert shop().digest() == before != db.digest()
    assert Database("CREATE TABLE small (x)").execute("SELECT * FROM small") == []


def with_little_memory() -> None:
    db = shop()
    db.bind(Shared())
    db.execute("UPDATE orders SET note = 'mine' WHERE id = 1")
    image, digest, kept = db.image, db.digest(), db.execute("SELECT * FROM orders")
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 60_000_000, resource.RLIM_INFINITY))
    grow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO log (what) "
    for rows in (grow + "SELECT zeroblob(1000000) FROM n", grow + "SELECT CAST(hex(zeroblob(500000)) AS TEXT) FROM n"):
        for _ in range(3):
            with pytest.raises((MemoryError, apsw.Error)):
                db.execute(rows)
            with pytest.raises((MemoryError, apsw.Error)), db.transaction():
                db.execute("DELETE FROM orders")
                db.execute(rows)
            assert db.image is image
    with pytest.raises((MemoryError, apsw.Error)):
        db.execute("SELECT hex(zeroblob(49000000)) FROM orders")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert db.digest() == digest
    assert db.execute("SELECT * FROM orders") == kept
    assert db.execute("PRAGMA integrity_check") == [("ok",)]


def test_a_full_disk_leaves_worlds_and_files_as_they_were(tmp_path: Path) -> None:
    elsewhere("with_a_full_disk", QUINTAIN_CACHE=str(tmp_path))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured as Linux does it")
def test_too_little_memory_leaves_worlds_as_they_were(tmp_path: Path) -> None:
    elsewhere("with_little_memory", QUINTAIN_CACHE=str(tmp_path))


# -- very many


def test_a_chain_of_ten_thousand_forks_has_no_depth(db: Database) -> None:
    class Shop(qn.State):
        db: Database

    forks: list[Database] = []
    for number in range(10_000):
        db = db.fork()
        if number % 5 == 0:
            db.execute("UPDATE orders SET note = ? WHERE id = ?", str(number), 1 + number % 400)
        if number % 1000 == 0:
            db.logical_digest()
        forks.append(db)
    assert len({one.digest() for one in forks[::5]}) == 2000
    again = Database.load(db.dump())
    assert (again.digest(), again.logical_digest()) == (db.digest(), db.logical_digest())
    assert Shop(db=db).copy().db.digest() == db.digest()
    first, last = forks[0], forks[-1]
    assert len({change.key for change in first.diff(last)}) == 80
    del forks, db
    gc.collect()
    last.execute("UPDATE orders SET note = 'end' WHERE id = 1")
    assert first.execute("SELECT count(*) FROM orders WHERE note IS NOT NULL") == [(1,)]


@pytest.mark.slow
def test_ten_thousand_live_forks_replay_to_the_byte(db: Database) -> None:
    def play(number: int) -> Database:
        fork = db.fork()
        for step in range(20):
            row = 1 + (number * 31 + step * 17) % 400
            fork.execute("UPDATE orders SET note = ? WHERE id = ?", f"{number} {step}", row)
        return fork

    live = [play(number) for number in range(10_000)]
    order = list(range(10_000))
    Rng(b"order").shuffle(order)
    for number in order:
        assert play(number).digest() == live[number].digest()
    assert len({one.digest() for one in live}) == 10_000
