"""Hostile files of a program: no outside file is read, no read hangs, and the stage can be cleared."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from quintain.resources.workspace import ImageError, Quota, QuotaExceeded, Workspace, disk
from quintain.resources.workspace.disk import Cursor
from quintain.resources.workspace.staging import collect, restage
from tests.resources.workspace import programs
from tests.resources.workspace.programs import laid_out, python, run


@pytest.fixture(params=programs.MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return programs.mode(request.param)


# Newer versions warn of a fork where pytest has threads; the children here start none and end by themselves.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def nest(depth: int, name: str = "n" * 50) -> None:
    """Folders in folders, further down than any path reaches."""
    for _ in range(depth):
        Path(name).mkdir()
        os.chdir(name)
    Path("bottom").write_text("deep")


def test_links_that_were_planted_are_not_followed(mode: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    (secret / "inner").mkdir(parents=True)
    (secret / "key").write_text("secret")
    workspace = Workspace({"d/e/f": "1", "a": "a"})
    staged = laid_out(workspace, tmp_path, mode)
    run(
        staged,
        f"rm -r d; ln -s {secret} d; ln -s {secret}/key k; rm a; ln -s {secret}/key a; mkdir x; ln -s {secret} x/y",
    )
    collect(workspace, staged)
    kinds = {one.path: one.kind for one in workspace.walk()}
    assert kinds == {"a": "symlink", "d": "symlink", "k": "symlink", "x": "folder", "x/y": "symlink"}
    # What Python writes there afterwards stays in the folder as well.
    workspace.delete("d")
    workspace.delete("a")
    workspace.delete("x", recursive=True)
    workspace.write("d/key", "mine")
    workspace.write("a", "mine")
    restage(workspace, staged)
    staged.dirty = True
    restage(workspace, staged)
    assert (secret / "key").read_text() == "secret"
    assert sorted(path.name for path in secret.iterdir()) == ["inner", "key"]
    run(staged, 'test "$(cat d/key a)" = minemine')


@pytest.mark.parametrize("is_root", [True, False])
def test_folders_that_keep_everybody_out(is_root: bool) -> None:
    workspace = Workspace({"a/b": "1"})
    script = "mkdir -p d/e; echo x > d/e/f; chmod 000 d/e/f; chmod 000 d/e; chmod 400 d; chmod 000 a/b; chmod 100 a"

    def work(folder: Path) -> None:
        staged = laid_out(workspace, folder, "copy")
        run(staged, script)
        for _ in range(2):
            collect(workspace, staged)
            modes = {one.path: one.mode for one in workspace.walk()}
            assert modes == {"a": 0o100, "a/b": 0, "d": 0o400, "d/e": 0, "d/e/f": 0}
        assert workspace.read("d/e/f") == b"x\n"
        assert stat.S_IMODE((staged.upper / "d").stat().st_mode) == 0o400
        run(staged, "chmod 000 .")
        assert collect(workspace, staged) == []
        assert stat.S_IMODE(staged.upper.stat().st_mode) == 0o755
        workspace.write("d/e/f", "new")
        workspace.write("d/e/g", "new")
        restage(workspace, staged)
        assert collect(workspace, staged) == []
        other = laid_out(workspace, folder / "other", "copy")
        assert collect(workspace, other) == []
        staged.dirty = True
        run(staged, "chmod 000 .")
        restage(workspace, staged)
        assert collect(workspace, staged) == []

    if not is_root and os.geteuid():
        pytest.skip("only root can become somebody else")
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        if is_root:
            work(Path(folder))
        else:
            Path(folder).chmod(0o777)
            assert as_nobody(lambda: work(Path(folder)))


def as_nobody(work: Callable[[], object]) -> bool:
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            work()
            status = 0
        except Exception:  # noqa: BLE001 (the parent only learns that there was one)
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_paths_longer_than_any_path(tmp_path: Path) -> None:
    workspace = Workspace(quota=Quota(path_length=100_000))
    staged = laid_out(workspace, tmp_path, "copy")
    python(staged, lambda: nest(200))
    changes = collect(workspace, staged)
    assert len(changes) == 201
    assert workspace.text("/".join([*["n" * 50] * 200, "bottom"])) == "deep"
    again = laid_out(workspace, tmp_path / "again", "copy")
    assert collect(workspace, again) == []
    workspace.delete("n" * 50, recursive=True)
    restage(workspace, staged)
    assert list(staged.upper.iterdir()) == []
    with Cursor(tmp_path) as cursor:  # pytest could not
        cursor.remove(b"again")


def test_a_tree_too_deep_is_refused_and_cleared(tmp_path: Path) -> None:
    workspace = Workspace({"a": "a"}, quota=Quota(path_length=500))
    staged = laid_out(workspace, tmp_path, "copy")
    python(staged, lambda: nest(400, "n"))
    with pytest.raises(QuotaExceeded, match="more than 500 bytes"):
        collect(workspace, staged)
    restage(workspace, staged)
    assert [path.name for path in staged.upper.iterdir()] == ["a"]


def test_sockets_and_pipes_do_not_hang(tmp_path: Path) -> None:
    workspace = Workspace()
    staged = laid_out(workspace, tmp_path, "copy")
    os.mkfifo(staged.upper / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(staged.upper / "socket"))
    (staged.upper / "file").write_text("x")
    assert [change.path for change in collect(workspace, staged)] == ["file"]
    assert workspace.list() == ["file"]
    workspace.make_folder("pipe")
    restage(workspace, staged)
    assert (staged.upper / "pipe").is_dir()


def test_a_file_that_became_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    fallback = threading.Timer(5, lambda: os.close(os.open(tmp_path / "pipe", os.O_WRONLY)))
    fallback.start()
    with Cursor(tmp_path) as cursor:
        fd = cursor.opened(b"pipe")
    assert fallback.is_alive(), "it waited for somebody to write"
    fallback.cancel()
    assert disk.content(fd, most=10).size == 0
    os.close(fd)


def test_a_sparse_file_is_read_where_there_is_something(tmp_path: Path) -> None:
    workspace = Workspace(quota=Quota(bytes=3 * 2**20))
    staged = laid_out(workspace, tmp_path, "copy")
    with (staged.upper / "sparse").open("wb") as file:
        file.seek(2**39)
        file.write(b"middle")
        file.truncate(2**40)
    collect(workspace, staged)
    assert workspace.read("sparse", offset=2**39, size=6) == b"middle"
    assert workspace.image.stored <= 2**20
    again = laid_out(workspace, tmp_path / "again", "copy")
    status = (again.upper / "sparse").stat()
    assert (status.st_size, status.st_blocks * 512 < 2**22) == (2**40, True)


@pytest.mark.parametrize("size", [400, 1_000_000])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    workspace = Workspace()
    staged = laid_out(workspace, tmp_path, "copy")
    file = staged.upper / "file"
    file.write_bytes(b"x" * 1000)
    real = os.lseek

    def meddle(fd: int, offset: int, how: int) -> int:
        os.truncate(file, size)
        return real(fd, offset, how)

    monkeypatch.setattr(os, "lseek", meddle)
    collect(workspace, staged)
    monkeypatch.undo()
    assert workspace.read("file") == (b"x" * min(size, 1000)).ljust(1000, b"\0")
    collect(workspace, staged)
    assert workspace.read("file") == (b"x" * min(size, 1000)).ljust(size, b"\0")


def test_a_folder_that_moves_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ImageError, match="moved while it was read"), Cursor(tmp_path / "root") as cursor:
        cursor.go(b"a/b")
        (tmp_path / "root" / "a" / "b").rename(tmp_path / "elsewhere" / "b")
        cursor.up()


def test_a_stage_without_disk_is_laid_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace({"a": "a"})
    staged = laid_out(workspace, tmp_path, "copy")
    workspace.write("b", "x" * 100)
    workspace.delete("a")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        restage(workspace, staged)
    monkeypatch.undo()
    restage(workspace, staged)
    assert [path.name for path in staged.upper.iterdir()] == ["b"]
    assert collect(workspace, staged) == []


def test_whiteouts_in_the_form_of_attributes_are_understood(tmp_path: Path) -> None:
    workspace = Workspace({"a": "a", "b": "b"})
    staged = laid_out(workspace, tmp_path, "userxattr")
    (staged.upper / "a").touch()
    (staged.upper / "b").touch()
    try:
        os.setxattr(staged.upper / "a", "user.overlay.whiteout", b"")
    except OSError as error:
        pytest.skip(f"no user attributes here: {error}")
    collect(workspace, staged)
    assert workspace.list() == ["b"]
    assert workspace.read("b") == b""
