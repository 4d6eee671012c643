"""The journal by itself: what is open after it was read again, what is deleted, which process may write it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.errors import UsageError
from quintain.serve.errors import Unavailable
from quintain.serve.http.keys import ANYONE
from quintain.serve.journal import database
from quintain.serve.journal.database import Journal
from quintain.serve.journal.entries import Acted, Closed, Created, Done, Ended, Entry, Settled


def created(id: str) -> Created:
    return Created(id, f"token of {id}", ANYONE, "version", b"wanted")


def acted(id: str, text: str = "") -> Acted:
    return Acted(id, "key", text.encode())


def found(folder: Path) -> dict[str, list[Entry]]:
    with closing(Journal(folder)) as journal:
        return {past.created.id: list(past.entries()) for past in journal.pasts()}


def keep(folder: Path, *entries: Entry) -> None:
    with closing(Journal(folder)) as journal:
        for entry in entries:
            journal.write(entry)


def rows(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "0.journal")) as read:
        return int(read.execute("SELECT count(*) FROM events").fetchone()[0])


def life(id: str, text: str) -> list[Entry]:
    return [created(id), acted(id, text), Closed(id)]


def test_episodes_that_were_not_closed_are_open(tmp_path: Path) -> None:
    own: list[Entry] = [acted("a", "1"), Done("a", "d"), Ended("a", "enough"), Settled("a", b"trace")]
    keep(tmp_path, created("a"), created("b"), own[0], acted("b"), *own[1:3], Closed("b"), own[3])
    with closing(Journal(tmp_path)) as journal:
        (past,) = journal.pasts()
        journal.write(acted("a", "later"))
        assert (past.created, past.settled, past.entries()) == (created("a"), b"trace", own)


def test_id_that_is_used_again_has_its_second_life_alone(tmp_path: Path) -> None:
    keep(tmp_path, created("a"), acted("a", "1"), Closed("a"), Done("a", "late"), created("a"), acted("a", "2"))
    assert found(tmp_path) == {"a": [acted("a", "2")]}


def test_episode_is_new_until_a_call_is_made_in_it(tmp_path: Path) -> None:
    keep(tmp_path, created("a"), created("b"), acted("b"))
    with closing(Journal(tmp_path)) as journal:
        assert [(past.created.id, past.is_new) for past in journal.pasts()] == [("a", True), ("b", False)]


def test_journal_is_written_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_S", 0.1)
    script = "import sys; from pathlib import Path; from quintain.serve.journal.database import Journal; "
    script += "journal = Journal(Path(sys.argv[1])); print(1, flush=True); sys.stdin.read(1)"
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        with pytest.raises(UsageError, match="another server"):
            Journal(tmp_path)
        other.kill()
    Journal(tmp_path).close()


def test_journal_is_readable_for_its_owner_alone(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "journal")) as journal:
        journal.write(created("a"))
        for file in (tmp_path / "journal").iterdir():
            assert file.stat().st_mode & 0o077 == 0, file


@pytest.mark.parametrize("data", [b"something else that is long enough" * 9, b"quintain journal 1\n" + b"x" * 40])
def test_file_that_is_not_a_journal_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "0.journal").write_bytes(data)
    with pytest.raises(UsageError, match=r"cannot be used: .* move the file away"):
        Journal(tmp_path)
    assert (tmp_path / "0.journal").read_bytes() == data


def test_damage_in_the_middle_is_refused(tmp_path: Path) -> None:
    keep(tmp_path, created("a"), *(acted("a", "x" * 9000) for _ in range(9)))
    path = tmp_path / "0.journal"
    data = bytearray(path.read_bytes())
    data[4096:8192] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises(UsageError, match="damaged"):
        Journal(tmp_path)


def test_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    keep(tmp_path)
    with closing(sqlite3.connect(tmp_path / "0.journal")) as other:
        other.execute("PRAGMA user_version = 2")
    with pytest.raises(UsageError, match="another version"):
        Journal(tmp_path)


def test_entry_of_another_version_is_refused(tmp_path: Path) -> None:
    keep(tmp_path)
    with closing(sqlite3.connect(tmp_path / "0.journal")) as other, other:
        other.execute("INSERT INTO events VALUES (1, 'a', 'created', ?)", (b"\x81\xa4type\xa5other",))
    with pytest.raises(UsageError, match="another version"):
        Journal(tmp_path)


def test_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be used"):
        Journal(tmp_path / "file" / "journal")


def entries(name: str) -> st.SearchStrategy[Entry]:
    calls = st.builds(acted, st.just(name), st.text(max_size=300))
    others = (created(name), Done(name, "digest"), Settled(name, b"trace"), Closed(name))
    return st.one_of(calls, st.sampled_from(others))


def expected(written: Sequence[Entry]) -> dict[str, list[Entry]]:
    model: dict[str, list[Entry]] = {}
    for entry in written:
        if isinstance(entry, Created):
            model[entry.id] = []
        elif isinstance(entry, Closed):
            model.pop(entry.id, None)
        elif entry.id in model:
            model[entry.id].append(entry)
    return model


@given(written=st.lists(st.sampled_from("ab").flatmap(entries), max_size=20), at_once=st.sampled_from([1, 3, 1000]))
def test_journal_holds_the_entries_of_open_episodes(written: list[Entry], at_once: int) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "DELETED_AT_ONCE", at_once)
        keep(Path(name), *written)
        for _ in range(2):
            assert found(Path(name)) == expected(written)
        assert rows(Path(name)) == sum(1 + len(kept) for kept in expected(written).values())


def test_rows_of_closed_episodes_are_deleted_while_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "DELETED_AT_ONCE", 30)
    journal = Journal(tmp_path)
    journal.write(created("a"))

    def write(name: str) -> None:
        for number in range(100):
            for entry in life(f"{name}{number}", "x" * 1000):
                journal.write(entry)
            journal.write(acted("a", f"{name}{number}"))

    threads = [threading.Thread(target=write, args=(name,)) for name in "pqr"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert rows(tmp_path) < 1 + 300 + 40
    written = {entry.reply for entry in found(tmp_path)["a"] if isinstance(entry, Acted)}
    assert written == {f"{name}{number}".encode() for name in "pqr" for number in range(100)}


def test_file_shrinks_at_the_start(tmp_path: Path) -> None:
    long = "x" * 10_000
    keep(tmp_path, created("a"), *(entry for n in range(300) for entry in life(f"b{n}", long)), acted("a", long))
    before = (tmp_path / "0.journal").stat().st_size
    assert before > 2 << 20
    assert found(tmp_path) == {"a": [acted("a", long)]}
    assert (tmp_path / "0.journal").stat().st_size < before / 10
    assert found(tmp_path) == {"a": [acted("a", long)]}


def test_killed_process_leaves_every_entry_that_was_written(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from quintain.serve.journal.database import Journal
        from quintain.serve.journal.entries import Acted, Created
        from quintain.serve.http.keys import ANYONE
        journal = Journal(Path(sys.argv[1]))
        journal.write(Created("a", "t", ANYONE, "v", b"w"))
        number = 0
        while True:
            journal.write(Acted("a", "", b"%d " % number * (number % 5000)))
            print(number, flush=True)
            number += 1
    """)
    for run in range(3):
        folder = tmp_path / str(run)
        with subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout
            for _ in range(200):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            *_, last = [b"199\n", *writer.stdout.readlines()]
        written = [entry.reply for entry in found(folder)["a"] if isinstance(entry, Acted)]
        assert len(written) > int(last)
        assert written == [b"%d " % number * (number % 5000) for number in range(len(written))]


def test_entries_of_one_pass_of_the_loop_are_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits: list[int] = []
    insert = Journal._insert

    def counted(journal: Journal, rows: Sequence[tuple[int, str, str, bytes]]) -> None:
        commits.append(len(rows))
        insert(journal, rows)

    monkeypatch.setattr(Journal, "_insert", counted)

    async def play(journal: Journal) -> None:
        await asyncio.gather(*(journal.append(acted("a", str(number))) for number in range(64)))
        await asyncio.gather(journal.append(Done("a", "d")), journal.append(acted("a", "last")))

    with closing(Journal(tmp_path)) as journal:
        journal.write(created("a"))
        asyncio.run(play(journal))
    assert commits == [1, 64, 2]
    assert [entry.reply for entry in found(tmp_path)["a"] if isinstance(entry, Acted)] == [
        *(str(number).encode() for number in range(64)), b"last",
    ]  # fmt: skip


def test_entry_whose_writer_was_cancelled_is_not_kept(tmp_path: Path) -> None:
    async def play(journal: Journal) -> None:
        for passes in range(4):
            writing = asyncio.create_task(journal.append(acted("a", "cancelled")))
            for _ in range(passes):
                await asyncio.sleep(0)
            if not writing.done():
                writing.cancel()
            outcome = await asyncio.gather(writing, return_exceptions=True)
            await asyncio.sleep(0)
            kept.append(isinstance(outcome[0], asyncio.CancelledError))

    kept: list[bool] = []
    with closing(Journal(tmp_path)) as journal:
        journal.write(created("a"))
        asyncio.run(play(journal))
    assert True in kept
    assert len(found(tmp_path)["a"]) == kept.count(False)


def test_entry_of_another_thread_is_committed_with_what_waits(tmp_path: Path) -> None:
    async def play(journal: Journal) -> None:
        waiting = asyncio.create_task(journal.append(acted("a", "first")))
        journal._guard.acquire()
        thread = threading.Thread(target=journal.write, args=(acted("a", "second"),))
        thread.start()
        journal._guard.release()
        await waiting
        await asyncio.to_thread(thread.join)

    with closing(Journal(tmp_path)) as journal:
        journal.write(created("a"))
        asyncio.run(play(journal))
    assert len(found(tmp_path)["a"]) == 2


class Full:
    """Database on a disk that is full."""

    in_transaction = False

    def __init__(self, database: sqlite3.Connection) -> None:
        self.close = database.close

    def execute(self, *_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error


def test_full_disk_refuses_what_is_new_and_logs_what_has_happened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path)
    journal.write(created("a"))
    whole = journal._database

    async def append(entry: Entry) -> None:
        await journal.append(entry)

    journal._database = Full(whole)  # type: ignore[assignment]  # a disk that is full
    for entry in (created("b"), acted("a"), Ended("a", "enough")):
        with pytest.raises(Unavailable, match="No space left"):
            journal.write(entry)
    with pytest.raises(Unavailable, match="No space left"):
        asyncio.run(append(acted("a")))
    with caplog.at_level(logging.WARNING):
        for done in (Done("a", "d"), Settled("a", b""), Closed("a")):
            journal.write(done)
        asyncio.run(append(Done("a", "d")))
    assert caplog.text.count("No space left") == 4
    journal._database = whole
    journal.close()
    assert found(tmp_path) == {"a": []}


def test_room_is_refused_when_the_disk_has_none(tmp_path: Path) -> None:
    with closing(Journal(tmp_path)) as journal:
        journal.room(0)
        disk = os.statvfs(tmp_path)
        with pytest.raises(Unavailable, match="No space left"):
            journal.room(disk.f_bavail * disk.f_frsize)


@pytest.mark.parametrize(("sync", "level"), [(False, 1), (True, 2)])
def test_sync_decides_whether_commits_wait_for_the_disk(tmp_path: Path, *, sync: bool, level: int) -> None:
    with closing(Journal(tmp_path, sync=sync)) as journal:
        assert journal._database.execute("PRAGMA synchronous").fetchone() == (level,)
        assert journal._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
