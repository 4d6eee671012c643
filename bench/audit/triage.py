"""Accuracy of triage on episodes with known, injected faults.

Seven policies play `sales` and `helpdesk`: the solution, with read-backs, with mistakes, giving up, clumsily, at
random, and nothing. One fault is put into some of the episodes while they are played: a tool that crashes, a stale
read, a verdict that flips, a call that the trainer drops. The world that triage replays in does not have it, as with
a fault of last night. Other faults are built in: then triage gets the faulty environment, and every replay has the
fault too. A small dialogue has a simulated user who goes wrong.

An episode is the policy's unless a fault really changed something in it. What counts most is the precision of "not the
policy's fault": an episode that is wrongly left out biases training. Recall is given by fault, including those that no
record can show.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from _triage_dialogue import desk, talk
from _triage_faults import (
    FAULTS,
    HANG_S,
    POLICIES,
    SALES_ALONE,
    TASK_FAULTS,
    Fate,
    Fault,
    Meddle,
    Meddled,
    Said,
    held_stale,
    policy,
    renamed,
    spoiled,
    verdict,
)

import quintain as qn
from quintain.audit.facts.bounds import bounds
from quintain.audit.triage import Reading, triage
from quintain.audit.triage.episode_log import of_trace
from quintain.audit.triage.labels import OWNERS
from quintain.environments.helpdesk import env as helpdesk
from quintain.environments.sales import env as sales
from quintain.rollout import rollout
from quintain.state import Rng
from quintain.trace import Trace

GOAL = 0.95
ACCIDENT = "accident"
"""Label of an episode that broke by accident, as when a tool hits its limit on a busy machine. It counts nowhere."""
FAULTY = 0.4
"""Share of the episodes into which a fault is put; fewer come about."""


class Known(NamedTuple):
    """An episode, and what we know of it."""

    trace: Trace
    owner: str
    fault: str
    """Empty where none came about."""
    loud: bool


class Filed(NamedTuple):
    """Known origin of an episode, and the result of triage."""

    known: Known
    owner: str
    rule: int
    classes: tuple[str, ...]
    alone: str
    """The owner that it names where it has nothing but the records."""


def environment(spoil: dict[int, str], world: qn.Environment[Any] = sales) -> qn.Environment[Any]:
    """`sales`, or another world, with some broken tasks."""
    tasks = world.tasks("test")

    def made(split: str) -> qn.Tasks[Any]:
        del split

        def make(n: int) -> qn.Task[Any]:
            return spoiled(tasks[n], tasks[n + 6], spoil[n]) if n in spoil else tasks[n]

        return qn.Tasks(len(tasks) - 6, make)

    config = msgspec.structs.replace(world.config, tool_timeout_s=HANG_S, noise_rate=0.02, gate_rate=None)
    parts = {"harness": world.harness, "verifier": world.verifier, "state": world.state, "config": config}
    return qn.Environment(world.name, tasks=made, **parts)


def meddled(env: qn.Environment[Any], meddle: Meddle, fate: Fate) -> qn.Environment[Any]:
    twin = copy.copy(env)
    twin.tools = {
        name: Meddled(**{f: getattr(tool, f) for f in tool.__struct_fields__}, meddle=meddle, fate=fate)
        for name, tool in env.tools.items()
    }
    twin._by_role = {}
    return twin


async def play(env: qn.Environment[Any], n: int, rng: Rng, *, fault: str, spoil: dict[int, str]) -> Known:
    """One episode, with a fault or without."""
    task = env.tasks("test")[n]
    fate = Fate(rng)
    good = sales.tasks("test")[n] if n in spoil else task  # the policy reads the prompt, not the wrong gold
    model = policy(rng.choice(POLICIES), good, rng)
    what = FAULTS.get(fault, Fault("policy", loud=False))
    if what.tools is not None:
        env = meddled(env, what.tools, fate)
    if what.verdict is not None:
        env = verdict(fate, env, what.verdict)
    if what.reply:
        model = Said(model, fate, fault)
    trace = (await rollout(env, task, model, seed=1, member=rng.below(10**6), split="test")).trace
    if what.after is not None:
        what.after(fate, trace)
    if fault == "verifier_crash":
        fate.fired = trace.failure is not None
    if fate.fired:
        return Known(trace, what.owner, fault, what.loud)
    if trace.failure is not None:
        return Known(trace, ACCIDENT, "", loud=True)
    return Known(trace, "task", spoil[n], loud=False) if n in spoil else Known(trace, "policy", "", loud=False)


async def live(count: int, rng: Rng) -> list[Filed]:
    """Faults that are gone when triage replays, in groups of three; a third of them in `helpdesk`."""
    spoil = {n: TASK_FAULTS[n // 8 % len(TASK_FAULTS)] for n in range(3, count // 3, 8)}
    found: list[Filed] = []
    for env, broken, size in ((environment(spoil), spoil, count), (environment({}, helpdesk), {}, count // 2)):
        names = sorted(FAULTS if env.name == "sales" else FAULTS.keys() - set(SALES_ALONE))
        played: list[Known] = []
        for n in range(size):
            fault = names[n % len(names)] if rng.random() < FAULTY else ""
            played.append(await play(env, n // 3, rng, fault=fault, spoil=broken))
        found += await filed(played, env)
    return found


async def built_in(count: int, rng: Rng) -> list[Filed]:
    """Faults that every replay has too."""
    found: list[Filed] = []
    for name, owner, meddle in (("held_stale", "env", held_stale), ("renamed", "env", renamed)):
        fate = Fate(rng)
        env = meddled(environment({}), meddle, fate)
        played: list[Known] = []
        for n in range(count):
            fate.fired = False
            known = await play(env, n, rng, fault="", spoil={})
            played.append(Known(known.trace, owner, f"built-in {name}", loud=False) if fate.fired else known)
        found += await filed(played, env)
    fate = Fate(rng)
    env = verdict(fate, environment({}), lambda value: 1.0)
    played = []
    for n in range(count):
        fate.fired = False
        known = await play(env, n, rng, fault="", spoil={})
        paid = (known.trace.score or 0.0) >= 1  # deserved or not: such a reward says nothing
        played.append(Known(known.trace, "verifier", "built-in pays_all", loud=False) if paid else known)
    return found + await filed(played, env)


async def dialogue(count: int, rng: Rng) -> list[Filed]:
    """A simulated user who goes wrong."""
    env = desk()
    played: list[Known] = []
    for n in range(count):
        model, fault = talk(env.tasks("test")[n], rng)
        trace = (await rollout(env, env.tasks("test")[n], model, seed=1, member=n, split="test")).trace
        played.append(Known(trace, "simulator" if fault else "policy", fault, loud=False))
    return await filed(played, env)


async def filed(played: list[Known], env: qn.Environment[Any]) -> list[Filed]:
    """Returns the results of triage for records that have been on disk."""
    traces = [Trace.from_json(known.trace.to_json()) for known in played]
    reading = Reading(played=[of_trace(trace, place=f"{n}", index=n) for n, trace in enumerate(traces)])
    report = await triage(reading, env)
    alone = await triage(reading)
    return [
        Filed(known, one.label.owner, one.label.rule, one.label.classes, bare.label.owner)
        for known, one, bare in zip(played, report.judged, alone.judged, strict=True)
    ]


# --- figures ---


def figures(found: list[Filed]) -> dict[str, Any]:
    """Confusion by owner; precision and recall of "not the policy's fault", with 95 % bounds; recall by fault."""
    accidents = sum(one.known.owner == ACCIDENT for one in found)
    found = [one for one in found if one.known.owner != ACCIDENT]
    matrix: dict[str, Counter[str]] = {owner: Counter() for owner in OWNERS}
    by_fault: dict[str, list[Filed]] = defaultdict(list)
    for one in found:
        matrix[one.known.owner][one.owner] += 1
        by_fault[one.known.fault or "(none)"].append(one)
    said = [one for one in found if one.owner != "policy"]
    real = [one for one in found if one.known.owner != "policy"]
    return {
        "episodes": len(found),
        "accidents": accidents,
        "confusion": {owner: dict(row) for owner, row in matrix.items() if row},
        "precision": rate(said, lambda one: one.known.owner != "policy"),
        "recall": rate(real, lambda one: one.owner != "policy"),
        "recall_loud": rate([one for one in real if one.known.loud], lambda one: one.owner != "policy"),
        "recall_silent": rate([one for one in real if not one.known.loud], lambda one: one.owner != "policy"),
        "records_alone_precision": rate([o for o in found if o.alone != "policy"], lambda o: o.known.owner != "policy"),
        "records_alone_recall": rate(real, lambda one: one.alone != "policy"),
        "owner_accuracy": rate(found, lambda one: one.owner == one.known.owner),
        "by_fault": {
            name: {
                "episodes": len(own),
                "not_policy": sum(one.owner != "policy" for one in own),
                "owner": sum(one.owner == one.known.owner for one in own),
                "rules": dict(sorted(Counter(str(one.rule) for one in own).items())),
            }
            for name, own in sorted(by_fault.items())
        },
        "wrong": [
            {"said": one.owner, "rule": one.rule, "classes": list(one.classes), "place": n}
            for n, one in enumerate(found)
            if one.owner != "policy" and one.known.owner == "policy"
        ],
    }


def rate(found: list[Filed], right: Callable[[Filed], bool]) -> dict[str, float]:
    count = sum(map(right, found))
    low, high = bounds(count, len(found))
    return {"right": count, "of": len(found), "rate": count / len(found) if found else 0.0, "low": low, "high": high}


def show(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(width=120)
    table = Table(title="confusion: rows are the truth, columns what triage says", title_justify="left")
    table.add_column("owner")
    for owner in OWNERS:
        table.add_column(owner, justify="right")
    for owner, row in result["confusion"].items():
        table.add_row(owner, *(str(row.get(said, "")) for said in OWNERS))
    console.print(table)
    table = Table(title="by fault", title_justify="left")
    for name in ("fault", "episodes", "not the policy's", "right owner", "rules"):
        table.add_column(name)
    for name, one in result["by_fault"].items():
        rules = ", ".join(f"{rule}: {count}" for rule, count in one["rules"].items())
        table.add_row(name, str(one["episodes"]), str(one["not_policy"]), str(one["owner"]), rules)
    console.print(table)
    for name, one in result.items():
        if not isinstance(one, dict) or "right" not in one:
            continue
        console.print(
            f"{name:<24}{one['right']} of {one['of']}: {one['rate']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
        )
    console.print(f"goal: precision >= {GOAL}; {result['episodes']} episodes, {result['accidents']} accidents")


async def measure(size: int, seed: int) -> dict[str, Any]:
    rng = Rng(key=seed.to_bytes(16, "little"))
    found = await live(12 * size, rng)
    found += await built_in(size, rng)
    found += await dialogue(2 * size, rng)
    return figures(found)


def main() -> None:
    parser = argparse.ArgumentParser(description="How often triage is right")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object and nothing else")
    parser.add_argument("--quick", action="store_true", help="few episodes: shows that it works, measures little")
    parser.add_argument("--size", type=int, default=50, help="23 episodes each")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    result = asyncio.run(measure(4 if options.quick else options.size, options.seed))
    result |= {"seconds": time.monotonic() - started, "goal": GOAL, "ok": result["precision"]["rate"] >= GOAL}
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        show(result)


if __name__ == "__main__":
    main()
