"""A domain of tau2-bench as an Environment."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from quintain.config import Config
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import Dialogue, Harness, ToolLoop
from quintain.task import Task

from .data import DOMAINS, Criteria, Entry, Folder
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
_CUSTOMER = """\
You are a customer who talks to a service agent. Play the role described here: say what a person in this situation would
say, a sentence or two at a time, tell only what you are asked for, and invent nothing. Say ###STOP### when your request
is settled, ###TRANSFER### when you are handed over to a person, and ###OUT-OF-SCOPE### when the role doesn't tell you
how to go on.
"""
_ENDS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
_GREETING = "Hi! How can I help you today?"


def load(
    domain: str,
    *,
    data: str | Path,
    nl_assertions: Assertions = "judge",
    customer: Literal["written", "simulated"] = "written",
    judge: Judge | None = None,
) -> Environment[World]:
    """Returns a domain of tau2-bench as an environment. Its database is read with the first task.

    Args:
        domain: "retail" or "airline".
        data: Upstream's repository, its data folder, or one like it; files may be gzipped.
        nl_assertions: Treatment of assertions on the conversation that need a judge: "judge" fails the episode
            without a judge, "assume-true" takes them for true and records that.
        customer: "written": the agent gets the whole case, and answers once. "simulated": agent and customer
            talk; the model plays both roles, "agent" and "user".
        judge: Language-model judge that decides whether an assertion about a conversation is true.

    Raises:
        UsageError: Unknown domain or option, or data that are missing or not tau2-bench's.
    """
    for name, value, known in (
        ("nl_assertions", nl_assertions, ("judge", "assume-true")),
        ("customer", customer, ("written", "simulated")),
    ):
        if value not in known:
            raise UsageError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    folder = Folder(domain, data)
    entries = folder.entries()
    splits = folder.splits(entries)
    tasks = functools.cache(functools.partial(_tasks, folder, entries, written=customer == "written"))

    def of(split: str) -> Sequence[Task[World]]:
        known = tasks()
        return [known[name] for name in splits[split]]

    policy = _AGENT + folder.text("policy.md")
    simulated = Dialogue(system=policy, user_system=_CUSTOMER, opening=_GREETING, stop=_ENDS)
    harness: Harness = ToolLoop(system=policy) if customer == "written" else simulated
    return Environment(
        f"tau2_{domain}",
        tasks=of,
        harness=harness,
        verifier=verifier(nl_assertions=nl_assertions, judge=judge),
        state=DOMAINS[domain].state,
        config=Config(max_turns=200),
        splits=tuple(splits),
    )


def _tasks(folder: Folder, entries: dict[str, Entry], *, written: bool) -> dict[str, Task[World]]:
    world = folder.world()
    return {entry.id: _task(entry, world, written=written) for entry in entries.values()}


def _task(entry: Entry, world: World, *, written: bool) -> Task[World]:
    truth = entry.evaluation_criteria or Criteria(reward_basis=())
    script = str(entry.user_scenario)
    return Task(
        id=entry.id,
        prompt=_WRITTEN + script if written else "",
        start=world,
        truth=truth,
        solution=tuple(
            (action.name, action.arguments) for action in truth.actions or () if action.requestor == "assistant"
        ),
        answer="\n".join(["Done.", *(truth.communicate_info or ())]),
        roles={"user": script},
        tags={"basis": "+".join(truth.reward_basis)},
    )
