"""Once on `sales`: a table policy learns whom to qualify and who gets the lead, from the score alone.

The clerk knows the work and not the rules: it finds the lead, reads it, its account and the colleagues, decides at
random, gives a qualified lead to a random colleague and tells him, and writes a note. The table sees numbers by the
limits that the desk's policy names, and the country of the account as it is written. The tasks are those of the family
`qualify`, level easy. `python -m proof.sales`; it is not in `make proof`.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import quintain as qn
from proof.learn import GROUP, Player, Table, mean, play, train
from proof.rows import Row, by_seed, listed, main, row
from quintain.environments.sales import env as sales
from quintain.rollouts import Draw
from quintain.trace import Message
from quintain.train.curriculum import Sampler

SEEDS, UPDATES, GROUPS, SCHOOLING = 3, 40, 8, 5.0
READS = ("crm_search", "lead", "account", "crm_colleagues")
DECISIONS = ("qualified", "nurture", "too_small", "no_budget", "no_timeline")
OWNERS = tuple(f"{region} {segment}" for region in ("AMER", "EMEA", "APAC") for segment in ("mid", "enterprise"))
ACTS = ("read", *DECISIONS, *OWNERS, "mail", "note", "end")
NAME = re.compile(r"the lead (.+?) at |pile, (.+?) \(|the lead from .+, (.+?)\?")


class ClerkReader:
    """View of a lead: what was read, the numbers by their limits, the country, and what was done."""

    def __init__(self) -> None:
        self._act = self._name = ""
        self._read: list[Any] = []
        self._done: list[str] = []

    def read(self, message: Message) -> None:
        """Takes the request or an observation."""
        if message.role == "user" and (found := NAME.search(message.text)):
            self._name = next(filter(None, found.groups()))
        elif message.role == "tool" and self._act == "read" and message.text[:1] in {"{", "["}:
            self._read.append(json.loads(message.text))

    def key(self) -> str:
        """Returns the state."""
        if len(self._read) < len(READS):
            return f"read {len(self._read)}"
        _, lead, account, *_ = self._read
        segment = "mid" if account["employees"] < 1000 else "enterprise"
        if not self._done:
            is_small, is_poor = account["employees"] < 50, lead["budget_eur"] < 10_000
            return f"decide {is_small} {is_poor} {lead['months'] > 6}"
        if self._done == ["qualified"]:
            return f"give {account['country']} {segment}"
        work = ("mail", "note") if self._done[0] == "qualified" else ("note",)
        return next((act for act in work if act not in self._done), "end")

    def call(self, act: str) -> tuple[str, dict[str, Any]] | None:
        """Returns the call of an act; what was not read is "none"."""
        self._act = act
        whole = len(self._read) == len(READS)
        lead = self._read[1]["id"] if len(self._read) > 1 else "none"
        if act in {"read", "end"}:
            return self._next() if act == "read" else None
        if whole:
            self._done.append(act)
        if act in DECISIONS:
            status = act if act in {"qualified", "nurture"} else "disqualified"
            return "crm_decide_lead", {"lead_id": lead, "status": status} | ({} if status == act else {"reason": act})
        if act == "note":
            return "crm_log", {"record_id": lead, "kind": "note", "text": "Judged by the rules."}
        owner = next((one for one in self._done if one in OWNERS), act)
        found = [one for one in (self._read[3] if whole else ()) if f"{one['region']} {one['segment']}" == owner]
        rep = found[0] if found else {"id": "none", "email": "none"}
        if act == "mail":
            return "mail_send", {"to": rep["email"], "subject": "Lead", "body": f"For you: {self._name}."}
        return "crm_assign_owner", {"record_id": lead, "rep_id": rep["id"]}

    def _next(self) -> tuple[str, dict[str, Any]]:
        if not self._read:
            return "crm_search", {"kind": "leads", "query": self._name}
        if len(self._read) == 1:
            return "crm_get", {"record_id": next((one["id"] for one in self._read[0]["records"]), "none")}
        return ("crm_get", {"record_id": self._read[1]["account"]}) if len(self._read) == 2 else ("crm_colleagues", {})


def schooled(key: str) -> list[float]:
    """Returns the logits of the clerk: the kind of work is known, the decision and the owner are not."""
    (work, *_) = key.split()
    known = {"decide": DECISIONS, "give": OWNERS}.get(work, (work,))
    return [SCHOOLING * (act in known) for act in ACTS]


def environment() -> qn.Environment[Any]:
    """Returns the desk with the tasks of one family and level."""

    def tasks(split: str) -> list[qn.Task[Any]]:
        return [one for one in sales.tasks(split) if one.tags == {"family": "qualify", "level": "easy"}]

    return qn.Environment(
        "sales_qualify",
        tasks=tasks,
        harness=sales.harness,
        verifier=sales.verifier,
        state=sales.state,
        config=qn.Config(max_turns=14),
    )


def learn(seed: int, updates: int) -> tuple[float, float]:
    """Returns the mean score on the tasks of the split "test", before and after."""

    async def run() -> tuple[float, float]:
        env, table = environment(), Table(ACTS, schooled)
        player, sampler = Player(ClerkReader, ACTS, table.choose), Sampler(env.tasks("train"), seed=seed)

        async def tested() -> float:
            played = await play(env, player, [Draw(task, seed) for task in env.tasks("test")])
            return mean([trace.score for group in played for trace in group.traces])

        before = await tested()
        async for _ in train(env, player, table, sampler, groups=GROUPS):
            if table.version >= updates:
                break
        return before, await tested()

    return asyncio.run(run())


def measure(quick: bool) -> list[Row]:  # noqa: FBT001
    """Returns the rows; none has a goal."""
    seeds, updates = (1, 1) if quick else (SEEDS, UPDATES)
    found = by_seed(learn, [(seed, updates) for seed in range(seeds)])
    episodes = updates * GROUPS * GROUP
    return [
        row("s: test score of the clerk, mean", mean([one for one, _ in found]), "score"),
        row(
            f"s: test score after {episodes} episodes, mean of {seeds} seeds",
            mean([one for _, one in found]),
            "score",
            beside=(listed(one for _, one in found), None),
        ),
    ]


if __name__ == "__main__":
    main("s: the desk of sales", measure)
