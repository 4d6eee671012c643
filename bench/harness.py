"""Cost of a context manager: CPU of one turn of an `AgentLoop` at turn 10 and at turn 600.

A model that answers at once reads pages of 400 characters and cites one. The cost is that of the manager alone: what
the harness does between the turn and the next request, measured around its methods. The goal is that a turn at 600
costs at most 3 times one at 10. The mean of all turns has the rare ones that shorten the context.

A thousand episodes at once wait for a model of 100 ms. The rate is ideal if nothing else takes time. The goal is
90 % of it, in real time with begin and verdict included, so it needs a quiet machine.

The last rows play tasks of `ops` by the oracle, with one agent that has all tools and with six subagents: the tokens of
the context of a turn, with the schemas of the tools, at four characters a token. Before them, the mean score of
solutions under noise: played as they are, and with each call sent again that did not reach its tool.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

import msgspec
from _table import Row, main, row

import quintain as qn
from quintain.environments import ops
from quintain.harness import Model, Request, Session
from quintain.harnesses import AgentLoop, Fold, KeepRecent, Rebuild, Summarise, View
from quintain.harnesses.loop import AgentPlay
from quintain.models.agents import oracle
from quintain.noise import FAULTS
from quintain.plugins import environment
from quintain.trace import Message, Reply, ToolCall

BUDGET = 8_000
WINDOW = 10
"""Turns around the one that is measured; the median counts."""
GOAL = 3.0
IDEAL = 1 / 0.9
"""Most time of a thousand episodes over that of their model, which is 90 % of the ideal rate."""
LATENCY_S = 0.1


class Library(qn.State):
    """Pages of 400 characters."""

    @qn.tool(writes=())
    def read(self, page: int) -> str:
        """Read a page.

        Args:
            page: Its number.
        """
        return f"page {page}\n" + f"word {page} " * 40


@qn.reward
def answered(view: qn.EpisodeView[Library]) -> float:
    return float(view.answer == "done")


class Timed(AgentPlay):
    """Play that notes the CPU seconds of its own work in each turn."""

    seconds: list[float]

    async def _arrange(self) -> bool:
        started = time.process_time()
        found = await super()._arrange()
        self.seconds.append(time.process_time() - started)
        return found

    async def _answer_calls(self, turn: Any) -> None:
        started = time.process_time()
        await super()._answer_calls(turn)
        self.seconds[-1] += time.process_time() - started


class TimedLoop(AgentLoop):
    """Loop whose play is timed."""

    last: list[float]

    async def play(self, session: Session, model: Model) -> None:
        play = Timed(self, session, model)
        play.seconds = self.last = []
        await play.run()


def reader(turns: int) -> Model:
    """Returns a model that reads a page in each turn and cites the newest."""
    left = iter(range(turns))

    async def model(request: Request) -> Reply:
        if (page := next(left, None)) is None:
            return Reply(Message("assistant", "done"))
        text = request.messages[-1].text[:12] if page else ""
        return Reply(Message("assistant", text, (ToolCall("c", "read", f'{{"page": {page}}}'),)))

    return model


def prompt(view: View) -> str:
    """Returns the text of a rebuilt prompt."""
    return f"{len(view.sources.entries)} pages read"


def written(text: str) -> str:
    """Returns a summary without numbers or citations."""
    return "- pages were read" if text else ""


class Weighed:
    """Agent that notes the tokens of each request by role, schemas included, and lets another one play."""

    def __init__(self, agent: Any) -> None:
        self.name, self._agent = agent.name, agent
        self.tokens: dict[str, list[int]] = {}

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        inner: Model = self._agent.model(task, seed)

        async def weigh(request: Request) -> Reply:
            tools = json.dumps([(tool.name, tool.description, tool.parameters) for tool in request.tools])
            size = len(tools) + sum(len(msgspec.json.encode(message)) for message in request.messages)
            self.tokens.setdefault(request.role, []).append(size // 4)
            return await inner(request)

        return weigh


class Patient:
    """Agent that plays a task's solution and sends a call again if noise kept it from its tool."""

    name = "patient"

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        left = list(task.solution or ())

        async def send(request: Request) -> Reply:
            last = request.messages[-1]
            if not (last.role == "tool" and last.text in {fault.error for fault in FAULTS if not fault.runs}):
                sent.append(left.pop(0) if left else None)
            if sent[-1] is None:
                return Reply(Message("assistant", task.answer or "done"))
            name, arguments = sent[-1]
            call = ToolCall(f"c{len(request.messages)}", name, json.dumps(arguments))
            return Reply(Message("assistant", calls=(call,)))

        sent: list[Any] = []
        return send


def noise(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    """Yields the mean score of solutions at three rates of noise."""
    for name in ("enterprise", "helpdesk", "ops", "sales"):
        made = environment(name)
        for rate in (0.0, 0.05, 0.1):
            env = made.replace(config=msgspec.structs.replace(made.config, noise_rate=rate))
            tasks = env.tasks("test")[: 4 if quick else 64]
            scores = {
                agent.name: [asyncio.run(qn.rollout(env, task, agent)).trace.score or 0.0 for task in tasks]
                for agent in (oracle(), Patient())
            }
            plain = statistics.mean(scores["oracle"])
            patient = statistics.mean(scores["patient"])
            text = f"{name}, {rate:.0%} of the calls fail: score of the solution"
            yield row(f"{text}, sent again", patient, "score", peer="sent once", peer_value=plain)


def hierarchy(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    """Yields the tokens of context with the flat harness of `ops` and with its subagents."""
    tasks = range(8 if quick else 78)
    for name, agent in (("flat", oracle()), ("hierarchical", ops.RoutedOracle())):
        env, weighed = ops.make(harness=name), Weighed(agent)
        for index in tasks:
            trace = asyncio.run(qn.rollout(env, env.tasks("test")[index], weighed)).trace
            assert trace.score == 1.0, trace.failure
        below = [size for role, sizes in weighed.tokens.items() if role != "agent" for size in sizes]
        above, every = weighed.tokens["agent"], [*weighed.tokens["agent"], *below]
        yield row(f"ops, {name}: context of the agent's turn, mean", statistics.mean(above), "tokens")
        yield row(f"ops, {name}: context of the agent's turn, largest", max(above), "tokens")
        if below:
            yield row(f"ops, {name}: context of a subagent's turn, mean", statistics.mean(below), "tokens")
        yield row(f"ops, {name}: context of all turns of a task", sum(every) / len(tasks), "tokens")
        yield row(f"ops, {name}: turns of a task", len(every) / len(tasks), "")


def concurrency(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    """Yields the CPU and the time of many episodes at once, over the ideal time of the model."""
    episodes, turns = (20, 3) if quick else (1_000, 20)
    reply = Reply(Message("assistant", calls=(ToolCall("c", "read", '{"page": 1}'),)))

    async def slow(_: Request) -> Reply:
        await asyncio.sleep(LATENCY_S)
        return reply

    async def play(env: qn.Environment[Library]) -> None:
        tasks = [qn.Task(id=f"t{number}", prompt="Read.", start=Library()) for number in range(episodes)]
        async for group in qn.rollouts(env, slow, tasks):
            assert group.traces[0].reason == "max_turns", group.traces[0].failure

    for name, loop in (("ToolLoop", qn.ToolLoop()), ("AgentLoop", AgentLoop())):
        env = library(loop, qn.Config(max_turns=turns, concurrency=episodes))
        started, used = time.perf_counter(), time.process_time()
        asyncio.run(play(env))
        wall, used = time.perf_counter() - started, time.process_time() - used
        text = f"{name}, {episodes:,} episodes at once, {LATENCY_S * 1000:g} ms of model"
        yield row(f"{text}: CPU over the time of the model", used / (turns * LATENCY_S), "")
        yield row(f"{text}: time over the time of the model", wall / (turns * LATENCY_S), "", goal=IDEAL)
        yield row(f"{text}: CPU of a turn", 1e6 * used / (episodes * turns), "us")


def library(loop: Any, config: qn.Config) -> qn.Environment[Library]:
    """Returns the library with a harness."""
    task = qn.Task(id="t", prompt="Read.", start=Library())
    verifier = qn.Verifier(answered)
    return qn.Environment(
        "library", tasks=lambda split: [task], harness=loop, verifier=verifier, state=Library, config=config
    )


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    late, window = (60, 3) if quick else (600, WINDOW)
    strategies = {
        "budget alone": (None, BUDGET),
        "KeepRecent(5)": (KeepRecent(5), None),
        "KeepRecent(5), budget": (KeepRecent(5), BUDGET),
        "Rebuild": (Rebuild(prompt), None),
        "Summarise": (Summarise(by=written), BUDGET),
        "Fold": (Fold(by=written), BUDGET),
    }
    for name, (context, budget) in strategies.items():
        loop = TimedLoop(context=context, budget=budget)
        env = library(loop, qn.Config(max_turns=2000))
        trace = asyncio.run(qn.rollout(env, env.tasks("train")[0], reader(late + window))).trace
        assert trace.score == 1.0, trace.failure
        early_us, late_us = (
            1e6 * statistics.median(loop.last[turn - window // 2 : turn + window // 2 + 1]) for turn in (10, late)
        )
        yield row(f"{name}: turn 10", early_us, "us")
        yield row(f"{name}: turn {late}", late_us, "us")
        yield row(f"{name}: ratio", late_us / early_us, "", goal=GOAL)
        yield row(f"{name}: mean of all turns", 1e6 * statistics.mean(loop.last), "us")
    yield from concurrency(quick)
    yield from noise(quick)
    yield from hierarchy(quick)


if __name__ == "__main__":
    main("cost of a context manager's turn", measure)
