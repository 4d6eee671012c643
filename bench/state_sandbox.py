"""Wall time of a sandbox: a program from nothing or from the pool, a request to a session, many at once.

In the same run, by turns, the machine's own time for the same: a bare interpreter, and a bare bubblewrap with the same
namespaces and no limits. Each value is the least of its runs, since on a shared machine everything else adds. A pause
before each run lets the pool fill, as the pauses of a model do.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator

from _table import Row, main, note, row

from quintain.resources.sandbox import Policy, Sandbox, SandboxUnavailable, settled
from quintain.resources.workspace import Workspace

PYTHON = ["/usr/bin/python3", "-c", "pass"]
BWRAP = [
    *("/usr/bin/bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
    *("--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", *PYTHON),
]
PAUSE = 0.1
"""Seconds before each run."""
FILES = {f"folder{n % 20}/file{n}.txt": f"file {n}\n" * 20 for n in range(200)}

Work = Callable[[], Awaitable[object]]


async def bare() -> None:
    done = await asyncio.create_subprocess_exec(*PYTHON, env={})
    await done.wait()


async def least(works: dict[str, Work], *, times: int) -> dict[str, float]:
    """Milliseconds of each, the least of its runs; they take turns."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(times):
        for name, work in works.items():
            await asyncio.sleep(PAUSE)
            started = time.perf_counter()
            await work()
            best[name] = min(best[name], (time.perf_counter() - started) * 1e3)
    return best


async def lag(stop: asyncio.Event) -> float:
    """The longest that the event loop was late, in milliseconds, until it is stopped."""
    worst = 0.0
    while not stop.is_set():
        started = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - started - 0.001)
    return worst * 1e3


async def crowd(one: Work, count: int) -> tuple[float, float]:
    """Seconds for so many at once, and the loop's lag meanwhile in milliseconds."""
    stop = asyncio.Event()
    watch = asyncio.ensure_future(lag(stop))
    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    seconds = time.perf_counter() - started
    stop.set()
    return seconds, await watch


async def measured(*, times: int, count: int) -> list[Row]:
    files, cold, pooled = Workspace(FILES), Sandbox(), Sandbox(Policy(pool=2))
    await pooled.ready()
    await pooled.python(files, "x = 1")
    await pooled.shell(files, "x=1")
    at = await least(
        {
            "bare": bare,
            "bwrap": lambda: asyncio.to_thread(subprocess.run, BWRAP, check=True, env={}),
            "cold": lambda: cold.run(files, python="pass"),
            "pool": lambda: pooled.run(files, python="pass"),
            "true": lambda: cold.run(files, ["/bin/true"]),
            "python": lambda: pooled.python(files, "pass"),
            "shell": lambda: pooled.shell(files, ":"),
        },
        times=times,
    )
    bare_crowd = await crowd(bare, count)
    our_crowd = await crowd(lambda: cold.run(files.fork(), python="pass"), count)
    pooled.close()
    await settled()
    per = f"{count} at once, python -c pass"
    return [
        row("python -c pass, cold", at["cold"], "ms", goal=20, peer="bare bubblewrap", peer_value=at["bwrap"]),
        row("python -c pass, from the pool", at["pool"], "ms", goal=5, peer="bare interpreter", peer_value=at["bare"]),
        row("true, cold", at["true"], "ms"),
        row("one request to a living interpreter", at["python"], "ms"),
        row("one request to a living shell", at["shell"], "ms"),
        row(per, our_crowd[0], "s", peer="bare interpreters", peer_value=bare_crowd[0]),
        row("the event loop is late meanwhile, at most", our_crowd[1], "ms", peer="the same", peer_value=bare_crowd[1]),
    ]


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    try:
        yield from asyncio.run(measured(times=1 if quick else 30, count=3 if quick else 100))
    except SandboxUnavailable as error:
        note(f"no sandboxes here: {error}")
        yield row("python -c pass, cold", None, "ms", goal=20)


if __name__ == "__main__":
    main("Sandbox", measure)
