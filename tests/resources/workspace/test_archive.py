"""Tar archives: the same bytes for the same files, and no harm from those of strangers."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from quintain.errors import UsageError
from quintain.resources.workspace import Quota, QuotaExceeded, Workspace, archive


def tar(*members: dict[str, Any], format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for member in members:
            one = tarfile.TarInfo(member.pop("name"))
            data = member.pop("data", b"")
            one.size = len(data)
            for field, value in member.items():
                setattr(one, field, value)
            archive.addfile(one, io.BytesIO(data))
    return out.getvalue()


def files() -> Workspace:
    one = Workspace({"a": "hello", "d/b": b"\xff" * 3_000_000, b"n\xff": "", "ä" * 120: "long", "holes": b"\0" * 5000})
    one.link("l", "d/b")
    one.chmod("a", 0o755)
    one.make_folder("empty")
    return one


def test_archive_round_trip_is_exact() -> None:
    one = files()
    again = Workspace.from_tar(one.to_tar())
    assert [str(stat) for stat in again.walk()] == [str(stat) for stat in one.walk()]
    assert again.to_tar() == one.to_tar()
    assert one.to_tar() == files().to_tar()
    assert Workspace.from_tar(gzip.compress(one.to_tar())).digest() == again.digest()
    assert again.fork().diff(one) == []


def test_other_tools_read_it(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(files().to_tar())
    (tmp_path / "x").mkdir()
    subprocess.run(["tar", "xf", "../x.tar"], cwd=tmp_path / "x", check=True)
    again = Workspace(tmp_path / "x")
    assert again.diff(files()) == []


def test_a_file_on_disk_begins_one(tmp_path: Path) -> None:
    for name, data in (("x.tar", files().to_tar()), ("x.tar.gz", gzip.compress(files().to_tar()))):
        (tmp_path / name).write_bytes(data)
        assert Workspace(tmp_path / name).diff(files()) == []


def test_archives_of_other_programs_are_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("a")
    os.link(tmp_path / "in" / "a", tmp_path / "in" / "b")
    for kind in ("gnu", "posix", "ustar"):
        subprocess.run(["tar", "cf", "x.tar", f"--format={kind}", "-C", "in", "."], cwd=tmp_path, check=True)
        one = Workspace(tmp_path / "x.tar")
        assert one.list() == ["a", "b"]
        assert one.text("a") == one.text("b") == "a"


def test_the_last_member_of_a_name_counts() -> None:
    one = Workspace.from_tar(
        tar({"name": "a", "data": b"1"}, {"name": "./a", "data": b"2", "mtime": 7, "mode": 0o6755})
    )
    assert one.text("a") == "2"
    assert (one.stat("a").mtime, one.stat("a").mode) == (7, 0o755)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([{"name": "../x"}], "leads outside"),
        ([{"name": "a/../../x"}], "leads outside"),
        ([{"name": "/etc/passwd"}], "leads outside"),
        ([{"name": "l", "type": tarfile.SYMTYPE, "linkname": ".."}, {"name": "l/x"}], "which is a symlink"),
        ([{"name": "a"}, {"name": "a/b"}], "which is a file"),
        ([{"name": "dev", "type": tarfile.CHRTYPE}], "neither file, folder nor link"),
        ([{"name": "pipe", "type": tarfile.FIFOTYPE}], "neither file, folder nor link"),
        ([{"name": "h", "type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}], "outside"),
        ([{"name": "h", "type": tarfile.LNKTYPE, "linkname": "none"}], "no file before it"),
        ([{"name": "l", "type": tarfile.SYMTYPE, "linkname": ""}], "without a target"),
        ([{"name": "x" * 300}], "a member of the archive: .* at most 255"),
        ([{"name": "a", "mtime": -5}], "of the second -5"),
    ],
)
def test_members_that_do_harm_are_refused(members: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Workspace.from_tar(tar(*(dict(member) for member in members)))


@pytest.mark.parametrize("data", [b"no tar at all", b"\x1f\x8bnot gzip", b"x" * 2000])
def test_bytes_that_are_not_an_archive_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="no tar archive"):
        Workspace.from_tar(data)


def test_an_archive_that_is_cut() -> None:
    whole = tar({"name": "a", "data": os.urandom(5000)})
    for data in (whole[:3000], gzip.compress(whole)[:2000]):
        with pytest.raises(UsageError):
            Workspace.from_tar(data)


def test_archive_bombs_exceed_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QuotaExceeded):
        Workspace.from_tar(tar(*({"name": f"{n}"} for n in range(30))), quota=Quota(inodes=20))
    with pytest.raises(QuotaExceeded):
        Workspace.from_tar(tar({"name": "a", "data": os.urandom(2000)}), quota=Quota(bytes=1000))
    with pytest.raises(QuotaExceeded):  # a member that promises a petabyte
        Workspace.from_tar(claim(2**50, tarfile.REGTYPE))
    with pytest.raises(UsageError, match="a header of"):  # a header that is itself too long
        Workspace.from_tar(claim(2**33, tarfile.XHDTYPE))
    headers = (claim(11, tarfile.XGLTYPE)[:512] + b"11 foo=bar\n".ljust(512, b"\0")) * 5000
    with pytest.raises(UsageError, match="recursion"):
        Workspace.from_tar(headers)
    monkeypatch.setattr(archive, "_MOST", 10_000)
    with pytest.raises(UsageError, match="longer than 26384 bytes"):
        Workspace.from_tar(gzip.compress(headers), quota=Quota(inodes=1, bytes=10_000))


def claim(size: int, type: bytes) -> bytes:
    one = tarfile.TarInfo("claimed")
    one.size, one.type = size, type
    return one.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
