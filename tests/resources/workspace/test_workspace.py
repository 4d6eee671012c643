"""Operations on files, and the errors that the model reads."""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable

import pytest

from quintain.errors import ToolError, UsageError
from quintain.resources.workspace import FileChange, Quota, QuotaExceeded, Workspace, shown
from quintain.resources.workspace.images import Entry
from quintain.state import Shared


@pytest.fixture
def files() -> Workspace:
    one = Workspace({"a.txt": "hello", "d/one": "1", "d/two": "2", "d/e/three": b"\xff"})
    one.link("link", "d")
    one.link("d/up", "../a.txt")
    one.link("mounted", "/workspace/d/one")
    return one


def test_read_returns_bytes_or_text(files: Workspace) -> None:
    assert files.read("a.txt") == b"hello"
    assert files.read(b"a.txt", offset=1, size=2) == b"el"
    assert files.text("/workspace/./d//up") == "hello"
    assert files.text("link/../d/one") == files.text("mounted") == "1"
    assert files.list("link") == ["e", "one", "two", "up"]
    assert files.list() == files.list("/workspace") == ["a.txt", "d", "link", "mounted"]
    assert [stat.path for stat in files.walk("d")] == ["d/e", "d/e/three", "d/one", "d/two", "d/up"]
    assert files.exists("link/one")
    assert not files.exists("link/three")
    assert not files.exists("../a.txt")


def test_stat_describes_the_file_or_the_link(files: Workspace) -> None:
    one = files.stat("link/up")
    assert (one.path, one.kind, one.mode, one.mtime, one.size) == ("a.txt", "file", 0o644, 0, 5)
    link = files.stat("link", follow=False)
    assert (link.path, link.kind, link.mode, link.target, link.size) == ("link", "symlink", 0o777, "d", 1)
    assert files.stat("").kind == files.stat("d").kind == "folder"
    assert files.stat("d/one").digest != files.stat("d/two").digest


def test_writing_goes_through_links(files: Workspace) -> None:
    files.write("link/new/file", "x")
    assert files.text("d/new/file") == "x"
    files.append("mounted", "1")
    assert files.text("d/one") == "11"
    files.link("dangling", "d/not yet")
    files.write("dangling", "now")
    assert files.text("d/not yet") == "now"
    files.chmod("mounted", 0o700)
    assert files.stat("d/one").mode == 0o700
    files.write("d/one", "again")
    assert files.stat("d/one").mode == 0o700


def test_links_are_moved_copied_and_deleted_as_such(files: Workspace) -> None:
    files.move("link", "d/inner")
    files.copy("mounted", "copied")
    assert files.stat("d/inner", follow=False).target == "d"
    assert files.stat("copied", follow=False).target == "/workspace/d/one"
    files.delete("copied")
    files.delete("mounted")
    assert files.exists("d/one")


def test_moving_and_copying_folders(files: Workspace) -> None:
    files.copy("d", "x/y")
    files.move("d", "z")
    assert files.text("x/y/one") == files.text("z/one") == "1"
    assert files.list() == ["a.txt", "link", "mounted", "x", "z"]
    files.move("z/one", "a.txt")
    assert files.text("a.txt") == "1"
    files.copy("a.txt", "a.txt")
    assert files.text("a.txt") == "1"


def test_times_come_from_the_world() -> None:
    files, world = Workspace({"a": "1"}), Shared()
    files.bind(world)
    files.write("b", "2")
    assert files.stat("b").mtime == 1, "newer than the base"
    world.clock.advance(99.9)
    files.write("d/c", "3")
    files.move("b", "m")
    files.copy("m", "n")
    files.chmod("a", 0o600)
    assert {stat.path: stat.mtime for stat in files.walk()} == {"a": 0, "d": 99, "d/c": 99, "m": 1, "n": 99}


WRONG: list[tuple[Callable[[Workspace], object], str]] = [
    (lambda one: one.read("none"), "there is no 'none'"),
    (lambda one: one.read("none/x"), "there is no 'none'"),
    (lambda one: one.read("d"), "'d' is a folder"),
    (lambda one: one.read(""), "'/workspace' is a folder"),
    (lambda one: one.read("a.txt/x"), "'a.txt' is no folder"),
    (lambda one: one.read("a.txt/.."), "'a.txt' is no folder"),
    (lambda one: one.text("d/e/three"), "byte 0 of 1 is no UTF-8"),
    (lambda one: one.list("a.txt"), "'a.txt' is a file"),
    (lambda one: one.read("../x"), "leads outside"),
    (lambda one: one.read("d/../../x"), "leads outside"),
    (lambda one: one.read("/etc/passwd"), "leads outside"),
    (lambda one: one.read("/"), "leads outside"),
    (lambda one: one.read("/workspace/../x"), "leads outside"),
    (lambda one: one.read("a\0b"), "holds a NUL"),
    (lambda one: one.read("\ud800"), r"cannot hold U\+D800"),
    (lambda one: one.write("a.txt", "\ud800"), r"cannot hold U\+D800"),
    (lambda one: one.write("x" * 256, ""), "256 bytes, at most 255"),
    (lambda one: one.write("/".join(["x" * 200] * 30), ""), "5828 bytes, of 4095"),
    (lambda one: one.write("d", ""), "'d' is a folder"),
    (lambda one: one.write("a.txt/x", ""), "'a.txt' is no folder"),
    (lambda one: one.write("new/../x", ""), "there is no 'new'"),
    (lambda one: one.write("", ""), "'/workspace' is a folder"),
    (lambda one: one.make_folder("a.txt"), "there already, a file"),
    (lambda one: one.link("out", "/etc/passwd"), "leads outside"),
    (lambda one: one.link("d/out", "../../x"), "leads outside"),
    (lambda one: one.link("self", "self"), "more than 40 symlinks"),
    (lambda one: one.link("a.txt", "d"), "there already"),
    (lambda one: one.link("empty", ""), "needs a target"),
    (lambda one: one.delete("d"), "not empty: it holds 5"),
    (lambda one: one.delete("", recursive=True), "cannot be deleted"),
    (lambda one: one.delete("none", recursive=True), "there is no 'none'"),
    (lambda one: one.move("d", "d/e/f"), "cannot go into itself"),
    (lambda one: one.move("", "x"), "cannot go into itself"),
    (lambda one: one.move("a.txt", "d"), "is a folder; give the new name"),
    (lambda one: one.copy("none", "x"), "there is no 'none'"),
    (lambda one: one.chmod("a.txt", 0o4755), "0 to 0o777"),
    (lambda one: one.chmod("", 0o700), "are fixed"),
    (lambda one: one.glob("../*"), "cannot hold"),
    (lambda one: one.glob("/etc/*"), "leads outside"),
    (lambda one: one.search(""), "nothing to search"),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG)
def test_errors_name_the_problem_and_change_nothing(
    files: Workspace, wrong: Callable[[Workspace], object], words: str
) -> None:
    digest = files.digest()
    with pytest.raises(ToolError, match=words) as caught:
        wrong(files)
    assert str(caught.value).encode()
    assert files.digest() == digest


def test_planted_links_lead_nowhere() -> None:
    """As a program leaves them; `link` would refuse."""
    files = Workspace({"d/x": "x"})
    for number, target in enumerate(["/etc/passwd", "../..", "l2", "l4", "l3", "d/x/y"]):
        entry = Entry("symlink", 0o777, 0, target=target.encode())
        files.commit(files.image, {f"l{number}".encode(): entry})
    for number in range(6):
        with pytest.raises(ToolError):
            files.read(f"l{number}")
        with pytest.raises(ToolError):
            files.write(f"l{number}/x", "")


def test_names_that_are_no_text() -> None:
    files = Workspace({b"d\xff/x": "x"})
    assert files.list() == ["d\udcff"]
    assert files.read("d\udcff/x") == files.read(b"d\xff/x") == b"x"
    assert [shown(path) for path in files.glob("**/x")] == [r"d\xff/x"]
    with pytest.raises(ToolError) as caught:
        files.read(b"d\xff")
    assert r"d\xff" in str(caught.value).encode().decode().replace("\\\\", "\\")
    assert Workspace.load(files.dump()).digest() == files.digest()
    assert Workspace.from_tar(files.to_tar()).list() == files.list()


@pytest.mark.parametrize(
    ("quota", "write"),
    [
        (Quota(bytes=10), lambda one: one.write("b", "x" * 6)),
        (Quota(bytes=10), lambda one: one.append("a", "x" * 6)),
        (Quota(bytes=10), lambda one: (one.copy("a", "b"), one.copy("a", "c"))),
        (Quota(inodes=2), lambda one: one.write("x/y", "")),
        (Quota(file_size=6), lambda one: one.append("a", "xx")),
        (Quota(path_length=6), lambda one: one.make_folder("abc/def")),
    ],
)
def test_a_quota_holds(quota: Quota, write: Callable[[Workspace], object]) -> None:
    files = Workspace({"a": "hello"}, quota=quota)
    with pytest.raises(QuotaExceeded):
        write(files)
    files.write("a", "less")
    assert Workspace.load(files.fork().dump()).quota == quota
    assert files.digest() != Workspace({"a": "hello"}).digest()


def test_workspace_over_its_quota_may_shrink() -> None:
    large = Workspace({"a": "x" * 100, "b": "y" * 100})
    files = Workspace(quota=Quota(bytes=50))
    files.restore(large.snapshot())
    files.write("a", "x" * 60)
    files.delete("b")
    with pytest.raises(QuotaExceeded):
        files.append("a", "x")


def test_a_difference_names_paths_and_both_sides(files: Workspace) -> None:
    twin = files.fork()
    assert files.diff(twin) == []
    twin.write("a.txt", "other")
    twin.delete("d/one")
    twin.write("new", "x")
    twin.chmod("d/two", 0o600)
    twin.write("d/e/three", b"\xff")  # the same again
    changes = files.diff(twin)
    assert [change.path for change in changes] == ["a.txt", "d/one", "d/two", "new"]
    assert changes[1] == FileChange("d/one", files.stat("d/one"), None)
    assert changes[3] == FileChange("new", None, twin.stat("new"))
    assert twin.digest() != files.digest()
    assert [change.path for change in twin.diff(Workspace({"a.txt": "other"}))] != []


def test_a_tree_of_snapshots(files: Workspace) -> None:
    snapshots = [files.snapshot()]
    for number in range(50):
        files.restore(snapshots[number // 2])
        files.write(f"f{number}", str(number))
        snapshots.append(files.snapshot())
    files.restore(snapshots[50])
    branch, number = set[str](), 50
    while number:
        branch.add(f"f{number - 1}")
        number = (number - 1) // 2
    assert {name for name in files.list() if name.startswith("f")} == branch


def test_forks_ten_thousand_deep() -> None:
    files = Workspace({f"d/{n}": "x" for n in range(10)})
    first = files
    for number in range(10_000):
        files = files.fork()
        files.write(f"d/{number % 25}", str(number))
    assert len(files.image.entries.layers) <= 15
    assert files.text("d/24") == "9999"
    assert len(files.list("d")) == 25
    assert len(first.diff(files)) == 25
    assert Workspace.load(files.dump()).digest() == files.digest()


@pytest.mark.parametrize("others", [0, 100])
def test_files_made_and_deleted_leave_nothing(others: int) -> None:
    files = Workspace({"a": "a"})
    for number in range(others):
        files.write(f"other{number}", "x")
    for number in range(2000):
        files.write(f"t{number}", "x")
        files.write("a", f"{number}")
        files.delete(f"t{number}")
    assert sum(map(len, files.image.entries.layers)) <= 2 * others + 2


def test_two_threads_are_told(files: Workspace) -> None:
    refused: list[str] = []
    written: list[str] = []

    def work(name: str) -> None:
        for number in range(300):
            try:
                files.write(f"{name}/{number}", name)
                written.append(f"{name}/{number}")
            except UsageError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.glob("[xyz]/*") == sorted(written)
    assert all("one thread at a time" in words for words in refused)
    assert files.digest() == Workspace.load(files.dump()).digest()


def test_a_write_that_another_one_overtook_is_refused(files: Workspace) -> None:
    before = files.image
    files.write("a.txt", "first")
    with pytest.raises(UsageError, match="give the other one a fork"):
        files.commit(before, {b"a.txt": None})
    assert files.text("a.txt") == "first"


def test_workspace_is_copied_as_any_object(files: Workspace) -> None:
    twin = copy.deepcopy(files)
    twin.write("x", "x")
    assert not copy.copy(files).exists("x")
    assert repr(files) == "Workspace(9 entries, 8 bytes)"


def test_glob_matches_patterns(files: Workspace) -> None:
    assert files.glob("*") == ["a.txt", "d", "link", "mounted"]
    assert files.glob("*.txt") == ["a.txt"]
    assert files.glob("d/?[nw]?") == ["d/one", "d/two"]
    assert files.glob("**/three") == ["d/e/three"]
    assert files.glob("**") == [stat.path for stat in files.walk()]
    assert files.glob("d/**/e/**") == ["d/e", "d/e/three"]
    assert files.glob("/workspace/d/e/*") == ["d/e/three"]
    assert files.glob("D/*") == []
    assert files.glob("**/" * 30 + "a.txt") == ["a.txt"]


def test_a_pattern_takes_no_time() -> None:
    files = Workspace({"/".join(["a" * 200] * 20): "x"})
    assert files.glob("**/*" * 40 + "b") == []
    assert files.glob("/".join(["*a" * 60 + "b"] * 20)) == []


def test_search_finds_lines(files: Workspace) -> None:
    files.write("code/x.py", "import os\r\nos.exit()\n")
    files.write("code/y.txt", "no import\n\u2028still line 2 import")
    files.write("binary", b"import\0")
    found = files.search("import")
    assert [(match.path, match.line) for match in found] == [("code/x.py", 1), ("code/y.txt", 1), ("code/y.txt", 2)]
    assert found[0].text == "import os"
    assert [match.path for match in files.search("import", glob="**/*.py")] == ["code/x.py"]
    assert [match.line for match in files.search(re.compile(r"^os"), "code")] == [2]
    assert [match.path for match in files.search("import", "code/y.txt", limit=1)] == ["code/y.txt"]
    assert files.search("import", "d") == []
