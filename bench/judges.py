"""Ready-made verifiers: verdicts per second of each kind, and credit by forking against re-playing from the start.

Language-model judges ask a canned endpoint over HTTP, another process that answers at once; beside it, a function in
this process. So their rows show what a verdict costs besides the model.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import inspect
import json
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from multiprocessing.connection import Connection
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
from quintain.models import OpenAI, Scripted
from quintain.replay import rebuild
from quintain.resources.sandbox import Policy, Sandbox
from quintain.resources.workspace import Workspace
from quintain.trace import Message, Reply
from quintain.verifier import Criterion, EpisodeView, GroupView

SAID = "The capital of Peru is Lima.\nThe answer is 42"
MEMBERS = 4
JUDGED: dict[str, tuple[Callable[[Judge], Criterion[Any]], str, int]] = {
    "llm_judge": (lambda judge: llm_judge(judge, "Is it right?"), '{"reason": "", "score": 7}', 1),
    "checklist": (
        lambda judge: checklist(judge, [Item("names", "It names a city.")]),
        '{"items": [{"name": "names", "met": true, "quote": "Lima"}]}',
        1,
    ),
    f"pairwise, groups of {MEMBERS}": (
        lambda judge: pairwise(judge, "Which is better?"),
        '{"reason": "", "winner": "tie"}',
        MEMBERS,
    ),
}
"""Criterion of a judge, the judge's reply, and number of episodes that one call judges; by name of the model."""


class Canned(http.server.BaseHTTPRequestHandler):
    """Endpoint whose models give the replies of `JUDGED`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # One packet per reply.

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": JUDGED[asked["model"]][1]}
        data = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Requests are many, and each is the same."""


def serve(ready: Connection) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Canned)
    ready.send(server.server_port)
    server.serve_forever()


@contextlib.contextmanager
def endpoint() -> Generator[str]:
    """The URL of the canned endpoint, until the block ends."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/v1"
    finally:
        process.terminate()
        process.join()


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


def kinds() -> Iterator[tuple[str, Criterion[Any], Any]]:
    """Yields name, criterion and truth."""
    yield "exact", exact(), "42"
    yield "numeric", numeric(), "42"
    yield "same_set", same_set(), ["42"]
    yield "same_json", same_json(), 42
    yield "normalized", normalized(value="f1"), "42"
    yield "weighted, two parts", weighted(exact(), numeric()), "42"
    yield "reaches, world of sales", reaches(lambda _: True), None


async def seconds(work: Callable[[], Awaitable[object]], times: int) -> float:
    """Returns the seconds that one call takes, the mean of `times`."""
    await work()
    started = time.perf_counter()
    for _ in range(times):
        await work()
    return (time.perf_counter() - started) / times


def rate(criterion: Criterion[Any], truth: Any, times: int, *, size: int = 1, model: OpenAI | None = None) -> float:
    """Returns the verdicts per second of calls one after another; each judges `size` episodes."""
    one = view(truth)
    seen: Any = GroupView(one.task, (one,) * size) if size > 1 else one

    async def judge() -> None:
        found: Any = criterion.fn(seen)
        if inspect.isawaitable(found):
            await found

    async def measured() -> float:
        try:
            return size / await seconds(judge, times)
        finally:
            if model:
                await model.aclose()

    return asyncio.run(measured())


def verdicts(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    for name, criterion, truth in kinds():
        yield row(f"{name}: verdicts", rate(criterion, truth, 3 if quick else 2000), "1/s")
    with endpoint() as url:
        for name, (make, said, size) in JUDGED.items():
            model = OpenAI(name, base_url=url, api_key="")
            by_http = rate(make(Judge(model)), "", 3 if quick else 200, size=size, model=model)
            by_function = rate(make(canned(said)), "", 3 if quick else 2000, size=size)
            yield row(f"{name}: verdicts over HTTP", by_http, "1/s", peer="by a function", peer_value=by_function)


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
