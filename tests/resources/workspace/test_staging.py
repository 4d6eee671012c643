"""The same programs leave the same workspace behind, whether they work in an overlay or in a copy."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quintain.errors import ToolError, UsageError
from quintain.resources.workspace import Quota, QuotaExceeded, Workspace, shown
from quintain.resources.workspace.staging import Stage, collect, restage, stage
from quintain.state import Shared
from tests.resources.workspace import programs
from tests.resources.workspace.programs import laid_out, run

FILES = {
    "a.txt": "hello",
    "bin/tool": "#!/bin/sh\n",
    "d/one": "1",
    "d/two": "2",
    "d/e/three": "3",
    "big": "x" * 3_000_000,
}


@pytest.fixture(params=programs.MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return programs.mode(request.param)


@pytest.fixture
def workspace() -> Workspace:
    one = Workspace(FILES)
    one.chmod("bin/tool", 0o755)
    one.link("link", "d/one")
    return one


def paths(workspace: Workspace) -> list[str]:
    return [stat.path for stat in workspace.walk()]


PROGRAMS = {
    "nothing": "true",
    "write": "echo more >> a.txt; echo new > n; echo 1 > d/one",
    "folders": "mkdir -p x/y/z; touch x/y/f; rmdir d/e 2>/dev/null || rm -r d/e",
    "delete": "rm a.txt big; rm -r d",
    "opaque": "rm -r d; mkdir d; echo 4 > d/four",
    "opaque again": "rm -r d; mkdir d; echo 1 > d/one",
    "file to folder": "rm a.txt; mkdir a.txt; echo x > a.txt/x",
    "folder to file": "rm -r d; echo x > d",
    "folder to link": "rm -r d; ln -s bin d",
    "modes": "chmod 600 a.txt; chmod 500 d; chmod 000 d/e; chmod 4755 bin/tool",
    "touched": "touch a.txt; touch -d 2001-01-01 d/one",
    "the same bytes": "printf hello > a.txt; cp d/one x; mv x d/one",
    "links": "ln -s /etc/passwd out; ln -s ../.. up; ln -sf d/two link; ln a.txt hard; echo y >> hard",
    "moved": "mv d moved; mv a.txt moved/b",
    "special": "mkfifo pipe; rm a.txt; mkfifo a.txt; mkdir q; mkfifo q/p",
    "names": "touch \"$(printf 'n\\377')\" \"$(printf 'new\\nline')\" ' ' ./-rf 'a\\b'",
    "sparse": "truncate -s 1T huge; printf x | dd of=huge bs=1 seek=700000000000 conv=notrunc 2>/dev/null",
    "grown": "printf y | dd of=big bs=1 seek=2000000 conv=notrunc 2>/dev/null; truncate -s 5M big",
    "zeros": "head -c 3000000 /dev/zero > z; : > empty",
    "prefixes": "rm -r d; touch d!x d.; mkdir d; mkdir d!; touch d!/y",
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_leaves_the_same_behind(program: str, tmp_path: Path) -> None:
    left: dict[str, str] = {}
    for name in programs.MODES:
        if name != "copy" and programs.unmountable(name):
            continue
        workspace = Workspace(FILES)
        workspace.bind(Shared())
        workspace.link("link", "d/one")
        staged = laid_out(workspace, tmp_path / name, name)
        for again in range(2):
            run(staged, PROGRAMS[program] if not again else "echo last > last")
            before = workspace.fork()
            changes = collect(workspace, staged)
            assert changes == before.diff(workspace)
            assert collect(workspace, staged) == []
            assert Workspace.load(workspace.dump()).digest() == workspace.digest()
        # A fresh stage of what was collected is found to be just that.
        other = laid_out(workspace, tmp_path / f"{name} again", name)
        digest = workspace.digest()
        assert collect(workspace, other) == []
        left[name] = workspace.digest()
        assert left[name] == digest
    assert len(set(left.values())) == 1, left


def test_a_program_sees_what_python_wrote(workspace: Workspace, mode: str, tmp_path: Path) -> None:
    workspace.write("new/deep/file", "deep")
    workspace.delete("d", recursive=True)
    staged = laid_out(workspace, tmp_path, mode)
    run(staged, 'test "$(cat new/deep/file)" = deep; test ! -e d; test -x bin/tool; test "$(readlink link)" = d/one')
    workspace.delete("new", recursive=True)
    workspace.write("d/one", "again")
    workspace.write("bin/../bin/x", "x")
    restage(workspace, staged)
    run(staged, 'test ! -e new; test "$(cat link)" = again; test "$(ls d)" = one; test -x bin/tool; test -e bin/x')
    assert collect(workspace, staged) == []


def test_files_of_the_base_come_back(mode: str, tmp_path: Path) -> None:
    workspace = Workspace(FILES)
    start = workspace.snapshot()
    staged = laid_out(workspace, tmp_path, mode)
    run(staged, "rm -r d; mkdir d; touch d/x; rm a.txt; mkdir a.txt; touch a.txt/y; rm -r bin; touch bin; echo > big")
    collect(workspace, staged)
    middle = workspace.snapshot()
    for _ in range(2):
        workspace.restore(start)
        restage(workspace, staged)
        run(
            staged,
            'test "$(cat d/e/three)" = 3; test "$(ls d)" = "e\none\ntwo"; test "$(cat a.txt)" = hello; ls bin/tool',
        )
        assert collect(workspace, staged) == []
        workspace.restore(middle)
        restage(workspace, staged)
        run(staged, 'test "$(ls d)" = x; test -f bin; test "$(ls a.txt)" = y')
        assert collect(workspace, staged) == []


def test_times_are_those_of_the_world(mode: str, tmp_path: Path) -> None:
    workspace, world = Workspace(FILES), Shared()
    workspace.bind(world)
    world.clock.advance(1000)
    workspace.write("python", "x")
    staged = laid_out(workspace, tmp_path, mode)
    run(staged, 'test "$(stat -c %Y a.txt python)" = "0\n1000"; echo > a.txt; mkdir f; touch f/g; ln -s x s')
    collect(workspace, staged)
    at = {stat.path: stat.mtime for stat in workspace.walk()}
    assert {at[path] for path in ("a.txt", "f", "f/g", "s", "python")} == {1000}
    assert at["d/one"] == 0
    # A second look sees the same, and never the time of this machine.
    run(staged, 'test "$(stat -c %Y a.txt f f/g s d .)" = "1000\n1000\n1000\n1000\n0\n0"')
    workspace.write("later", "x")
    assert workspace.stat("later").mtime == 1001, "it is newer than what the program made"


def test_files_of_a_program_keep_their_order(mode: str, tmp_path: Path) -> None:
    workspace = Workspace()
    staged = laid_out(workspace, tmp_path, mode)
    run(staged, "touch -d @5 late; touch -d @3 early; touch -d @5 also")
    collect(workspace, staged)
    assert {stat.mtime for stat in workspace.walk()} == {0}
    run(staged, "test late -nt early; test ! late -nt also; test ! also -nt late")


def test_a_compiled_file_is_older_than_its_edited_source(mode: str, tmp_path: Path) -> None:
    workspace = Workspace({"a.c": "1"})
    staged = laid_out(workspace, tmp_path, mode)
    run(staged, "cp a.c a.o")
    collect(workspace, staged)
    workspace.write("a.c", "2")
    restage(workspace, staged)
    run(staged, "test a.c -nt a.o")


def test_a_time_that_was_put_back_hides_nothing(mode: str, tmp_path: Path) -> None:
    workspace = Workspace({"a": "hello", "b": "hello"})
    staged = laid_out(workspace, tmp_path, mode)
    for words in ("HELLO", "other"):
        run(staged, f"printf {words} > a; touch -r b a")
        assert [change.path for change in collect(workspace, staged)] == ["a"]
        assert workspace.text("a") == words


def test_modes_are_bits_and_nothing_more(mode: str, tmp_path: Path) -> None:
    workspace = Workspace({"a": "a"})
    staged = laid_out(workspace, tmp_path, mode)
    run(staged, "chmod 6751 a; mkdir -m 1777 t")
    collect(workspace, staged)
    assert (workspace.stat("a").mode, workspace.stat("t").mode) == (0o751, 0o777)
    assert workspace.stat("a").mtime == 0


def test_special_files_are_left_out(mode: str, tmp_path: Path) -> None:
    workspace = Workspace({"a": "a", "b": "b"})
    staged = laid_out(workspace, tmp_path, mode)
    run(staged, "mkfifo pipe; rm a; mkfifo a")
    assert [(change.path, change.after) for change in collect(workspace, staged)] == [("a", None)]
    workspace.write("a", "a file again")
    restage(workspace, staged)
    run(staged, "test -f a; test -p pipe")


@pytest.mark.parametrize(
    ("quota", "script"),
    [
        (Quota(bytes=100_000), "head -c 200000 /dev/urandom > x"),
        (Quota(bytes=100_000), "for i in 1 2 3 4; do head -c 30000 /dev/urandom > x$i; done"),
        (Quota(inodes=20), "for i in $(seq 30); do : > f$i; done"),
        (Quota(inodes=20), "for i in $(seq 20); do mkdir d$i; done"),
        (Quota(file_size=1000), "truncate -s 1001 x"),
        (
            Quota(path_length=30),
            "mkdir -p aaaaaaaaa/bbbbbbbbb/ccccccccc/d; cd aaaaaaaaa/bbbbbbbbb/ccccccccc/d; mkdir e",
        ),
    ],
)
def test_beyond_the_quota_nothing_is_collected(mode: str, tmp_path: Path, quota: Quota, script: str) -> None:
    workspace = Workspace({"a": "a", "b": "b"}, quota=quota)
    staged = laid_out(workspace, tmp_path, mode)
    digest = workspace.digest()
    run(staged, f"echo > b; rm a; {script}")
    with pytest.raises(QuotaExceeded):
        collect(workspace, staged)
    assert workspace.digest() == digest
    with pytest.raises(UsageError, match="restage"):
        collect(workspace, staged)
    restage(workspace, staged)
    run(staged, 'test "$(echo *)" = "a b"; test "$(cat b)" = b')
    assert collect(workspace, staged) == []


def test_a_stage_that_is_behind_is_not_collected(workspace: Workspace, mode: str, tmp_path: Path) -> None:
    staged = laid_out(workspace, tmp_path, mode)
    workspace.write("a.txt", "python was here")
    with pytest.raises(UsageError, match="restage"):
        collect(workspace, staged)
    restage(workspace, staged)
    assert collect(workspace, staged) == []


def test_a_fork_takes_over_the_stage(workspace: Workspace, mode: str, tmp_path: Path) -> None:
    staged = laid_out(workspace, tmp_path, mode)
    twin = workspace.fork()
    run(staged, "echo > twin")
    collect(twin, staged)
    assert twin.exists("twin")
    assert not workspace.exists("twin")
    restage(workspace, staged)
    run(staged, "test ! -e twin")


def test_another_base_needs_another_overlay(tmp_path: Path) -> None:
    staged = stage(Workspace({"a": "a"}), tmp_path / "one", overlay=True)
    with pytest.raises(UsageError, match="stands on base"):
        restage(Workspace({"b": "b"}), staged)
    copied = stage(Workspace({"a": "a"}), tmp_path / "two", overlay=False)
    restage(Workspace({"b": "b"}), copied)
    assert [path.name for path in copied.upper.iterdir()] == ["b"]


def test_a_stage_wants_a_folder_of_its_own(workspace: Workspace, tmp_path: Path) -> None:
    stage(workspace, tmp_path / "s", overlay=False)
    with pytest.raises(FileExistsError):
        stage(workspace, tmp_path / "s", overlay=False)


def test_all_stand_on_one_lower_tree(workspace: Workspace, tmp_path: Path) -> None:
    one = stage(workspace, tmp_path / "one", overlay=True)
    workspace.write("other", "x")
    two = stage(workspace, tmp_path / "two", overlay=True)
    assert one.lower == two.lower
    assert two.lower
    assert sorted(path.name for path in two.lower.iterdir()) == ["a.txt", "big", "bin", "d"]
    assert [path.name for path in two.upper.rglob("*") if path.is_file() and not path.is_symlink()] == ["other", "tool"]
    assert two.work
    assert not list(two.work.iterdir())


# -- any programs at all

NAMES = ("a", "b", "d", "d/a", "d/b", "d/d", "d/d/a", "d!", "e/a")
name = st.sampled_from(NAMES)
words = st.sampled_from(["", "1", "2", "hello"])

Deed = tuple[Callable[..., Any], str, str, str]
Plan = Sequence[tuple[Sequence[Deed], Sequence[Deed], bool]]
SHELL: list[Callable[..., str]] = [
    lambda x, y, w: f"[ -p {x} ] || printf '{w}' > {x}",
    lambda x, y, w: f"[ -p {x} ] || printf '{w}' >> {x}",
    lambda x, y, w: f"rm -rf {x}",
    lambda x, y, w: f"mkdir -p {x}",
    lambda x, y, w: f"mv -T {x} {y}",
    # Not into itself: what cp does then depends on the order in which a disk lists a folder.
    lambda x, y, w: "true" if y.startswith(x) else f"[ -e {y} ] || cp -rT {x} {y}",
    lambda x, y, w: f"ln -sfn {y} {x}",
    lambda x, y, w: f"chmod {'700' if w else '755'} {x}",
    lambda x, y, w: f"rm -rf {x}; mkdir {x}; printf '{w}' > {x}/a",
]
LASTING: list[Callable[..., str]] = [  # what stays in a folder and is not part of a workspace
    lambda x, y, w: f"ln -f {x} {y}",
    lambda x, y, w: f"mkfifo {x}",
]
PYTHON: list[Callable[..., object]] = [
    lambda one, x, y, w: one.write(x, w),
    lambda one, x, y, w: one.delete(x, recursive=True),
    lambda one, x, y, w: one.move(x, y),
    lambda one, x, y, w: one.copy(x, y),
    lambda one, x, y, w: one.make_folder(x),
    lambda one, x, y, w: one.chmod(x, 0o711),
]


def plans(shell: list[Callable[..., str]]) -> st.SearchStrategy[Plan]:
    one = st.lists(st.tuples(st.sampled_from(shell), name, name, words), max_size=5)
    two = st.lists(st.tuples(st.sampled_from(PYTHON), name, name, words), max_size=3)
    return st.lists(st.tuples(one, two, st.booleans()), max_size=4)


def history(lay_out: Callable[[Workspace, int], Stage], plan: Plan) -> list[str]:
    """Returns the digests of a plan, on the stage that `lay_out` gives for each turn."""
    workspace = Workspace({"a": "1", "d/a": "1", "d/b": "2", "d/d/a": "3"})
    snapshots, digests = [workspace.snapshot()], list[str]()
    for turn, (shell, python, back) in enumerate(plan):
        staged = lay_out(workspace, turn)
        restage(workspace, staged)
        assert collect(workspace, staged) == []
        script = "\n".join(f"({word(*arguments)}) 2>/dev/null || true" for word, *arguments in shell)
        run(staged, script)
        before = workspace.fork()
        assert collect(workspace, staged) == before.diff(workspace)
        digests.append(workspace.digest())
        snapshots.append(workspace.snapshot())
        for work, *arguments in python:
            try:
                work(workspace, *arguments)
            except ToolError as error:
                digests.append(str(error))
        if back:
            workspace.restore(snapshots[len(snapshots) // 2])
    return digests


def lasting(folder: Path, mode: str) -> Callable[[Workspace, int], Stage]:
    """One stage for all turns."""
    shutil.rmtree(folder, ignore_errors=True)
    stages: list[Stage] = []

    def lay_out(workspace: Workspace, turn: int) -> Stage:
        if not turn:
            stages.append(laid_out(workspace, folder, mode))
        return stages[0]

    return lay_out


@pytest.mark.parametrize("mode", ["overlay", pytest.param("userxattr", marks=pytest.mark.slow)])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans([*SHELL, *LASTING]))
def test_any_programs_leave_the_same_behind(mode: str, tmp_path: Path, plan: Plan) -> None:
    programs.mode(mode)
    assert history(lasting(tmp_path / "copy", "copy"), plan) == history(lasting(tmp_path / mode, mode), plan)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans(SHELL))
def test_a_stage_that_goes_on_is_as_good_as_a_new_one(tmp_path: Path, plan: Plan) -> None:
    def fresh(workspace: Workspace, turn: int) -> Stage:
        shutil.rmtree(tmp_path / "fresh", ignore_errors=True)
        return laid_out(workspace, tmp_path / "fresh", "copy")

    assert history(lasting(tmp_path / "copy", "copy"), plan) == history(fresh, plan)


def test_names_are_shown_as_text(tmp_path: Path) -> None:
    workspace = Workspace()
    staged = laid_out(workspace, tmp_path, "copy")
    run(staged, "touch \"$(printf 'n\\377')\"")
    (change,) = collect(workspace, staged)
    assert shown(change.path) == "n\\xff"
    assert workspace.read(change.path) == workspace.read(b"n\xff") == b""
