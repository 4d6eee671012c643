"""Helpers for tests of sandboxes: a loop to run in, first files, and the resources held on the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from quintain.resources.sandbox import Policy, Sandbox, SandboxUnavailable, link
from quintain.resources.workspace import Workspace

T = TypeVar("T")

FILES: dict[str, str | bytes] = {
    "notes.txt": "one\n",
    "src/app.py": "print('app')\n",
    "src/data.bin": b"\0\xff",
    "old.txt": "old\n",
}


def files() -> Workspace:
    return Workspace(FILES)


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Await it in a loop of its own; what was closed is gone when this returns."""

    async def whole() -> T:
        return await work()

    return asyncio.run(whole())


def need(policy: Policy | None = None) -> None:
    """Skip where this machine cannot isolate as asked, and say why."""
    try:
        run(Sandbox(policy).ready)
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def children(pid: int) -> set[int]:
    """All processes below one."""
    found: set[int] = set()
    pending = [pid]
    while pending:
        listed = Path(f"/proc/{pending.pop()}/task").glob("*/children")
        for path in listed:
            new = {int(word) for word in path.read_text().split()} - found
            found |= new
            pending += new
    return found


def worked(groups: str = "auto") -> int:
    """Ticks of CPU that every bash in a sandbox of this process has used."""
    ticks = 0
    for pid in children(link.supervisor(groups).process.pid):
        head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        if head.endswith("(bash"):
            ticks += sum(map(int, tail.split()[11:13]))
    return ticks


def held(groups: str = "auto") -> dict[str, Any]:
    """Returns what sandboxes hold: the supervisor's processes, mounts, folders and groups, this process's descriptors.

    Mounts by others reach the supervisor as well, and are not counted.
    """
    supervisor = link.supervisor(groups)
    supervisor_pid = supervisor.process.pid
    mounted = [line.split()[4] for line in Path(f"/proc/{supervisor_pid}/mountinfo").read_text().splitlines()]
    return {
        "processes": len(children(supervisor_pid)),
        "mounts": len([place for place in mounted if place.startswith(str(supervisor.home))]),
        "folders": len([path for path in supervisor.root.iterdir() if path.name.isdigit()]),
        "groups": sum(len([*Path(group).glob("*/")]) for group in supervisor.groups),
        "descriptors": len([*Path("/proc/self/fd").iterdir()]),
        "descriptors of the supervisor": len([*Path(f"/proc/{supervisor_pid}/fd").iterdir()]),
    }


async def settled(groups: str = "auto") -> dict[str, Any]:
    """The same, when everything that was closed is gone."""
    await link.settled(groups)
    return held(groups)
