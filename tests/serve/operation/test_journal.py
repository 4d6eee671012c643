"""The journal by itself: what is open after it was read again, what is pressed out of it, who may write it."""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain import codec
from quintain.errors import UsageError
from quintain.serve.errors import Unavailable
from quintain.serve.journal import database as made
from quintain.serve.journal.database import Journal, agree
from quintain.serve.journal.entries import Acted, Closed, Created, Done, Ended, Entry, Settled, mark
from quintain.serve.journal.wal import Wal
from quintain.serve.keys import ANYONE


def created(id: str) -> Created:
    return Created(id, f"token of {id}", ANYONE, "version", b"wanted")


def acted(id: str, text: str = "") -> Acted:
    return Acted(id, "key", text.encode())


def told(folder: Path) -> dict[str, list[Entry]]:
    journal = Journal(folder)
    try:
        return {past.created.id: list(past.entries()) for past in journal.pasts()}
    finally:
        journal.close()


def keep(folder: Path, *entries: Entry) -> None:
    journal = Journal(folder)
    for entry in entries:
        journal.write(entry)
    journal.close()


def test_what_was_not_closed_is_open(tmp_path: Path) -> None:
    mine: list[Entry] = [acted("a", "1"), Done("a", "d"), Ended("a", "enough"), Settled("a", b"trace")]
    keep(tmp_path, created("a"), created("b"), mine[0], acted("b"), *mine[1:3], Closed("b"), mine[3])
    journal = Journal(tmp_path)
    (past,) = journal.pasts()
    assert (past.created, past.settled, past.entries()) == (created("a"), b"trace", mine)
    journal.close()


def test_an_id_that_is_used_again_has_its_second_life_alone(tmp_path: Path) -> None:
    keep(tmp_path, created("a"), acted("a", "1"), Closed("a"), Done("a", "late"), created("a"), acted("a", "2"))
    assert told(tmp_path) == {"a": [acted("a", "2")]}


def test_it_knows_the_processes_that_wrote_it(tmp_path: Path) -> None:
    keep(tmp_path)
    journal = Journal(tmp_path)
    assert journal.marks == [mark()]
    journal.close()


def test_one_process_at_a_time_writes_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(UsageError, match="another server"):
        Journal(tmp_path)
    Journal(tmp_path, number=1).close()
    journal.close()
    Journal(tmp_path).close()


@pytest.mark.parametrize("data", [b"something else that is long enough", b"quintain journal 1\n" + b"x" * 40])
def test_a_damaged_one_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "0.journal").write_bytes(data)
    with pytest.raises(UsageError, match="cannot be used"):
        Journal(tmp_path)


def test_of_one_that_lost_its_power_what_was_before_can_be_kept(tmp_path: Path) -> None:
    keep(tmp_path, created("a"), acted("a", "x" * 9000), acted("a"), Done("a", "d"))
    path = tmp_path / "0.journal"
    data = bytearray(path.read_bytes())
    data[4096:8192] = bytes(4096)  # A page that never came to the disk, unlike the one after it.
    path.write_bytes(data)
    with pytest.raises(UsageError, match="truncate") as refused:
        Journal(tmp_path)
    command = str(refused.value).partition("`")[2].partition("`")[0]
    subprocess.run(command.split(), check=True)
    assert told(tmp_path) == {"a": []}


def entries(name: str) -> st.SearchStrategy[Entry]:
    calls = st.builds(acted, st.just(name), st.text(max_size=300))
    others = (created(name), Done(name, "digest"), Settled(name, b"trace"), Closed(name))
    return st.one_of(calls, st.sampled_from(others))


@given(
    written=st.lists(st.sampled_from("ab").flatmap(entries), min_size=1, max_size=8),
    lost=st.integers(0, 600),
    room=st.sampled_from([0, 1, 500]),
)
def test_cut_off_at_any_byte_it_holds_what_was_whole(written: list[Entry], lost: int, room: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "0.journal")
        wal = Wal(path)
        places = [wal.append(codec.dumps(entry)) for entry in written]
        wal.close()
        data = path.read_bytes()
        cut = max(places[0], len(data) - lost)
        path.write_bytes(data[: max(end for end in (*places, len(data)) if end <= cut)])
        whole = told(Path(name))
        path.write_bytes(data[:cut] + bytes(room))
        assert told(Path(name)) == whole


def test_with_sync_the_disk_has_the_names_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, synced = tmp_path / "new" / "journal", list[str]()
    fsync = os.fsync

    def watching(place: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{place}").readlink()))
        fsync(place)

    monkeypatch.setattr("os.fsync", watching)
    monkeypatch.setattr(made, "WASTE", 1000)
    journal = Journal(folder, sync=True)
    assert {str(folder), str(folder.parent)} <= {*synced}
    synced.clear()
    for entry in _life("a", "x" * 5000):
        journal.write(entry)
    journal.close()
    assert str(folder) in synced  # Another file has taken its place.


def test_a_number_of_processes_that_was_being_written_is_none(tmp_path: Path) -> None:
    (tmp_path / "workers.new").touch()
    agree(tmp_path, 3)
    agree(tmp_path, 3)
    with pytest.raises(UsageError, match="--workers 3, or name another folder"):
        agree(tmp_path, 2)


def test_a_record_of_another_version_is_refused(tmp_path: Path) -> None:
    wal = Wal(tmp_path / "0.journal")
    wal.append(b"\x81\xa4type\xa5other")
    wal.close()
    with pytest.raises(UsageError, match="another version"):
        Journal(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be used"):
        Journal(tmp_path / "file" / "journal")


def test_closed_episodes_are_pressed_out_at_the_start(tmp_path: Path) -> None:
    long = "x" * 10_000
    keep(tmp_path, created("a"), *(entry for n in range(50) for entry in _life(f"b{n}", long)), acted("a", long))
    before = (tmp_path / "0.journal").stat().st_size
    assert told(tmp_path) == {"a": [acted("a", long)]}
    assert (tmp_path / "0.journal").stat().st_size < before / 10
    assert told(tmp_path) == {"a": [acted("a", long)]}


def _life(id: str, text: str) -> list[Entry]:
    return [created(id), acted(id, text), Closed(id)]


def test_it_is_pressed_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed, press = threading.Event(), Journal._press

    def noted(journal: Journal) -> None:
        press(journal)
        pressed.set()

    monkeypatch.setattr(made, "WASTE", 100_000)
    keep(tmp_path, created("old"), acted("old", "before"))
    journal = Journal(tmp_path)
    monkeypatch.setattr(Journal, "_press", noted)
    journal.write(created("a"))

    def write(name: str) -> None:
        for n in range(200):
            for entry in _life(f"{name}{n}", "x" * 1000):
                journal.write(entry)
            journal.write(acted("a", f"{name}{n}"))

    threads = [threading.Thread(target=write, args=(name,)) for name in "pqr"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    limit = time.monotonic() + 60
    while not pressed.wait(0.02):  # Pressing takes its time, beside the writing, and must get some.
        assert time.monotonic() < limit
        for entry in _life("more", "x" * 1000):
            journal.write(entry)
    (past,) = journal.pasts()
    assert past.entries() == [acted("old", "before")]  # Read only now, from another file than it was found in.
    journal.close()
    assert not (tmp_path / "0.new").exists()
    found = told(tmp_path)
    assert found["old"] == [acted("old", "before")]
    expected = {f"{name}{n}".encode() for name in "pqr" for n in range(200)}
    assert len(found["a"]) == len(expected)
    assert {entry.reply for entry in found["a"] if isinstance(entry, Acted)} == expected


def test_what_a_killed_press_left_is_in_nobodys_way(tmp_path: Path) -> None:
    keep(tmp_path, created("a"))
    (tmp_path / "0.new").write_bytes(b"half")
    assert told(tmp_path) == {"a": []}


class Full:
    """A disk that is full."""

    def __call__(self, *_: Any) -> int:
        raise OSError(28, "No space left on device")


def test_on_a_full_disk_nothing_new_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path)
    journal.write(created("a"))
    with monkeypatch.context() as full:
        full.setattr("os.pwrite", Full())
        for entry in (created("b"), acted("a"), Ended("a", "enough")):
            with pytest.raises(Unavailable, match="No space left"):
                journal.write(entry)
        with pytest.raises(Unavailable, match="No space left"):
            journal.room(10_000_000)
        with caplog.at_level(logging.WARNING):
            for done in (Done("a", "d"), Settled("a", b""), Closed("a")):
                journal.write(done)  # It has happened; there is no use in refusing.
    assert caplog.text.count("No space left") == 3
    journal.close()
    assert told(tmp_path) == {"a": []}
