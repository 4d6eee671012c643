"""Environments and parts of `proof/`, with tiny sizes; what they measure is not tested."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from proof import b, c, d, desk, e, ladder, learn, sales, ticket
from proof.picture import svg
from proof.rows import Row, row
from quintain.environments.sales.policy import COUNTRIES
from quintain.models import Noop, Scripted
from quintain.models.agents import oracle
from quintain.rollouts import Draw
from quintain.trace import Level
from quintain.train.advantages import group_mean
from quintain.train.curriculum import Sampler
from quintain.train.survival import Survival

FIELDS = ["name", "value", "unit", "goal", "ok", "peer", "peer_value"]
ENVIRONMENTS: dict[str, qn.Environment[Any]] = {
    "desk": desk.environment(orders=(1, 3)),
    "long desk": desk.environment(orders=(3, 5), dense=True, long=True),
    "ladder": ladder.environment(),
}


def played(env: qn.Environment[Any], agent: Any, task: int = 0) -> qn.Trace:
    return asyncio.run(qn.rollout(env, env.tasks("test")[task], agent)).trace


def scored(twin: str, *calls: str) -> float | None:
    """Returns the score of some calls; "fix" orders the right repair."""
    env = ticket.environment(twin)
    fault = env.tasks("test")[0].world().fault
    said = [("repair", {"kind": fault}) if call == "fix" else (call, {}) for call in calls]
    return played(env, Scripted.calls(said)).score


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_oracle_solves_and_noop_does_not(name: str) -> None:
    env = ENVIRONMENTS[name]
    assert all(played(env, oracle(), n).score == 1 for n in range(6))
    assert played(env, Noop()).score == 0


@pytest.mark.parametrize("twin", ticket.TWINS)
def test_oracle_solves_and_noop_does_not_in_each_twin(twin: str) -> None:
    env = ticket.environment(twin)
    assert all(played(env, oracle(), n).score == 1 for n in range(6))
    assert played(ticket.environment(twin), Noop()).score == 0


def test_a_twin_pays_for_what_the_sound_environment_does_not() -> None:
    assert (scored("sound", "report", "resolve"), scored("reward_hack", "report", "resolve")) == (0, 1)
    assert (scored("sound", "resolve"), scored("false_resolution", "resolve")) == (0, 1)
    assert (scored("sound", "lend_spare", "resolve"), scored("reward_clipping", "lend_spare", "resolve")) == (0.4, 1)
    assert (scored("sound", "fix", "resolve"), scored("reward_clipping", "fix", "resolve")) == (0.9, 1)
    assert scored("sound", "fix", "report", "resolve") == 1


def test_a_stale_cache_shows_the_first_reading() -> None:
    def last(twin: str) -> Any:
        env = ticket.environment(twin)
        checks = [step for turn in played(env, oracle()).turns for step in turn.steps if step.call.name == "check"]
        return checks[-1].observation

    assert last("sound") == "ok"
    assert last("stale_cache") in ticket.FAULTS


def test_a_reset_leak_pays_for_the_repair_of_a_sibling() -> None:
    env = ticket.environment("reset_leak")
    assert played(env, oracle()).score == 1
    assert played(env, Scripted.calls([("resolve", {})])).score == ticket.REPAIRED
    assert scored("reset_leak", "resolve") == 0


def test_an_outage_fails_the_episode_and_the_twin_swallows_it() -> None:
    traces: list[qn.Trace] = []
    for twin in ("sound", "silent_timeout"):
        env = ticket.environment(twin)
        ticket.LINE.outage = 1.0
        traces.append(played(env, oracle()))
    ticket.LINE.outage = 0.0
    assert (traces[0].validity, traces[1].validity, traces[1].score) == ("invalid", "valid", 0)


def test_twins_differ_in_faults_and_in_the_busy_workshop() -> None:
    faults = {task.world().fault for task in ticket.environment("data_realism").tasks("test")}
    assert faults == {ticket.FAULTS[0]}
    busy = next(task for task in ticket.environment().tasks("test") if task.world().busy)
    for twin, left in (("sound", busy.world().fault), ("action_drift", "ok")):
        env = ticket.environment(twin)
        calls = [("repair", {"kind": busy.world().fault}), ("check", {})]
        trace = asyncio.run(qn.rollout(env, env.task("test", busy.id), Scripted.calls(calls))).trace
        assert trace.turns[1].steps[0].observation == left


def test_dense_rewards_leave_the_score_as_it_is() -> None:
    sparse, dense = (desk.environment(orders=(3, 5), dense=way, long=True) for way in (False, True))
    one, other = played(sparse, oracle()), played(dense, oracle())
    assert (one.score, other.score) == (1, 1)
    phases = [reward for turn in other.turns for reward in turn.rewards if reward.level is Level.PHASE]
    assert [reward.value for reward in phases] == [1] * 5


def test_a_turn_mean_without_dense_rewards_is_the_group_mean() -> None:
    env, table = ladder.environment({1: 2}), learn.Table(ladder.ACTS)
    player = learn.Player(ladder.LadderReader, table.acts, table.choose)
    draws = [Draw(task) for task in env.tasks("train")]
    groups = asyncio.run(learn.play(env, player, draws))
    rows = [one for group in groups for one in qn.trajectories(group.traces)]
    for mine, theirs in zip(learn.turn_mean(rows), group_mean(rows), strict=True):
        assert mine == pytest.approx(theirs)


def test_weights_undo_the_loss_of_episodes_with_a_repair() -> None:
    env, table, survival = ticket.environment(), learn.Table(ticket.TicketReader.acts, ticket.schooled), Survival()
    player = learn.Player(ticket.TicketReader, table.acts, table.choose)
    ticket.LINE.outage = 0.5

    async def run() -> list[qn.Trace]:
        updates = learn.train(env, player, table, Sampler(env.tasks("train")), groups=64, survival=survival)
        async for traces in updates:
            return traces
        raise AssertionError("no update came")

    traces = asyncio.run(run())
    ticket.LINE.outage = 0.0
    repairs = [any(step.call.name == "repair" for turn in one.turns for step in turn.steps) for one in traces]
    meant = sum(repairs) / len(traces)
    kept = [(repaired, survival.weight(one)) for repaired, one in zip(repairs, traces, strict=True) if not one.failure]
    assert sum(repaired for repaired, _ in kept) / len(kept) < meant - 0.05
    weighed = sum(weight for repaired, weight in kept if repaired) / sum(weight for _, weight in kept)
    assert weighed == pytest.approx(meant, abs=0.05)


def test_the_learner_learns_a_short_ladder() -> None:
    env, table = ladder.environment({1: 4}), learn.Table(ladder.ACTS)
    player = learn.Player(ladder.LadderReader, table.acts, table.choose)

    async def run() -> None:
        async for _ in learn.train(env, player, table, Sampler(env.tasks("train"))):
            if table.version == 6:
                return

    asyncio.run(run())
    assert e.solves(table, 1) > 0.6


def test_a_clerk_of_sales_who_knows_the_rules_scores_1() -> None:
    def ruled(key: str) -> list[float]:
        work, *known = key.split()
        if work == "decide":
            objections = [name for name, holds in zip(sales.DECISIONS[2:], known, strict=True) if holds == "True"]
            work = next(iter(objections), "qualified")
        elif work == "give":
            country, segment = key.removeprefix("give ").rsplit(maxsplit=1)
            work = f"{next(one.region for one in COUNTRIES if one.name == country)} {segment}"
        return [100.0 * (act == work) for act in sales.ACTS]

    table, env = learn.Table(sales.ACTS, ruled), sales.environment()
    player = learn.Player(sales.ClerkReader, sales.ACTS, table.choose)
    played = asyncio.run(learn.play(env, player, [Draw(task) for task in env.tasks("test")[:12]], size=1))
    assert [group.traces[0].score for group in played] == [1.0] * 12


@pytest.mark.parametrize("part", [b, e, *(pytest.param(part, marks=pytest.mark.slow) for part in (c, d, sales))])
def test_a_part_gives_whole_rows(part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "by_seed", lambda work, jobs: [work(*job) for job in jobs], raising=False)
    rows: list[Row] = part.measure(True)
    assert len({one["name"] for one in rows}) == len(rows)
    for one in rows:
        assert list(one) == FIELDS
        assert isinstance(one["ok"], bool) == (one["goal"] is not None)


def test_the_table_and_the_picture_show_each_goal(tmp_path: Path) -> None:
    rows = [row("b: one", 4.5, "x", least=4), row("c: two", 0.3, "share", most=0.1), row("d: three", 1, "s")]
    file = tmp_path / "rows.json"
    file.write_text(json.dumps(rows))
    command = [sys.executable, "-m", "proof", "--rows", str(file), "--picture", str(tmp_path / "p.svg")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 1
    assert "b: one" in done.stdout
    assert ">= 4" in done.stdout
    assert (tmp_path / "p.svg").read_text() == svg(rows)
    assert svg(rows).count("goal ") == 2


def test_a_sign_test_of_ten_wins_is_significant() -> None:
    assert e.sign_test(10, 10) == pytest.approx(2 / 1024)
    assert e.sign_test(5, 10) == 1.0
