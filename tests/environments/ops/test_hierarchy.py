"""The orchestrator and its subagents: the same tasks, linked inner traces, and environments of single services."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.environments.ops import RoutedOracle, env, inner_traces, make
from quintain.environments.ops.description import SERVICES
from quintain.harness import Model, Request
from quintain.models import Cast, Scripted
from quintain.models.agents import noop, oracle
from quintain.replay import replay
from quintain.trace import Message, Reply, Tokens, ToolCall

from .desk import KINDS

ROUTED = make(harness="hierarchical")


def routed(index: int, model: Any = None, split: str = "train") -> tuple[qn.Task[Any], qn.Trace]:
    task = ROUTED.tasks(split)[index]
    agent = RoutedOracle() if model is None else model
    return task, asyncio.run(qn.rollout(ROUTED, task, agent)).trace


def test_both_harnesses_have_the_same_tasks() -> None:
    for index in (0, 9, 20):
        flat, deep = env.tasks("test")[index], ROUTED.tasks("test")[index]
        assert (flat.id, flat.prompt, flat.truth, None) == (deep.id, deep.prompt, deep.truth, deep.solution)
        tables = [
            [world.table(name).digest() for name in ("deploys", "issues")] for world in (flat.world(), deep.world())
        ]
        assert tables[0] == tables[1]


def test_orchestrator_has_no_tool_of_a_service_and_each_subagent_its_own() -> None:
    assert [tool.name for tool in ROUTED.tools_of("agent")] == ["now_is", "wait", "report"]
    for service in SERVICES:
        own = [tool.name for tool in ROUTED.tools_of(service) if tool.name not in {"now_is", "wait"}]
        assert own == [name for name in env.tools if name.startswith(f"{service}_")]


@pytest.mark.parametrize("index", range(0, len(KINDS), 7))
def test_oracle_solves_the_tasks_through_six_subagents(index: int) -> None:
    task, trace = routed(index)
    assert trace.score == 1.0, [(reward.name, reward.reason) for reward in trace.rewards]
    inner = list(inner_traces(task, trace))
    assert [one.service for one in inner] == [part.service for part in task.truth.parts]
    assert {one.trace.score for one in inner} == {1.0}


def test_inner_traces_are_linked_to_the_turn_that_asked() -> None:
    task, trace = routed(0)
    inner = list(inner_traces(task, trace))
    for one, part in zip(inner, task.truth.parts, strict=True):
        asking = trace.turns[one.turn]
        assert asking.role == "agent"
        assert [call.name for call in asking.reply.message.calls] == [f"ask_{one.service}"]
        assert part.ask in asking.reply.message.calls[0].arguments
        assert [call.name for turn in one.trace.turns for call in turn.reply.message.calls] == [
            name for name, _ in part.calls
        ]
        assert one.trace.tags["outer_turn"] == str(one.turn)
        assert [message.role for message in one.trace.context(0)] == ["system", "user"]
        following = trace.context(next(turn.index for turn in trace.turns[one.turn + 1 :] if turn.role == "agent"))
        assert following[-1].text == part.say
    assert sum(len(one.trace.turns) for one in inner) == sum(turn.role != "agent" for turn in trace.turns)
    repair = [one for one, part in zip(inner, task.truth.parts, strict=True) if part.repairs]
    progress = [reward for reward in repair[0].trace.every_reward() if reward.name == "progress"]
    assert sum(reward.value or 0.0 for reward in progress) > 0


def test_inner_report_without_the_facts_scores_nothing() -> None:
    ask = ToolCall("c1", "ask_errors", '{"prompt": "Which alerts are firing?"}')
    agent = Scripted([Reply(Message("assistant", calls=(ask,))), Reply(Message("assistant", "I give up."))])
    errors = Scripted([Reply(Message("assistant", "None, I think."))])
    task = ROUTED.tasks("train")[0]
    trace = asyncio.run(qn.rollout(ROUTED, task, Cast(agent=agent, errors=errors))).trace
    (inner,) = inner_traces(task, trace)
    assert (inner.turn, inner.service, inner.trace.score, trace.score) == (0, "errors", 0.0, 0.0)


class WithTokens:
    """Agent whose replies have token ids."""

    name = "with_tokens"

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        inner = RoutedOracle().model(task, seed)

        async def ask(request: Request) -> Reply:
            reply = await inner(request)
            own = Tokens([1] * 10 * len(request.messages), [7], [-0.5])
            return msgspec.structs.replace(reply, tokens=own)

        return ask


def test_inner_traces_give_rows_with_their_own_score() -> None:
    task, trace = routed(1, WithTokens())
    inner = list(inner_traces(task, trace))
    rows = [row for one in inner for row in qn.trajectories([one.trace])]
    assert len(rows) >= len(inner) > 0
    assert {row.score for row in rows} == {1.0}
    assert sum(len(qn.trajectories([trace], role=role)) for role in SERVICES) == len(rows)


def test_record_of_a_hierarchical_run_replays_to_the_byte_and_gives_rows_by_role() -> None:
    task, trace = routed(3)
    assert asyncio.run(replay(ROUTED, task, trace)).to_bytes() == trace.to_bytes()
    assert {turn.role for turn in trace.turns} <= {"agent", *SERVICES}


@pytest.mark.parametrize("service", SERVICES)
def test_environment_of_one_service_is_solved_alone(service: str) -> None:
    alone = make(service=service)
    assert {name.partition("_")[0] for name in alone.tools} == {service, "now", "wait"}
    tasks = list(alone.tasks("validation")[:6])

    async def scores(agent: Any) -> set[float | None]:
        return {(await qn.rollout(alone, task, agent)).trace.score for task in tasks}

    assert asyncio.run(scores(oracle())) == {1.0}
    assert asyncio.run(scores(noop())) == {0.0}


def test_subagent_of_an_environment_alone_is_punished_for_what_nobody_asked() -> None:
    alone = make(service="cluster")
    task = next(task for task in alone.tasks("train") if not any(part.repairs for part in task.truth.parts))
    calls = [("cluster_drain_node", {"node": "node-05"}), *(task.solution or ())]
    trace = asyncio.run(qn.rollout(alone, task, Scripted.calls(calls, task.answer))).trace
    assert {reward.name: reward.value for reward in trace.rewards}["untouched"] == 0.0
    assert trace.score == 0.0


@pytest.mark.parametrize(
    ("service", "fact", "others"),
    [
        ("database", r"Q-\d+", ""),
        ("database", "stopped", "07:07 or 13:21"),
        ("database", "stopped", "streaming"),
        ("deployments", "info", "debug"),
        ("database", r"\w\.\w+", "m.keller, a.novak, j.silva, r.okafor, t.lindqvist, s.moreau, d.haddad, k.tanaka"),
        ("cluster", r"\d+", "4 or 6 or 8 or 12"),
        ("errors", "payments", "cart, search, orders, shipping, accounts, storefront"),
    ],
)
def test_report_that_names_every_candidate_is_not_paid_in_full(service: str, fact: str, others: str) -> None:
    alone = make(service=service)
    tasks = (alone.tasks("train")[index] for index in range(200))
    task = next(task for task in tasks if any(re.fullmatch(fact, one) for one in task.truth.parts[0].facts))
    (part,) = task.truth.parts
    if fact.startswith("Q"):
        others = " ".join(task.world().table("statements"))
    for said, is_right in ((part.say, True), (f"{part.say} Or {others}.", False)):
        trace = asyncio.run(qn.rollout(alone, task, Scripted.calls(task.solution or (), said))).trace
        assert (trace.score == 1.0) == is_right


def test_report_that_denies_the_facts_scores_nothing() -> None:
    alone = make(service="errors")
    task = alone.tasks("train")[0]
    (part,) = task.truth.parts
    said = f"It is not {part.say}"
    assert asyncio.run(qn.rollout(alone, task, Scripted.calls(task.solution or (), said))).trace.score == 0.0


def test_repair_that_is_made_twice_is_a_stray_change() -> None:
    alone = make(service="database")
    task = next(task for task in alone.tasks("train") if "Collect fresh statistics" in str(task.prompt))
    assert task.solution
    once, *rest = task.solution
    trace = asyncio.run(qn.rollout(alone, task, Scripted.calls([once, once, *rest], task.answer))).trace
    assert trace.score == 0.0
