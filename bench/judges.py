"""Ready-made verifiers: verdicts per second of each kind, and credit by forking against re-playing from the start.

Judges ask a model in this process that answers at once, so the rows of judges show what a verdict costs besides it.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from _table import Row, main, row

import quintain as qn
from quintain.environments.sales import env as sales
from quintain.episode import Episode
from quintain.harness import Request
from quintain.judges import (
    HiddenTest,
    HiddenTests,
    Item,
    Judge,
    checklist,
    exact,
    llm_judge,
    monte_carlo_values,
    normalized,
    numeric,
    pairwise,
    reaches,
    same_json,
    same_set,
    weighted,
)
from quintain.judges.code import run_tests
from quintain.models import Scripted
from quintain.replay import rebuild
from quintain.resources.sandbox import Policy, Sandbox
from quintain.resources.workspace import Workspace
from quintain.trace import Message, Reply
from quintain.verifier import Criterion, EpisodeView, GroupView

SAID = "The capital of Peru is Lima.\nThe answer is 42"
MEMBERS = 4


def canned(said: str) -> Judge:
    async def model(_: Request) -> Reply:
        return Reply(Message("assistant", said))

    return Judge(model, name="canned")


def view(truth: Any) -> EpisodeView[Any]:
    """The view of a finished episode of `sales` with its world, under a question with this truth."""
    task = sales.tasks("test")[0]
    trace = asyncio.run(qn.rollout(sales, task, Scripted.calls((), SAID))).trace
    world = task.world()
    asked = qn.Task(id="question", prompt="What is the answer?", start=world, truth=truth)
    return EpisodeView(asked, world, world.copy(), trace)


def kinds() -> Iterator[tuple[str, Criterion[Any], Any, int]]:
    """Yields name, criterion, truth and number of episodes that one call judges."""
    yield "exact", exact(), "42", 1
    yield "numeric", numeric(), "42", 1
    yield "same_set", same_set(), ["42"], 1
    yield "same_json", same_json(), 42, 1
    yield "normalized", normalized(value="f1"), "42", 1
    yield "weighted, two parts", weighted(exact(), numeric()), "42", 1
    yield "reaches, world of sales", reaches(lambda _: True), None, 1
    yield "llm_judge", llm_judge(canned('{"reason": "", "score": 7}'), "Is it right?"), "", 1
    items = '{"items": [{"name": "names", "met": true, "quote": "Lima"}]}'
    yield "checklist", checklist(canned(items), [Item("names", "It names a city.")]), "", 1
    compared = pairwise(canned('{"reason": "", "winner": "tie"}'), "Which is better?")
    yield f"pairwise, groups of {MEMBERS}", compared, "", MEMBERS


async def seconds(work: Callable[[], Awaitable[object]], times: int) -> float:
    """Returns the seconds that one call takes, the mean of `times`."""
    await work()
    started = time.perf_counter()
    for _ in range(times):
        await work()
    return (time.perf_counter() - started) / times


def verdicts(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    for name, criterion, truth, size in kinds():
        one = view(truth)
        seen = GroupView(one.task, (one,) * size) if size > 1 else one

        async def judge(fn: Callable[[Any], Any] = criterion.fn, seen: object = seen) -> None:
            found = fn(seen)
            if inspect.isawaitable(found):
                await found

        yield row(f"{name}: verdicts", size / asyncio.run(seconds(judge, 3 if quick else 2000)), "1/s")


async def code(pool: int, times: int) -> float:
    """Seconds of a verdict on one function with one test."""
    box, files = Sandbox(Policy(pool=pool)), Workspace()
    tests = HiddenTests(tests=(HiddenTest("add", "assert add(1, 2) == 3"),), names={"add": "add"})
    await box.ready()
    await asyncio.sleep(0.5 if pool else 0)  # The pool fills beside.
    return await seconds(lambda: run_tests(box, files, tests, code="def add(a, b): return a + b"), times)


async def credit(turns: int, m: int) -> tuple[float, float, float]:
    """Seconds of reaching m copies of each turn's moment by forking, by re-playing; and of the whole estimate."""
    env = sales.replace(config=qn.Config(max_turns=1000))
    task = env.tasks("test")[0]
    record = next(arguments["record_id"] for _, arguments in task.solution or () if "record_id" in arguments)
    calls = [("crm_get", {"record_id": record})] * turns
    trace = (await qn.rollout(env, task, Scripted.calls(calls[:-1]))).trace
    started = time.perf_counter()
    found = await monte_carlo_values(env, task, trace, model=lambda: Scripted.calls(()), m=m)
    whole = time.perf_counter() - started
    if len(found) != turns or any(one.failed for one in found):
        raise RuntimeError(f"{len(found)} of {turns} turns have a value")
    started = time.perf_counter()
    trunk = await Episode.begin(env, task)
    for turn in trace.turns:
        for _ in range(m):
            await trunk.fork()
        await trunk.session.step(turn.reply)
    forked = time.perf_counter() - started
    started = time.perf_counter()
    for number in range(turns):
        for _ in range(m):
            await rebuild(env, task, trace, turns=number)
    return forked, time.perf_counter() - started, whole


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    yield from verdicts(quick)
    for pool in (0, 2):
        name = f"code, sandbox {'from the pool' if pool else 'cold'}: a verdict"
        yield row(name, asyncio.run(code(pool, 2 if quick else 40)) * 1e3, "ms")
    turns, m = (4, 2) if quick else (50, 8)
    forked, replayed, whole = asyncio.run(credit(turns, m))
    name = f"{m} copies of each moment of {turns} turns"
    yield row(f"{name}, by forking", forked, "s", peer="by re-playing", peer_value=replayed)
    yield row(f"{name}, forking : re-playing", forked / replayed, "x", goal=1 / 2 if quick else 1 / 20)
    yield row(f"values of the {turns} turns, with continuations that stop at once", whole, "s")


if __name__ == "__main__":
    main("Ready-made verifiers", measure)
