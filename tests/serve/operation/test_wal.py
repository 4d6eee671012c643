"""The file below the journal: whole records or none, whatever happens to the process or the disk."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from quintain.serve.journal.wal import MAGIC, ROOM, Damaged, Wal


def bodies(path: Path) -> list[bytes]:
    wal = Wal(path)
    found = [body for _, body in wal.records()]
    wal.close()
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "wal"


def written(path: Path, *records: bytes, tidy: bool = True) -> list[int]:
    wal = Wal(path)
    places = [wal.append(one) for one in records]
    wal.close(tidy=tidy)
    return places


RECORDS = (b"one", b"", b"\0" * 100, b"x" * 100_000, os.urandom(3 * ROOM))


@pytest.mark.parametrize("tidy", [True, False])
def test_what_is_appended_is_read(path: Path, *, tidy: bool) -> None:
    places = written(path, *RECORDS, tidy=tidy)
    assert bodies(path) == list(RECORDS)
    wal = Wal(path)
    assert [wal.read(place) for place in places] == list(RECORDS)
    assert [body for _, body in wal.records(places[3])] == list(RECORDS[3:])
    wal.append(b"more")
    wal.close()
    assert bodies(path) == [*RECORDS, b"more"]


def test_it_is_its_owners_alone(path: Path) -> None:
    written(path, b"one")
    assert path.stat().st_mode & 0o777 == 0o600


def test_any_beginning_of_a_last_record_is_cut_off(path: Path) -> None:
    places = written(path, b"first", b"a last record")
    whole = path.read_bytes()
    for end in range(places[1], len(whole)):
        for room in (b"", b"\0" * 50):
            path.write_bytes(whole[:end] + room)
            assert bodies(path) == [b"first"], end
            wal = Wal(path)
            wal.append(b"y")  # Shorter than what was there: nothing of that may be left behind it.
            wal.close()
            assert bodies(path) == [b"first", b"y"], end


def test_a_file_that_was_being_made_is_made(path: Path) -> None:
    for end in range(len(MAGIC)):
        for room in (b"", b"\0" * 50):
            path.write_bytes(MAGIC[:end] + room)
            assert bodies(path) == []
            assert path.read_bytes().startswith(MAGIC)
            path.unlink()


@pytest.mark.parametrize("shift", range(0, 25, 3))
def test_damage_in_the_middle_is_told(path: Path, shift: int) -> None:
    places = written(path, b"first", b"the second record", b"third")
    data = bytearray(path.read_bytes())
    data[places[1] + shift] ^= 1
    path.write_bytes(data)
    with pytest.raises(Damaged, match=f"byte {places[1]}"):
        Wal(path)


@pytest.mark.parametrize("data", [b"something else entirely", b"short", MAGIC.replace(b"1", b"2") + b"\0" * 50])
def test_another_file_is_told(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(Damaged, match=r"no journal of this version: .* move the file away"):
        Wal(path)
    assert path.read_bytes() == data


def test_killed_at_any_moment_it_holds_whole_records(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from quintain.serve.journal.wal import Wal
        wal = Wal(Path(sys.argv[1]))
        number = 0
        while True:
            wal.append(b"%d " % number * (number % 5000))
            number += 1
            if number == 200:
                print("going", flush=True)
    """)
    for run in range(5):
        path = tmp_path / str(run)
        with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout
            writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        found = bodies(path)
        assert len(found) >= 200
        assert found == [b"%d " % number * (number % 5000) for number in range(len(found))]


def test_what_the_disk_has_not_confirmed_is_not_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    wal = Wal(path, sync=True)
    wal.append(b"first")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", broken)
        with pytest.raises(OSError, match="Input/output"):
            wal.append(b"refused")
    assert bodies(path) == [b"first"]
    wal.append(b"2nd")
    wal.close(tidy=False)
    assert bodies(path) == [b"first", b"2nd"]


def test_of_a_record_over_which_the_disk_breaks_nothing_is_left(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, times = os.pwrite, iter(range(9))

    def breaking(file: int, data: bytes, place: int) -> int:
        match next(times):
            case 0:
                return write(file, data[:100], place)
            case 1:
                raise OSError(errno.EIO, "Input/output error")
            case _:
                return write(file, data, place)

    wal = Wal(path)
    wal.append(b"first")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", breaking)
        with pytest.raises(OSError, match="Input/output"):
            wal.append(b"refused" * 100)
    wal.append(b"2nd")
    wal.close(tidy=False)
    assert bodies(path) == [b"first", b"2nd"]


def test_a_full_disk_refuses_and_leaves_nothing_half(path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    wal = Wal(path)
    wal.append(b"first")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM + 5000, before[1]))
        with pytest.raises(OSError, match="large"):
            wal.append(b"x" * (2 * ROOM))
        with pytest.raises(OSError, match="large"):
            wal.room(2 * ROOM)
        wal.append(b"second")  # There is room for this one.
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    wal.append(b"third")
    wal.close(tidy=False)
    assert bodies(path) == [b"first", b"second", b"third"]
