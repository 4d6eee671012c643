"""Bases of workspaces are built once, shared, and checked."""

from __future__ import annotations

import os
import resource as limits
import subprocess
import sys
from pathlib import Path

import pytest

from quintain.errors import UsageError
from quintain.resources.workspace import ImageError, Quota, QuotaExceeded, Workspace, bases
from quintain.resources.workspace.content import CHUNK
from quintain.resources.workspace.staging import stage


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path / "cache"))
    forget()
    return tmp_path / "cache" / "workspaces"


def forget() -> None:
    """As in a new process."""
    bases._opened.clear()  # pyright: ignore[reportPrivateUsage]
    bases._recent.clear()  # pyright: ignore[reportPrivateUsage]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_one_content_is_one_base(cache: Path) -> None:
    one, two = Workspace({"a": "1", "b/c": "2"}), Workspace({b"/workspace/b//c": b"2", b"./a": "1"})
    assert one.image.base is two.image.base
    assert one.digest() == two.digest()
    assert files(cache) == [f"{one.image.base.digest}.base"]


def test_without_files_nothing_is_written(cache: Path) -> None:
    Workspace().write("a", "a")
    Workspace({})
    assert files(cache) == []


def test_a_folder_on_disk_begins_one(cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "tool").write_text("run")
    (folder / "d" / "tool").chmod(0o755)
    (folder / "link").symlink_to("d/tool")
    (folder / "big").write_bytes(os.urandom(2 * CHUNK + 5))
    with (folder / "sparse").open("wb") as file:
        file.truncate(2**33)
    workspace = Workspace(folder)
    assert workspace.text("link") == "run"
    assert workspace.stat("d/tool").mode == 0o755
    assert workspace.read("big") == (folder / "big").read_bytes()
    assert workspace.stat("sparse").size == 2**33
    assert {stat.mtime for stat in workspace.walk()} == {0}
    assert sum(path.stat().st_size for path in cache.iterdir()) < 3 * CHUNK
    os.mkfifo(folder / "d" / "pipe")
    with pytest.raises(UsageError, match="pipe is neither"):
        Workspace(folder)


def test_a_folder_is_bound_by_the_quota(cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}").write_bytes(b"x" * 1000)
    with pytest.raises(QuotaExceeded, match="9000 bytes"):
        Workspace(folder, quota=Quota(bytes=9000))
    with pytest.raises(QuotaExceeded, match="9 files"):
        Workspace(folder, quota=Quota(inodes=9))
    with pytest.raises(QuotaExceeded, match="of 999 for a file"):
        Workspace({"a": "x" * 1000}, quota=Quota(file_size=999))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"../a": ""}, "not a path of a file"),
        ({"/etc/passwd": ""}, "outside"),
        ({"": ""}, "not a path of a file"),
        ({"a\0": ""}, "NUL"),
        ({7: ""}, "not a path of a file"),
        ({"a": 7}, "holds a int"),
        ({"a": "", "a/b": ""}, "stands in 'a', which is a file"),
        (["a"], "not with a list"),
        ("a", "not with a str"),
        (Path("/nowhere/at/all"), "neither a folder nor"),
        (Path("/dev/null"), "neither a folder nor"),
    ],
)
def test_bad_sources_of_a_workspace_are_refused(wrong: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Workspace(wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # wrong on purpose


def test_a_dump_needs_its_base(cache: Path) -> None:
    workspace = Workspace({"a": "1", "b": "2"})
    workspace.write("a", "3")
    dump = workspace.dump()
    assert Workspace.load(dump).read("b") == b"2"
    (path,) = cache.iterdir()
    path.unlink()
    forget()
    with pytest.raises(ImageError, match="make the same workspace here first"):
        Workspace.load(dump)
    Workspace({"a": "1", "b": "2"})
    assert Workspace.load(dump).digest() == workspace.digest()


def test_a_base_that_vanished_is_made_again(cache: Path) -> None:
    workspace = Workspace({"a": "1"})
    (path,) = cache.iterdir()
    path.unlink()
    assert workspace.fork().read("a") == b"1"
    Workspace({"a": "1"})
    assert files(cache) == [path.name]


@pytest.mark.parametrize("where", [0, 3, -1, -25, -40])
def test_a_base_that_was_changed_is_noticed(cache: Path, where: int) -> None:
    workspace = Workspace({"a": "hello", "b": b"\xff" * 100})
    dump = workspace.dump()
    (path,) = cache.iterdir()
    forget()
    data = bytearray(path.read_bytes())
    data[where] ^= 1
    path.unlink()
    path.write_bytes(data)
    with pytest.raises(ImageError, match="was changed"):
        Workspace.load(dump).read("a")


@pytest.mark.parametrize("size", [0, 1, 20, 60])
def test_a_base_that_was_cut_is_noticed_and_made_again(cache: Path, size: int) -> None:
    workspace = Workspace({"a": "hello", "b": b"\xff" * 100})
    (path,) = cache.iterdir()
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:size])
    forget()
    with pytest.raises(ImageError, match="was changed"):
        Workspace.load(workspace.dump())
    assert Workspace({"a": "hello", "b": b"\xff" * 100}).read("a") == b"hello"
    assert path.read_bytes() == data


def test_a_full_disk_leaves_nothing_behind(cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}").write_bytes(os.urandom(300_000))
    old = limits.getrlimit(limits.RLIMIT_FSIZE)
    limits.setrlimit(limits.RLIMIT_FSIZE, (500_000, old[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            Workspace(folder)
        assert files(cache) == []
    finally:
        limits.setrlimit(limits.RLIMIT_FSIZE, old)
    workspace = Workspace(folder)
    assert len(files(cache)) == 1
    limits.setrlimit(limits.RLIMIT_FSIZE, (200_000, old[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            stage(workspace, tmp_path / "stage", overlay=True)
    finally:
        limits.setrlimit(limits.RLIMIT_FSIZE, old)
    assert len(files(cache)) == 1
    stage(workspace, tmp_path / "again", overlay=True)
    assert len(files(cache)) == 2


def test_processes_may_build_at_the_same_time(cache: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from quintain.resources.workspace import Workspace\n"
        "from quintain.resources.workspace.staging import stage\n"
        "one = Workspace({f'{n % 7}/{n}': str(n) * 100 for n in range(500)})\n"
        "stage(one, Path(sys.argv[1]), overlay=True); print(one.digest())"
    )
    several = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / f"{n}")], stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    assert len({one.communicate(timeout=60)[0] for one in several}) == 1
    assert [one.returncode for one in several] == [0] * 4
    assert [Path(name).suffix for name in files(cache)] == [".base", ".tree"]
    assert len(list((cache / files(cache)[1]).rglob("*"))) == 507
