"""Tasks: solved by the oracle, only by its work, and with traces that agree in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

import quintain as qn
from quintain.authoring import LEVELS
from quintain.environments.ops import env
from quintain.environments.ops.description import actions, causes, decoys, families, tables
from quintain.environments.ops.draft import Incident
from quintain.environments.ops.scene import fitting
from quintain.environments.ops.seeding import spec
from quintain.environments.ops.telemetry import stamp
from quintain.environments.ops.verifier import holds
from quintain.models.agents import noop, oracle, random
from quintain.trace import Level, plain

from .desk import KINDS, Task, play, rewards, solution, task_of

KNOWN = {"firing", "waiting", "WARN", "ERROR", "DEBUG"}
"""Arguments that a tool's schema names."""


def traces(agent: Any, tasks: Sequence[Task]) -> list[qn.Trace]:
    async def every() -> list[qn.Trace]:
        return [(await qn.rollout(env, task, agent)).trace for task in tasks]

    return asyncio.run(every())


def check_oracle(tasks: Sequence[Task]) -> None:
    for task, trace in zip(tasks, traces(oracle(), tasks), strict=True):
        why = [(reward.name, reward.value, reward.reason) for reward in trace.every_reward() if reward.value != 1.0]
        assert trace.score == 1.0, (task.id, trace.failure, why)
        assert all(reward.value == 1.0 for reward in trace.every_reward() if reward.level is not Level.TURN), why
        assert sum(
            reward.value or 0.0 for reward in trace.every_reward() if reward.name == "progress"
        ) == pytest.approx(1)
        check_knowledge(task, trace)


def names_in(text: str, task: Task) -> set[str]:
    """Returns the keys of rows in a text."""
    return {key for table in tables() for key in task.world().table(table) if key in text and holds(text, key)}


def check_knowledge(task: Task, trace: qn.Trace) -> None:
    """Checks that a solution knows what it uses.

    What the orchestrator asks for was in the prompt or observed before; what a subagent uses was in its request or
    observed by itself; the facts of a report were observed.
    """
    assert task.solution is not None
    known = f"{task.prompt}\n{env.harness.system}"  # type: ignore[attr-defined]  # the flat harness has it
    steps = iter([step for turn in trace.turns for step in turn.steps])
    for part in task.truth.parts:
        read = ""
        assert [word for word in names_in(part.ask, task) if word.removeprefix("runbook/") not in known] == [], part.ask
        for name, arguments in part.calls:
            for value in arguments.values():
                derived = name in actions() and isinstance(value, int)  # Twice what was read.
                word = str(value).removeprefix("runbook/").removeprefix("service/")
                assert word in part.ask + read or value in KNOWN or derived, (task.id, name, value)
            read += plain(next(steps).observation)
        known += read
        assert [fact for fact in part.facts if not holds(read, fact)] == [], (task.id, part.ask)
    assert all(holds(known, finding.culprit) for finding in task.truth.findings), task.id


@pytest.mark.parametrize("level", [*(pytest.param(one, marks=pytest.mark.slow) for one in LEVELS[:-1]), LEVELS[-1]])
def test_oracle_solves_every_root_cause_and_knows_what_it_says(level: str) -> None:

    check_oracle([task_of(cause, level) for cause in causes()])


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_noop_and_random_calls_get_nothing(step: int) -> None:
    tasks = [task_of(*kind) for kind in KINDS[::step]]
    for agent in (noop(), random(calls=8)):
        assert {trace.score for trace in traces(agent, tasks)} == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize("split", ["validation", "test"])
def test_oracle_solves_all_tasks_of_the_held_out_splits(split: str) -> None:
    tasks = list(env.tasks(split))
    check_oracle(tasks)
    assert {trace.score for agent in (noop(), random(calls=8)) for trace in traces(agent, tasks)} == {0.0}


@pytest.mark.parametrize("cause", causes())
def test_score_is_zero_when_one_necessary_call_is_left_out(cause: str) -> None:
    task = task_of(cause)
    calls = solution(task)
    needed = [place for place, (name, _) in enumerate(calls) if name in actions() or name == "report"]
    assert len(needed) == 2
    for place in needed:
        trace = play(task, [*calls[:place], *calls[place + 1 :]])
        assert trace.score == 0.0
        assert trace.failure is None
        assert [name for name, value in rewards(trace).items() if value == 0.0] == [
            "diagnosed" if calls[place][0] == "report" else "repaired"
        ]


def test_score_is_zero_after_any_other_change() -> None:
    task = task_of("memory_leak")
    trace = play(task, [("cluster_restart_workload", {"workload": "storefront"}), *solution(task)])
    assert (trace.score, rewards(trace)["untouched"], rewards(trace)["repaired"]) == (0.0, 0.0, 1.0)


def test_score_is_zero_when_a_wrong_root_cause_is_reported_too() -> None:
    task = task_of("memory_leak")
    *calls, (name, arguments) = solution(task)
    wrong = {"cause": "volume_full", "service": "cart", "culprit": "cart-data"}
    trace = play(task, [*calls, (name, {"findings": [*arguments["findings"], wrong]})])
    assert (trace.score, rewards(trace)["diagnosed"]) == (0.0, 0.0)


def test_report_ignores_case_and_spaces_of_names() -> None:
    task = task_of("missing_index")
    *calls, (name, arguments) = solution(task)
    (finding,) = arguments["findings"]
    said = finding | {"culprit": f" {finding['culprit'].upper()} "}
    assert play(task, [*calls, (name, {"findings": [said]})]).score == 1.0


def test_another_way_to_the_same_state_is_accepted() -> None:
    task = task_of("too_few_connections")
    calls = [
        ("database_set_parameter", arguments | {"value": "400"})
        if name == "database_reset_parameter"
        else (name, arguments)
        for name, arguments in solution(task)
    ]
    assert play(task, calls).score == 1.0


@pytest.mark.parametrize("cause", causes())
def test_traces_of_a_failure_agree_in_time(cause: str) -> None:
    task = task_of(cause)
    world = task.world()
    begun = [trace.at for trace in (*world.shifts, *world.logs) if trace.fault]
    onset = min(begun)
    assert max(begun) <= onset + 60
    early, late = stamp(onset - 3 * 60), stamp(onset + 6 * 60)
    assert all(early <= row.since <= late for row in world.table("alerts").values() if row.status == "firing")
    healed = [value.key for ill in world.ills.values() for value in ill.heals if value.table == "issues"]
    assert len(healed) == len(causes()[cause].issues)
    assert all(early <= world.table("issues")[key].first_seen <= late for key in healed)
    assert all(row.at <= world.now for row in world.table("events").values())
    if causes()[cause].commit:
        (finding,) = task.truth.findings
        assert early <= world.table("deploys")[finding.culprit].at <= stamp(onset)


def test_curves_and_logs_recover_after_the_repair() -> None:
    task = task_of("timeout_too_short")
    (finding,) = task.truth.findings
    look = ("errors_error_rate", {"service": finding.service, "minutes": 12})
    logs = ("errors_search_logs", {"service": finding.service, "level": "ERROR", "minutes": 12})
    trace = play(task, [look, *task.truth.repair, ("wait", {"minutes": 15}), look, logs])
    before, after = (plain(trace.turns[place].steps[0].observation) for place in (0, 3))
    assert max(_values(before)) > 15
    assert max(_values(after)) < 2
    assert '"found":0' in plain(trace.turns[4].steps[0].observation)


def _values(text: str) -> list[float]:
    return [point[1] for point in json.loads(text)["points"]]


def test_every_family_comes_at_every_level() -> None:
    found = {(task.tags["family"], task.tags["level"]) for task in env.tasks("test")[: 3 * len(families())]}
    assert found == {(family, level) for family in families() for level in LEVELS}


def test_splits_share_no_task() -> None:
    texts = [{str(task.solution) + str(task.prompt) for task in env.tasks(split)[:48]} for split in env.splits]
    assert len(set.union(*texts)) == sum(map(len, texts)) == 48 * 3


def test_hard_tasks_have_two_root_causes_and_more_decoys() -> None:
    hard, easy = task_of("harmful_flag", "hard"), task_of("harmful_flag")
    assert (len(hard.truth.findings), len(easy.truth.findings)) == (2, 1)
    assert len({finding.service for finding in hard.truth.findings}) == 2
    assert len(solution(hard)) > len(solution(easy))


def test_every_root_cause_befalls_several_services_and_there_are_twenty() -> None:
    assert len(causes()) >= 20
    assert len(decoys()) >= 6
    assert min(len(fitting(cause)) for cause in causes().values()) >= 4
    assert len(spec().services) == 14


def test_equal_keys_write_equal_tasks() -> None:
    made = [Incident(b"0" * 16, "hard") for _ in range(2)]
    for incident in made:
        incident.befall("dead_rows")
    one, other = (incident.task("t", answer="", tags={}) for incident in made)
    assert (one.prompt, one.truth, one.solution) == (other.prompt, other.truth, other.solution)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("database_vacuum_table", {"table": "shop-db.baskets"}),
        ("database_analyze_table", {"table": "shop-db.baskets"}),
        ("cluster_renew_certificate", {"certificate": "cart.halden.example"}),
        ("deployments_set_config", {"config": "cart.LOG_LEVEL", "value": "info"}),
    ],
)
def test_needless_upkeep_is_a_stray_change(tool: str, arguments: dict[str, Any]) -> None:
    task = task_of("too_few_replicas")
    trace = play(task, [(tool, arguments), *solution(task)])
    assert (trace.score, rewards(trace)["untouched"]) == (0.0, 0.0)
