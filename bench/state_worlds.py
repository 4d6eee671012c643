"""The large worlds that come with Quintain: what their episodes cost to fork, to name, to hold, and to play.

`enterprise` has 164 tables and 512 tools. An episode of 600 turns reads three times for each write; it is what the
solution of a task does, again and again, so that in time most of its writes are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import hashlib
import importlib
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import psutil
from _table import Row, cpu, main, row

import quintain as qn
from quintain import codec, plugins, resource
from quintain.episode import Episode
from quintain.models.agents import oracle
from quintain.resources.database import Database
from quintain.trace import Message, Reply, ToolCall

WORLDS = ("enterprise", "helpdesk")
IDEA = ("corporate_make_suggestion", {"title": "Fewer meetings"})


def environment(name: str) -> qn.Environment[Any]:
    found: qn.Environment[Any] = importlib.import_module(f"quintain.environments.{name}").env
    return found


def calls(name: str, task: qn.Task[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the endless calls of an agent."""
    solution = list(task.solution or ())
    reads = [call for call in solution if "_find_" in call[0] or "_get_" in call[0]]
    if name == "enterprise":  # Everybody may have ideas, so this one goes on growing.
        yield solution[0]
        yield from itertools.cycle([*itertools.islice(itertools.cycle(reads), 3), IDEA])
    yield from itertools.cycle(solution)


async def played(env: qn.Environment[Any], turns: int) -> Episode[Any]:
    """An episode after so many turns."""
    task = env.tasks("test")[0]
    episode = await Episode[Any].begin(env.replace(config=qn.Config(max_turns=10_000)), task)
    for number, (tool, arguments) in enumerate(itertools.islice(calls(env.name, task), turns)):
        call = ToolCall(f"call_{number}", tool, codec.text(arguments))
        await episode.session.step(Reply(Message("assistant", calls=(call,))))
    if episode.ended:
        raise RuntimeError(f"it ended early: {episode.trace.reason}, {episode.trace.failure}")
    return episode


def forks(env: qn.Environment[Any], turns: int, *, times: int) -> Iterator[Row]:
    late = asyncio.run(played(env, turns))

    async def each() -> None:
        for _ in range(times):
            await late.fork()

    seconds = cpu(lambda: asyncio.run(each()), repeats=5)
    yield row(f"{env.name}: fork of the episode at turn {turns}", seconds / times * 1e6, "us", goal=100)


def databases(world: Any) -> list[Database]:
    return [one for name in world.__struct_fields__ if isinstance(one := getattr(world, name), Database)]


PLAIN = """
SELECT t.name, min(c.name) FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND c.pk = 0
AND c.type = 'TEXT' AND NOT instr(t.sql, 'CHECK ("' || c.name) AND NOT instr(t.sql, 'json_valid("' || c.name)
AND c.name NOT IN (SELECT i.name FROM pragma_index_list(t.name) l, pragma_index_info(l.name) i)
GROUP BY t.name ORDER BY t.name
"""


@functools.cache
def plain_columns(name: str) -> list[tuple[str, str]]:
    """Returns tables of a world with rows, each with a column of text without index or constraint."""
    (db,) = databases(environment(name).tasks("test")[0].world())
    return [(table, column) for table, column in db.execute(PLAIN) if db.execute(f'SELECT 1 FROM "{table}" LIMIT 1')]


def written(name: str, db: Database, count: int) -> None:
    """Change a row in each of so many tables, each in a transaction of its own."""
    before = db.image
    for table, column in plain_columns(name)[:count]:
        db.execute(f"""UPDATE "{table}" SET "{column}" = 'x' WHERE rowid = (SELECT max(rowid) FROM "{table}")""")
    if len(before.changed(db.image)) < count:
        raise RuntimeError(f"{count} writes changed {len(before.changed(db.image))} pages")


def digests(env: qn.Environment[Any], *, times: int) -> Iterator[Row]:
    start = env.tasks("test")[0].world()

    async def one(count: int, *, whole: bool) -> float:
        """Least microseconds of the digest of the state, or of its database alone."""
        least = float("inf")
        for _ in range(times):
            world = start.copy()
            await resource.digest(world)
            (db,) = databases(world)
            written(env.name, db, count)
            began = time.perf_counter()
            if whole:
                await resource.digest(world)
            else:
                db.digest()
            least = min(least, time.perf_counter() - began)
        return least * 1e6

    nothing, alone = asyncio.run(one(0, whole=True)), asyncio.run(one(10, whole=False))
    pages = [os.urandom(1024) for _ in range(10)]
    limit = cpu(lambda: [hashlib.sha256(page).digest() for _ in range(100) for page in pages], repeats=5) / 100 * 1e6
    yield row(f"{env.name}: digest of a state that was not written to", nothing, "us")
    yield row(
        f"{env.name}: digest of its database after 10 writes in 10 tables", alone, "us", goal=10,
        peer="SHA-256 of as many pages", peer_value=limit,
    )  # fmt: skip
    all_of_it = asyncio.run(one(10, whole=True))
    yield row(f"{env.name}: digest of the state after 10 writes in 10 tables", all_of_it, "us")


def oracles(env: qn.Environment[Any], *, count: int) -> Iterator[Row]:
    tasks = list(itertools.islice((task for split in env.splits for task in env.tasks(split)), count))
    for task in tasks:
        task.world()  # the day is written before it is played
    turns = 0

    async def every() -> None:
        nonlocal turns
        turns = 0
        for task in tasks:
            trace = (await qn.rollout(env, task, oracle().model(task, 0))).trace
            turns += len(trace.turns)
            if trace.score != 1.0:
                raise RuntimeError(f"{task.id} scored {trace.score}: {trace.failure}")

    seconds = cpu(lambda: asyncio.run(every()), repeats=1)  # a second time, verdicts would be remembered
    yield row(f"{env.name}: oracle episodes a second, verified", len(tasks) / seconds, "1/s")
    yield row(f"{env.name}: oracle, milliseconds an episode", seconds / len(tasks) * 1e3, "ms")
    yield row(f"{env.name}: the same, a turn", seconds / turns * 1e3, "ms")


def tools(env: qn.Environment[Any], *, times: int) -> Iterator[Row]:
    """More statements than SQLite's connection keeps prepared: 512."""
    world = env.tasks("test")[0].world().copy()
    world.actor = 1
    finds = [tool.bind(world) for name, tool in env.tools.items() if "_find_" in name]
    defaults = [tool.decode('{"limit": 5}') for name, tool in env.tools.items() if "_find_" in name]

    def each() -> None:
        for find, arguments in zip(finds, defaults, strict=True):
            with contextlib.suppress(qn.ToolError):  # not for this employee
                find(**arguments)

    def one() -> None:
        for _ in finds:
            finds[2](**defaults[2])

    yield row(f"{env.name}: one find tool, {len(finds)} times", cpu(one, repeats=times) / len(finds) * 1e6, "us")
    yield row(f"{env.name}: each of {len(finds)} find tools in turn", cpu(each, repeats=times) / len(finds) * 1e6, "us")


def memory(env: qn.Environment[Any], *, count: int) -> Iterator[Row]:
    """Live episodes, each after the first six calls of a solution."""
    process = psutil.Process()
    asyncio.run(played(env, 6))
    gc.collect()
    before = process.memory_info().rss
    live = [asyncio.run(played(env, 6)) for _ in range(count)]
    gc.collect()
    used = (process.memory_info().rss - before) / 1e6
    yield row(f"{env.name}: {len(live):,} live episodes", used, "MB")


def building(name: str) -> Iterator[Row]:
    """In a process of its own: import, and the base image for the first time."""
    code = f"""
import time
began = time.process_time()
from quintain.environments.{name} import env
imported = time.process_time()
env.tasks("test")[0].world()
print(imported - began, time.process_time() - imported)
"""
    with tempfile.TemporaryDirectory() as folder:
        environ = os.environ | {"QUINTAIN_CACHE": folder}
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environ)
    imported, built = map(float, done.stdout.split())
    yield row(f"{name}: import", imported, "s", goal=1)
    yield row(f"{name}: base image and first task, nothing cached", built, "s", goal=20)


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    known = {"enterprise", *plugins.names("environments")}
    for name in WORLDS:
        if name not in known:
            continue
        env = environment(name)
        yield row(f"{name}: tools", len(env.tools), "")
        yield from building(name)
        yield from forks(env, 20 if quick else 600, times=3 if quick else 200)
        yield from digests(env, times=3 if quick else 200)
        yield from oracles(env, count=8 if quick else 200)
        if name == "enterprise":
            yield from tools(env, times=1 if quick else 20)
        yield from memory(env, count=10 if quick else 1000)


if __name__ == "__main__":
    main("The large worlds", measure)
