"""Rules 1 to 5, each on its smallest episode and on a sound one."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.errors import Failure
from quintain.testing.fakes import Counter
from quintain.trace import End, Trace
from tests.audit.triage.episodes import COUNTER, TOOLS, answers, asks, count, file, found, one, play, row, said

replaced = msgspec.structs.replace


def reward(value: float | None, **fields: Any) -> Trace:
    """Returns a sound episode with another reward in its record."""
    return replaced(play(COUNTER, count(1)), score=value, **fields)


# --- 1 boundary ---


@pytest.mark.parametrize(
    ("part", "kind", "owner", "classes"),
    [
        ("S", "quintain:tool_bug", "env", ("races",)),
        ("V", "verifier_error", "verifier", ("races",)),
        ("V", "judge_unparseable", "verifier", ("judge",)),
        ("V", "quintain:reward_out_of_range", "verifier", ("reward_clipping",)),
        ("T", "quintain:reset_failed", "task", ("unsolvable",)),
        ("H", "agent_run_error", "infra", ()),
        ("model", "transport_timeout", "infra", ()),
        ("S", "provider_oom_killed", "infra", ()),
    ],
)
def test_a_recorded_failure_is_filed_by_its_boundary(
    part: Any, kind: str, owner: str, classes: tuple[str, ...]
) -> None:
    failure = Failure(component=part, kind=kind, stage="agent", type="E", message="it broke", turn=1)
    judged = one(reward(None, failure=failure, end=End.FAILED))
    label = judged.label
    assert (label.rule, label.owner, label.classes) == (1, owner, classes)
    assert (label.visibility, label.confidence, label.turn) == ("loud", "proven", 1)
    assert (judged.verdict, judged.score_as) == ("exclude_group" if owner == "task" else "exclude", "none")


class Slow(qn.State):
    """World whose tool hangs while a switch is on."""

    @qn.tool
    async def wait(self, marker: str) -> str:
        """Wait.

        Args:
            marker: Name of the switch.
        """
        if HANGS.get(marker):
            import asyncio

            await asyncio.sleep(60)
        return "here"


HANGS: dict[str, bool] = {}


@qn.reward
def always(outcome: qn.EpisodeView[Any]) -> float:
    return 0.5


def slow() -> qn.Environment[Slow]:
    def tasks(split: str) -> qn.Tasks[Slow]:
        return qn.Tasks(1, lambda n: qn.Task(id="t", prompt="Wait.", start=Slow()))

    parts: dict[str, Any] = {"harness": qn.ToolLoop(), "verifier": qn.Verifier(always), "state": Slow}
    return qn.Environment("slow", tasks=tasks, config=qn.Config(tool_timeout_s=0.2), **parts)


@pytest.mark.parametrize(("hangs", "owner"), [(False, "infra"), (True, "env")])
def test_a_call_that_hung_is_probed_before_it_is_blamed(hangs: bool, owner: str) -> None:
    env = slow()
    HANGS["x"] = True
    trace = play(env, [("wait", {"marker": "x"})])
    assert trace.failure is not None
    HANGS["x"] = hangs
    assert one(trace, env).owner == owner


@pytest.mark.parametrize(
    ("error", "owner"),
    [
        ({"error": "SandboxError", "message": "gone"}, "infra"),
        ("ToolError: the tool broke", "env"),
        ({"error": "RewardError"}, "verifier"),
        ("OverlongPromptError", "trainer"),
        ("SimulatedUserError", "simulator"),
        ("something", "unknown"),
    ],
)
def test_a_foreign_error_is_filed_by_its_words(error: Any, owner: str) -> None:
    judged = one(row(said("x"), error=error, reward=None))
    assert judged.owner == owner
    assert judged.verdict == "exclude"


def test_a_failure_that_was_scored_all_the_same_is_the_verifiers_too() -> None:
    judged = one(row(said("x"), error="SandboxError", reward=0.0))
    assert judged.owner == "infra"
    assert found(judged, 2)[0].owner == "verifier"
    assert judged.score_as == "none"


# --- 2 reward ---


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_a_missing_reward_is_a_fault(value: float | None) -> None:
    label = one(row(said("x"), reward=value)).label
    assert (label.rule, label.owner, label.visibility) == (2, "verifier", "loud")


def test_missing_or_inconsistent_verdicts_are_a_fault() -> None:
    assert found(one(reward(1.0, rewards=[])), 2)[0].why.endswith("counted")
    assert "neither the sum nor the product" in found(one(reward(0.25)), 2)[0].why
    assert not found(one(reward(1.0)), 2)


def test_a_row_without_components_among_others_is_a_fault() -> None:
    others = [row(said("x"), metrics={"exact": 1.0}) for _ in range(3)]
    report = file(*others, row(said("x"), reward=0.0))
    assert [one.owner for one in report.judged] == ["policy"] * 3 + ["verifier"]


def test_a_limit_that_is_not_recorded_is_the_trainers() -> None:
    cut = row(asks("get"), answers("1"), asks("get", key="c2"), max_turns=2)
    assert one(cut).owner == "trainer"
    assert one(cut | {"is_truncated": True}).owner == "policy"


# --- 3 replay, 4 regrade ---


def tampered(**fields: Any) -> Trace:
    """Returns an episode of the counter with a changed step in its second turn."""
    trace = play(COUNTER, count(3), n=2)
    turn = trace.turns[1]
    trace.turns[1] = replaced(turn, steps=(replaced(turn.steps[0], **fields),))
    return trace


@pytest.mark.parametrize(
    ("fields", "owner", "kind"),
    [
        ({"observation": "7"}, "env", "reset_leak"),
        ({"observation": "1"}, "env", "stale_cache"),  # as the same call said before
        ({"observation": ""}, "env", "silent_default"),
        ({"observation": "error: 503 service unavailable", "is_error": True}, "infra", "silent_default"),
    ],
)
def test_an_answer_that_a_fresh_world_contradicts_is_labelled(fields: dict[str, Any], owner: str, kind: str) -> None:
    judged = one(tampered(**fields), COUNTER)
    label = judged.label
    assert (label.rule, label.owner, label.classes, label.confidence) == (3, owner, (kind,), "proven")
    assert (label.turn, label.step) == (1, 0)


def test_a_lost_write_is_the_environments() -> None:
    trace = play(COUNTER, count(3), n=2)
    trace.turns[1] = replaced(trace.turns[1], state_digest=trace.turns[0].state_digest)
    label = one(trace, COUNTER).label
    assert (label.rule, label.classes, label.why[-11:]) == (3, ("silent_default",), "changed nothing"[-11:])


def test_another_version_is_a_hint_and_no_proof() -> None:
    judged = one(replaced(tampered(observation="7"), fingerprint="other"), COUNTER)
    assert judged.owner == "policy"
    assert found(judged, 3)[0].confidence == "hint"
    assert 4 not in judged.not_checked  # the end is another one anyway
    same_end = one(replaced(play(COUNTER, count(1)), fingerprint="other"), COUNTER)
    assert "another version" in same_end.not_checked[4]


def test_without_an_environment_equal_calls_are_compared() -> None:
    sound = [replaced(play(COUNTER, count(3), n=2), member=n) for n in range(3)]
    report = file(*sound, replaced(tampered(observation="7"), member=3))
    assert [judged.owner for judged in report.judged] == ["policy", "policy", "policy", "env"]
    tie = file(sound[0], replaced(tampered(observation="7"), member=3))
    assert [found(judged, 3)[0].confidence for judged in tie.judged] == ["hint", "hint"]


def test_a_reward_that_regrading_changes_is_a_fault() -> None:
    wrong = [replaced(r, value=0.0, raw=0.0) for r in play(COUNTER, count(1)).rewards]
    label = one(reward(0.0, rewards=wrong), COUNTER).label
    assert (label.rule, label.owner, label.classes) == (4, "verifier", ("flaky_verifier",))
    assert "counted" in label.why


def test_a_flaky_verifier_is_found_by_several_gradings() -> None:
    said: list[int] = []

    @qn.reward
    def moody(outcome: qn.EpisodeView[Counter]) -> float:
        said.append(outcome.state.count)
        right = outcome.state.count == outcome.task.truth
        return float(right and len(said) != 5)

    env = COUNTER.replace(verifier=qn.Verifier(moody))
    trace = play(env, count(1))
    assert one(trace, env, times=1).owner == "policy"
    said.clear()
    play(env, count(1))
    assert one(trace, env, times=6).owner == "verifier"


def test_equal_episodes_with_unequal_rewards_are_a_fault() -> None:
    traces = [replaced(play(COUNTER, count(1)), member=n) for n in range(3)]
    wrong = [replaced(r, value=0.0, raw=0.0) for r in traces[2].rewards]
    report = file(*traces[:2], replaced(traces[2], score=0.0, rewards=wrong))
    assert [judged.owner for judged in report.judged] == ["policy", "policy", "verifier"]


# --- 5 shadow ---


def read_after_write(*shown: str) -> dict[str, Any]:
    """Returns an episode with reads around a write of status to "closed"."""
    talk: list[dict[str, Any]] = []
    for n, status in enumerate(shown):
        if n == 1:
            talk += [asks("update", '{"id": "A", "status": "closed"}', key="w"), answers("updated", key="w")]
        talk += [asks("get", '{"id": "A"}', key=f"r{n}"), answers(f'{{"id": "A", "status": "{status}"}}', key=f"r{n}")]
    return row(*talk, said("done"), tools=TOOLS)


def test_a_read_of_an_overwritten_value_is_stale() -> None:
    report = file(read_after_write("open", "closed"), read_after_write("open", "open"))
    assert [judged.owner for judged in report.judged] == ["policy", "env"]
    label = report.judged[1].label
    assert (label.rule, label.classes, label.confidence, label.turn) == (5, ("stale_cache",), "likely", 2)


def test_a_mapping_that_nothing_confirms_is_a_hint() -> None:
    judged = one(read_after_write("open", "open"))
    assert judged.owner == "policy"
    assert found(judged, 5)[0].confidence == "hint"


def test_a_traceback_is_the_worlds_unless_the_agent_ran_code() -> None:
    crash = 'Traceback (most recent call last):\n  File "x.py", line 3'
    assert one(row(asks("get", '{"id": "A"}'), answers(crash), said("x"))).owner == "env"
    assert one(row(asks("run", '{"code": "1/0"}'), answers(crash), said("x"))).owner == "policy"


def test_one_answer_to_unrelated_questions_is_a_hint() -> None:
    talk: list[dict[str, Any]] = []
    for n in range(3):
        talk += [
            asks("get", f'{{"id": "item {n}"}}', key=f"c{n}"),
            answers('{"name": "a constant answer"}', key=f"c{n}"),
        ]
    (label,) = found(one(row(*talk, said("x"))), 5)
    assert (label.confidence, label.classes, label.turn) == ("hint", ("silent_default",), 2)
