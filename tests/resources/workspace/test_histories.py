"""Histories of a workspace agree with a plain dict that is copied for each fork."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from quintain.errors import ToolError
from quintain.resources.workspace import FileChange, Quota, Workspace, WorkspaceSnapshot
from quintain.state import Shared

Plain = dict[str, tuple[int, bytes | None]]
"""Path to permissions and content; None for a folder."""

START: dict[str, str | bytes] = {"a": "1", "a!": "2", "b/a": "3", "b/b/a": "4", "b.": "5"}
QUOTA = Quota(bytes=60, inodes=14, path_length=9)

names = st.sampled_from(["a", "b", "a!", "b.", "ä"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
data = st.sampled_from([b"", b"1", b"\0\0\0", b"hello", b"0123456789" * 3])
snapshots: Bundle[tuple[WorkspaceSnapshot, Plain]] = Bundle("snapshots")
twins: Bundle[tuple[Workspace, Plain]] = Bundle("twins")


class Refused(Exception):
    """The dict says no."""


def plain_start() -> Plain:
    found: Plain = {path: (0o644, str(words).encode()) for path, words in START.items()}
    return found | {"b": (0o755, None), "b/b": (0o755, None)}


def parents(path: str) -> list[str]:
    steps = path.split("/")[:-1]
    return ["/".join(steps[: n + 1]) for n in range(len(steps))]


def put(plain: Plain, path: str, change: Callable[[bytes], bytes]) -> None:
    make_room(plain, path)
    mode, old = plain.get(path, (0o644, b""))
    if old is None:
        raise Refused
    plain[path] = (mode, change(old))


def make_room(plain: Plain, path: str) -> None:
    for folder in parents(path):
        if plain.setdefault(folder, (0o755, None))[1] is not None:
            raise Refused


def make_folder(plain: Plain, path: str) -> None:
    make_room(plain, path)
    if plain.setdefault(path, (0o755, None))[1] is not None:
        raise Refused


def inside(plain: Plain, path: str) -> list[str]:
    return [other for other in plain if other == path or other.startswith(f"{path}/")]


def reach(plain: Plain, path: str) -> None:
    if path not in plain:
        raise Refused


def transfer(plain: Plain, source: str, target: str, *, is_move: bool) -> None:
    reach(plain, source)
    if plain.get(target, (0, b""))[1] is None:
        raise Refused
    if f"{target}/".startswith(f"{source}/") and target != source:
        raise Refused
    moved = {target + path[len(source) :]: plain[path] for path in inside(plain, source)}
    make_room(plain, target)
    if is_move:
        for path in inside(plain, source):
            del plain[path]
    plain |= moved


def delete(plain: Plain, path: str, *, recursive: bool) -> None:
    reach(plain, path)
    if not recursive and len(inside(plain, path)) > 1:
        raise Refused
    for gone in inside(plain, path):
        del plain[gone]


def chmod(plain: Plain, path: str, mode: int) -> None:
    reach(plain, path)
    plain[path] = (mode, plain[path][1])


def stored(plain: Plain) -> int:
    return sum(len(content) for _, content in plain.values() if content and any(content))


def observed(workspace: Workspace) -> Plain:
    return {
        stat.path: (stat.mode, None if stat.kind == "folder" else workspace.read(stat.path))
        for stat in workspace.walk()
    }


def fits(after: Plain, before: Plain) -> None:
    long = [path for path in after if len(path.encode()) > QUOTA.path_length]
    many = len(after) > max(QUOTA.inodes, len(before))
    if long or many or stored(after) > max(QUOTA.bytes, stored(before)):
        raise Refused


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.workspace = Workspace(START, quota=QUOTA)
        self.world = Shared()
        self.workspace.bind(self.world)
        self.plain = plain_start()

    def both(self, real: Callable[[Workspace], object], model: Callable[[Plain], object]) -> None:
        after = dict(self.plain)
        try:
            model(after)
            fits(after, self.plain)
            is_refused = False
            self.plain = after
        except Refused:
            is_refused = True
        digest = self.workspace.digest()
        try:
            real(self.workspace)
        except ToolError:
            assert is_refused
            assert self.workspace.digest() == digest
        else:
            assert not is_refused

    @rule(path=paths, data=data)
    def write(self, path: str, data: bytes) -> None:
        self.both(lambda one: one.write(path, data), lambda plain: put(plain, path, lambda _: data))

    @rule(path=paths, data=data)
    def append(self, path: str, data: bytes) -> None:
        self.both(lambda one: one.append(path, data), lambda plain: put(plain, path, lambda old: old + data))

    @rule(path=paths)
    def make_folder(self, path: str) -> None:
        self.both(lambda one: one.make_folder(path), lambda plain: make_folder(plain, path))

    @rule(path=paths, recursive=st.booleans())
    def delete(self, path: str, *, recursive: bool) -> None:
        self.both(
            lambda one: one.delete(path, recursive=recursive), lambda plain: delete(plain, path, recursive=recursive)
        )

    @rule(source=paths, goal=paths)
    def move(self, source: str, goal: str) -> None:
        self.both(lambda one: one.move(source, goal), lambda plain: transfer(plain, source, goal, is_move=True))

    @rule(source=paths, goal=paths)
    def copy(self, source: str, goal: str) -> None:
        self.both(lambda one: one.copy(source, goal), lambda plain: transfer(plain, source, goal, is_move=False))

    @rule(path=paths, mode=st.sampled_from([0o600, 0o777]))
    def chmod(self, path: str, mode: int) -> None:
        self.both(lambda one: one.chmod(path, mode), lambda plain: chmod(plain, path, mode))

    @rule()
    def wait(self) -> None:
        self.world.clock.advance(5)

    @rule(target=snapshots)
    def snapshot(self) -> tuple[WorkspaceSnapshot, Plain]:
        return self.workspace.snapshot(), dict(self.plain)

    @rule(snapshot=snapshots)
    def restore(self, snapshot: tuple[WorkspaceSnapshot, Plain]) -> None:
        self.workspace.restore(snapshot[0])
        self.plain = dict(snapshot[1])

    @rule(target=twins)
    def fork(self) -> tuple[Workspace, Plain]:
        return self.workspace.fork(), dict(self.plain)

    @rule(twin=twins)
    def a_twin_is_as_it_was(self, twin: tuple[Workspace, Plain]) -> None:
        assert observed(twin[0]) == twin[1]

    @rule(twin=twins)
    def go_on_with_a_twin(self, twin: tuple[Workspace, Plain]) -> None:
        self.workspace, self.plain = twin[0].fork(), dict(twin[1])
        self.workspace.bind(self.world)

    @rule(twin=twins)
    def difference(self, twin: tuple[Workspace, Plain]) -> None:
        paths = {path for path in self.plain | twin[1] if self.plain.get(path) != twin[1].get(path)}
        changes: list[FileChange] = self.workspace.diff(twin[0])
        assert [change.path for change in changes] == sorted(paths, key=str.encode)
        assert [change.path for change in twin[0].diff(self.workspace)] == [change.path for change in changes]

    @rule()
    def dumped(self) -> None:
        again = Workspace.load(self.workspace.dump())
        assert again.digest() == self.workspace.digest()
        assert again.dump() == self.workspace.dump()
        again.bind(self.world)
        self.workspace = again

    @rule()
    def archived(self) -> None:
        again = Workspace.from_tar(self.workspace.to_tar())
        assert again.to_tar() == self.workspace.to_tar()
        assert [str(stat) for stat in again.walk()] == [str(stat) for stat in self.workspace.walk()]

    @invariant()
    def they_agree(self) -> None:
        assert observed(self.workspace) == self.plain
        assert [stat.path for stat in self.workspace.walk()] == sorted(self.plain, key=str.encode)
        assert self.workspace.list() == sorted((path for path in self.plain if "/" not in path), key=str.encode)
        assert self.workspace.image.count == len(self.plain)
        assert self.workspace.image.stored == stored(self.plain)

    @invariant()
    def what_is_deleted_is_forgotten(self) -> None:
        assert sum(map(len, self.workspace.image.entries.layers)) <= 8 * (len(self.plain) + len(START) + 2)


TestHistories: Any = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=30)
