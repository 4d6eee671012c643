"""`Workspace` of 2,000 files: copies of the value, and the folders that programs work in, beside copies of a tree.

Rows in microseconds are CPU; rows in milliseconds are wall time, since `cp` is another process and disks wait. Programs
are not measured: what they would have changed is written into the overlay's upper folder, or into the copy, directly.
"""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from _table import Row, cpu, main, row

from quintain.resources.workspace import Workspace
from quintain.resources.workspace.staging import Stage, collect, restage, stage
from quintain.state import Shared

NUMBERS = itertools.count()


def workspace(count: int) -> Workspace:
    """Files of 1 to 8 KB in folders of 20."""
    files = {f"src/package{n // 400}/part{n // 20}/module{n}.py": f"line {n}\n" * (100 + n % 700) for n in range(count)}
    one = Workspace(files)
    one.bind(Shared())
    return one


def microseconds(work: Callable[[], object], times: int) -> float:
    """CPU of one call."""

    def all_of_them() -> None:
        for _ in range(times):
            work()

    return cpu(all_of_them, repeats=5) / times * 1e6


def milliseconds(work: Callable[[], object], times: int) -> float:
    """The least wall time of a call."""
    spent: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        spent.append(time.perf_counter() - started)
    return min(spent) * 1e3


def name(number: int, count: int) -> str:
    n = number * 7 % count
    return f"src/package{n // 400}/part{n // 20}/module{n}.py"


def written(one: Workspace, changes: int, count: int) -> Workspace:
    """A fork with that many files written; no two forks have the same."""
    fork = one.fork()
    for number in range(changes):
        fork.write(name(number, count), f"changed {next(NUMBERS)}\n" * 100)
    return fork


def values(one: Workspace, count: int, *, times: int) -> Iterator[Row]:
    """Forks, snapshots, digests, differences."""
    at = f"{count:,} files"
    changed = written(one, 10, count)
    snapshots = itertools.cycle([changed.snapshot(), written(changed, 10, count).snapshot(), one.snapshot()])
    yield row(f"fork, {at}", microseconds(changed.fork, times), "us", goal=2000)
    yield row(f"fork and first write, {at}", microseconds(lambda: written(changed, 1, count), times), "us", goal=2000)
    yield row(f"snapshot, {at}", microseconds(changed.snapshot, times), "us")
    yield row(f"restore, {at}", microseconds(lambda: changed.restore(next(snapshots)), times), "us")
    path = name(3, count)
    yield row(f"read, {at}", microseconds(lambda: one.read(path), times), "us")
    yield row(f"write, {at}", microseconds(lambda: changed.write(path, f"{next(NUMBERS)}"), times), "us")
    folder = path.rpartition("/")[0]
    yield row(f"list a folder of 20, {at}", microseconds(lambda: changed.list(folder), times), "us")
    forks = itertools.cycle([written(one, 10, count) for _ in range(5)])
    yield row(f"digest after 10 writes, {at}", microseconds(lambda: next(forks).digest(), times), "us")
    base = one.fork()
    yield row(f"10 writes and their digest, {at}", microseconds(lambda: written(base, 10, count).digest(), times), "us")
    yield row(f"diff of 10 changes, {at}", microseconds(lambda: base.diff(next(forks)), times), "us")
    yield row(f"dump with 10 changes, {at}", microseconds(lambda: next(forks).dump(), times), "us")
    dump = next(forks).dump()
    yield row(f"load of it, {at}", microseconds(lambda: Workspace.load(dump), times), "us")


def change(staged: Stage, count: int, changes: int) -> None:
    """Writes files as a program does."""
    for number in range(changes):
        path = staged.upper / name(number, count)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"changed {next(NUMBERS)}\n" * 100)


def folders(one: Workspace, count: int, place: Path, *, times: int) -> Iterator[Row]:
    """Stages, beside copies of the same tree."""
    at = f"{count:,} files"
    changed = written(one, 10, count)
    lower = stage(one, place / "first", overlay=True).lower
    assert lower is not None
    fresh = (place / f"{number}" for number in itertools.count())
    copied = milliseconds(lambda: shutil.copytree(lower, next(fresh)), times)
    command = ["cp", "-r", "--reflink=auto", str(lower)]
    linked = milliseconds(lambda: subprocess.run([*command, str(next(fresh))], check=True), times)
    overlay = milliseconds(lambda: stage(changed, next(fresh), overlay=True), times)
    yield row(f"stage an overlay, {at}, 10 changed", overlay, "ms", goal=20, peer="shutil.copytree", peer_value=copied)
    copy = milliseconds(lambda: stage(changed, next(fresh), overlay=False), times)
    yield row(f"stage a copy, {at}", copy, "ms", peer="cp -r --reflink=auto", peer_value=linked)
    for is_overlay, way in ((True, "overlay"), (False, "copy")):
        for changes in (0, 1, 100):
            staged = stage(one, next(fresh), overlay=is_overlay)
            world = one.fork()
            collected: list[float] = []
            pushed: list[float] = []
            for _ in range(times):
                change(staged, count, changes)
                collected.append(milliseconds(partial(collect, world, staged), 1))
                for number in range(changes):
                    world.write(name(number, count), f"changed {next(NUMBERS)}\n" * 100)
                pushed.append(milliseconds(partial(restage, world, staged), 1))
            yield row(f"collect {changes} changes, {way}, {at}", min(collected), "ms")
            yield row(f"restage {changes} changes, {way}, {at}", min(pushed), "ms")


def memory(one: Workspace, count: int, *, forks: int) -> Iterator[Row]:
    tracemalloc.start()
    for changes in (0, 10):
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        held = [written(one, changes, count) for _ in range(forks)]
        used = tracemalloc.get_traced_memory()[0] - before
        yield row(f"a fork with {changes} files of 1.5 KB written, of {forks:,}", used / len(held) / 1000, "kB")
    tracemalloc.stop()


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    count = 100 if quick else 2000
    with tempfile.TemporaryDirectory() as place:
        os.environ["QUINTAIN_CACHE"] = f"{place}/cache"
        started = time.perf_counter()
        one = workspace(count)
        yield row(f"make the base, {count:,} files", (time.perf_counter() - started) * 1e3, "ms")
        yield from values(one, count, times=3 if quick else 1000)
        yield from folders(one, count, Path(place), times=2 if quick else 7)
        yield from memory(one, count, forks=10 if quick else 1000)


if __name__ == "__main__":
    main("Workspace", measure)
