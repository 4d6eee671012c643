"""Scores: full for the oracle, nothing for agents that do not do the work, less for work that is half or wrong."""

from __future__ import annotations

import asyncio
import functools
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.environments.helpdesk import env
from quintain.environments.helpdesk.family import FAMILIES
from quintain.environments.helpdesk.tasks import COUNTS
from quintain.models import Scripted
from quintain.models.agents import noop, oracle, random
from quintain.trace import Level

KINDS = len(FAMILIES) * 3
LEVELS = ("easy", "medium", "hard")
WRITES = re.compile("update|create|merge|mark")
Task = qn.Task[Any]
SOME = pytest.mark.parametrize(
    "tasks", [range(11), pytest.param(range(11, KINDS), marks=pytest.mark.slow)], ids=["easy", "medium and hard"]
)


@functools.cache
def task(family: str, level: str = "easy", split: str = "validation") -> Task:
    return env.tasks(split)[list(FAMILIES).index(family) + len(FAMILIES) * LEVELS.index(level)]


def _traces(agent: Any, tasks: Sequence[Task]) -> list[qn.Trace]:
    async def every() -> list[qn.Trace]:
        return [(await qn.rollout(env, one, agent)).trace for one in tasks]

    return asyncio.run(every())


def _rewards(one: Task, calls: list[Any], answer: str | None = None) -> dict[str, float | None]:
    trace = _traces(Scripted.calls(calls, one.answer if answer is None else answer), [one])[0]
    assert trace.failure is None, trace.failure
    return {"score": trace.score} | {reward.name: reward.value for reward in trace.rewards}


def _check(tasks: Sequence[Task]) -> None:
    for trace in _traces(oracle(), tasks):
        late = {Level.PHASE, Level.TRAJECTORY}
        why = [
            (r.name, r.value, r.reason) for r in trace.every_reward() if r.level in late and r.value not in (1.0, None)
        ]
        assert (trace.score, why) == (1.0, []), (trace.task, trace.failure)
        steps = [r for r in trace.every_reward() if r.name == "possible"]
        assert {r.value for r in steps} == {1.0}
    for agent in (noop(), random(calls=12)):
        assert {trace.score for trace in _traces(agent, tasks)} == {0.0}


@SOME
def test_the_oracle_scores_one_and_idle_and_random_agents_nothing(tasks: range) -> None:
    _check([env.tasks("test")[one] for one in tasks])


@pytest.mark.slow
@pytest.mark.parametrize("split", COUNTS)
def test_two_hundred_tasks_of_a_split(split: str) -> None:
    _check(list(env.tasks(split)[:200]))


@pytest.mark.slow
def test_tasks_are_equal_to_the_byte_in_another_process() -> None:
    code = """
import asyncio
from quintain.environments.helpdesk import env
for one in env.tasks('train')[:13]:
    print(asyncio.run(one.digest(one.world())))
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert found == [asyncio.run(one.digest(one.world())) for one in env.tasks("train")[:13]]


@pytest.mark.slow
def test_another_process_replays_a_run_to_the_byte(tmp_path: Path) -> None:
    def quintain(*arguments: str) -> str:
        command = [sys.executable, "-m", "quintain", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    out = str(tmp_path / "run")
    quintain("run", "quintain.environments.helpdesk:env", "--agent", "random", "--tasks", "22", "--out", out)
    assert "equal to the byte" in quintain("replay", out)


def test_splits_share_no_task() -> None:
    found = [
        {f"{one.prompt} {one.solution} {one.world().db.digest()}" for one in env.tasks(split)[: len(FAMILIES)]}
        for split in env.splits
    ]
    assert len(set.union(*found)) == sum(map(len, found)) == len(FAMILIES) * len(env.splits)


def test_rewards_come_at_four_levels_and_progress_sums_to_one() -> None:
    trace = _traces(oracle(), [task("refund", "medium")])[0]
    assert {one.level for one in trace.every_reward()} == set(Level) - {Level.GROUP}
    assert sum(one.value or 0.0 for one in trace.every_reward() if one.name == "progress") == pytest.approx(1.0)
    assert [one.name for one in trace.every_reward() if one.level is Level.PHASE] == [
        "opened", "classified", "responded", "resolved"]  # fmt: skip


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "report"])
def test_a_solution_needs_its_writes_alone_and_each_of_them(family: str) -> None:
    one = task(family, "medium")
    writes = [call for call in one.solution or () if WRITES.search(call[0])]
    assert _rewards(one, writes)["score"] == 1.0
    for place in range(len(writes)):
        rest = _rewards(one, [*writes[:place], *writes[place + 1 :]])["score"]
        assert rest is not None
        assert rest < 1.0, writes[place]


def test_a_note_in_place_of_a_reply_does_not_answer() -> None:
    one = task("refund")
    *reads, (tool, body) = list(one.solution or ())
    comment = body["body"]["ticket"]["comment"] | {"public": False}
    bent = {"id": body["id"], "body": {"ticket": body["body"]["ticket"] | {"comment": comment}}}
    assert _rewards(one, [*reads, (tool, bent)])["answered"] == 0.0


def test_an_amount_that_may_not_be_told_takes_the_whole_score() -> None:
    one = task("refund", "medium")
    number, pattern = one.truth.never[0]
    words = f"You get {re.sub('[^0-9.]', '', pattern.split(')')[1].replace('(?:[.,]', '.'))} EUR."
    reply = ("update_ticket", {"id": number, "body": {"ticket": {"comment": {"body": words, "public": True}}}})
    assert re.search(pattern, words), (pattern, words)
    assert _rewards(one, [*(one.solution or ()), reply])["lawful"] == 0.0


def test_changes_of_other_tickets_are_stray() -> None:
    one = task("triage")
    ((number,),) = one.world().db.execute("SELECT min(id) FROM zd_tickets WHERE status = 'open'")
    stray = ("update_ticket", {"id": number, "body": {"ticket": {"tags": ["x"], "priority": "urgent"}}})
    found = _rewards(one, [*(one.solution or ()), stray])
    assert (found["changed"], found["untouched"]) == (1.0, 0.0)


def test_a_note_on_a_ticket_of_the_task_is_free() -> None:
    one = task("triage")
    note = {"ticket": {"comment": {"body": "Looks like the others.", "public": False}}}
    assert (
        _rewards(one, [*(one.solution or ()), ("update_ticket", {"id": one.truth.tickets[0], "body": note})])["score"]
        == 1.0
    )


def test_a_rule_is_proved_by_what_it_does() -> None:
    one = task("rules", "medium")
    (tool, given) = list(one.solution or ())[-1]
    rule = given["body"]["trigger"]
    same = rule | {"conditions": {"all": rule["conditions"]["all"][::-1], "any": []}, "actions": rule["actions"][::-1]}
    wider = rule | {"conditions": {"all": rule["conditions"]["all"][:1]}}
    assert _rewards(one, [(tool, {"body": {"trigger": same}})])["score"] == 1.0
    assert _rewards(one, [(tool, {"body": {"trigger": wider}})])["score"] == 0.25


def test_the_answer_of_a_report_is_judged_alone() -> None:
    one = task("report", "medium")
    assert _rewards(one, [], one.answer)["score"] == 1.0
    assert _rewards(one, list(one.solution or ()), f"{one.answer} or 7")["score"] == 0.0


@pytest.mark.parametrize("level", LEVELS[:2])
def test_refunds_follow_the_rules_by_another_reading(level: str) -> None:
    one = task("refund", level, "test")
    world, wanted = one.world(), {}
    sql = "SELECT ticket_id, body FROM zd_comments WHERE body LIKE 'Shop: %' ORDER BY ticket_id"
    for number, note in world.db.execute(sql):
        ((value, day),) = re.findall(r"value ([\d.]+) EUR, delivered (\S+)\.", note)
        ((days,),) = world.db.execute("SELECT julianday('2026-01-05') - julianday(?)", day)
        share = 1 if days <= 30 else 0.5 if days <= 60 else 0
        wanted[str(number)] = f"{float(value) * share:.2f}"
    found = {goal.row: goal.value for goal in one.truth.goals if getattr(goal, "value", "").count(".") == 1}
    assert found == wanted


def test_duplicates_are_those_of_one_person_about_one_order() -> None:
    one = task("merge", "medium", "test")
    groups: dict[tuple[int, str], list[int]] = {}
    for number, person, text in one.world().db.execute(
        "SELECT id, requester_id, description FROM zd_tickets WHERE id > 4000 ORDER BY id"
    ):
        groups.setdefault((person, re.findall(r"about order (NO-\d+)", text)[0]), []).append(number)
    merged = {call[1]["id"]: call[1]["body"]["ids"] for call in one.solution or () if call[0] == "merge_tickets"}
    assert merged == {first: rest for first, *rest in groups.values() if rest}
