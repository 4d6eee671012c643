"""A domain of tau2-bench as an Environment."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from quintain.config import Config
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import Harness, ToolLoop
from quintain.harnesses import Dialogue
from quintain.task import Task

from .data import DOMAINS, Criteria, Entry, Folder, Start
from .scoring import Assertions, Judge, verifier
from .world import World

_AGENT = """\
You are a customer service agent. Follow the policy below and nothing else; do one thing at a time, either speak to the
customer or call a tool.

"""
_WRITTEN = """\
A customer has written to us and cannot be asked anything. This is what they were told about their case; take their
agreement to what it asks for as given.

"""
_HELD = """\
You hold the customer's phone: where the policy has you guide the customer, use the phone's tools yourself.

"""
_CUSTOMER = """\
You are a customer who talks to a service agent. Play the role described here: say what a person in this situation would
say, a sentence or two at a time, tell only what you are asked for, and invent nothing. Say ###STOP### when your request
is settled, ###TRANSFER### when you are handed over to a person, and ###OUT-OF-SCOPE### when the role doesn't tell you
how to go on.
"""
_ENDS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
_OPTIONS = {
    "nl_assertions": ("judge", "assume-true"),
    "customer": ("written", "simulated"),
    "policy": ("manual", "workflow"),
}
_GREETING = "Hi! How can I help you today?"


def load(
    domain: str,
    *,
    data: str | Path,
    nl_assertions: Assertions = "judge",
    customer: Literal["written", "simulated"] = "written",
    judge: Judge | None = None,
    policy: Literal["manual", "workflow"] = "manual",
) -> Environment[World]:
    """Returns a domain of tau2-bench as an environment. Its database is read with the first task.

    Args:
        domain: "retail", "airline", "telecom" or "banking_knowledge".
        data: Upstream's repository, its data folder, or one like it; files may be gzipped.
        nl_assertions: Treatment of assertions on the conversation that need a judge: "judge" fails the episode
            without a judge, "assume-true" takes them for true and records that.
        customer: "written": the agent gets the whole case, and answers once. "simulated": agent and customer
            talk; the model plays both roles, "agent" and "user". Where the customer has tools, the agent of a written
            case has them too.
        judge: Language-model judge that decides whether an assertion about a conversation is true.
        policy: Guide to technical support that telecom's agent gets.

    Raises:
        UsageError: Unknown domain or option, or data that are missing or not tau2-bench's.
    """
    _check_options(nl_assertions=nl_assertions, customer=customer, policy=policy)
    folder = Folder(domain, data)
    entries = folder.entries()
    splits = folder.splits(entries)
    parts = DOMAINS[domain]
    solo = parts.solo if customer == "written" else None
    tasks = functools.cache(functools.partial(_tasks, folder, entries, written=customer == "written", solo=solo))

    def of(split: str) -> Sequence[Task[World]]:
        known = tasks()
        return [known[name] for name in splits[split]]

    system = _AGENT + folder.policy(policy)
    simulated = Dialogue(system=system, user_system=_CUSTOMER, opening=_GREETING, stop=_ENDS)
    harness: Harness = ToolLoop(system=system) if customer == "written" else simulated
    return Environment(
        f"tau2_{domain}",
        tasks=of,
        harness=harness,
        verifier=verifier(nl_assertions=nl_assertions, judge=judge),
        state=solo or parts.state,
        config=Config(max_turns=200),
        splits=tuple(splits),
    )


def _check_options(**given: str) -> None:
    for name, value in given.items():
        if value not in _OPTIONS[name]:
            raise UsageError(f"{name} must be one of {', '.join(_OPTIONS[name])}, got {value!r}")


def _tasks(
    folder: Folder, entries: dict[str, Entry], *, written: bool, solo: type[World] | None
) -> dict[str, Task[World]]:
    world = folder.world()
    if solo:
        world = solo(**{name: getattr(world, name) for name in world.__struct_fields__})
    return {entry.id: _task(entry, world, written=written) for entry in entries.values()}


def _task(entry: Entry, world: World, *, written: bool) -> Task[World]:
    truth = entry.evaluation_criteria or Criteria(reward_basis=())
    script = str(entry.user_scenario)
    case = _HELD + entry.ticket if entry.ticket else script
    calls = [(one.requestor, (one.name, one.arguments)) for one in truth.actions or ()]
    is_alone = written or all(requestor == "assistant" for requestor, _ in calls)
    initial = entry.initial_state or Start()
    is_own = world.foresees or initial.initialization_actions or initial.initialization_data
    return Task(
        id=entry.id,
        prompt=_WRITTEN + case if written else "",
        start=functools.partial(_started, world, initial, [call for _, call in calls]) if is_own else world,
        truth=truth,
        solution=tuple(call for _, call in calls) if is_alone else None,
        answer="\n".join(["Done.", *(truth.communicate_info or ())]),
        roles={"user": script},
        tags={"basis": "+".join(truth.reward_basis)},
    )


def _started(world: World, initial: Start, calls: list[tuple[str, dict[str, Any]]]) -> World:
    """Returns the world as a task finds it, after the rows and the functions that prepare it."""
    started = world.copy()
    started.foresee(calls)
    data: dict[str, Any] = initial.initialization_data or {}
    started.adopt(data.get("agent_data") or {})
    for function in initial.initialization_actions or ():
        getattr(started, function.func_name)(**function.arguments)
        started.settle()
    return started
