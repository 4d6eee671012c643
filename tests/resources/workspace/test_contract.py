"""A Workspace keeps the laws of a Resource, alone and held by a world."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import quintain as qn
from quintain import resource
from quintain.resources.workspace import Quota, Workspace
from quintain.testing import ResourceContract
from quintain.testing.resource import Operation


class TestWorkspace(ResourceContract):
    examples = 30

    def make(self) -> Workspace:
        files: dict[str, str | bytes] = {"a": "one\ntwo", "d/b": b"\xff\0", "d/e/c": "", "large": b"x" * 2_100_000}
        return Workspace(files, quota=Quota(bytes=5_000_000, inodes=14))

    def operations(self) -> Sequence[Operation]:
        return [
            lambda one: one.write("a", "three"),
            lambda one: one.write("new/folder/file", b"\0" * 100),
            lambda one: one.append("large", "y" * 1_000_000),
            lambda one: one.append("a", "more"),
            lambda one: one.delete("d", recursive=True),
            lambda one: one.delete("a"),
            lambda one: one.move("d", "new/d"),
            lambda one: one.copy("d", f"copy{len(one.list())}"),
            lambda one: one.link("link", "d/b"),
            lambda one: one.write("link", "through"),
            lambda one: one.chmod("a", 0o600),
            lambda one: one.make_folder("d/x"),
            lambda one: one.text("a"),
            lambda one: [str(stat) for stat in one.walk()],
            lambda one: one.search("t"),
            lambda one: one.glob("**/*"),
        ]


class Desk(qn.State):
    files: Workspace

    @qn.tool
    def note(self, text: str) -> str:
        """Write something down.

        Args:
            text: What.
        """
        self.clock.advance(60)
        self.files.append("notes.txt", text)
        return self.files.text("notes.txt")


def test_a_world_gives_it_its_time() -> None:
    desk = Desk(files=Workspace({"a": "a"}))
    desk.note("x")
    twin = desk.copy()
    twin.note("y")
    assert desk.files.stat("notes.txt").mtime == 60
    assert twin.files.stat("notes.txt").mtime == 120
    assert desk.files.text("notes.txt") == "x"


def test_a_world_is_dumped_with_it() -> None:
    async def law() -> None:
        desk = Desk(files=Workspace({"a": "a"}))
        desk.note("x")
        again = resource.load(Desk, await resource.dump(desk))
        assert await resource.digest(again) == await resource.digest(desk)
        assert again.note("y") == desk.note("y") == "xy"
        assert await resource.digest(again) == await resource.digest(desk)

    asyncio.run(law())
